import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.output_capture import SLACK, Capture, Pieces, marked

CHUNKS = st.lists(st.binary(max_size=40), max_size=30)


def test_output_within_the_bound_is_whole() -> None:
    capture = Capture(10)
    for chunk in (b"0123", b"4567", b"89"):
        capture.feed(chunk)
    assert (capture.data(), capture.cut()) == (b"0123456789", 0)
    capture.feed(b"ab")
    assert (capture.data(), capture.cut()) == (b"01234789ab"[:5] + b"789ab", 2)


@given(chunks=CHUNKS, bound=st.integers(2, 50))
def test_both_ends_are_kept_and_the_rest_is_counted(chunks: list[bytes], bound: int) -> None:
    capture, whole = Capture(bound), b"".join(chunks)
    for chunk in chunks:
        capture.feed(chunk)
    half = bound // 2
    kept = whole if len(whole) <= 2 * half else whole[:half] + whole[-half:]
    assert capture.data() == kept
    assert capture.cut() == len(whole) - len(kept)


def test_a_long_stream_is_held_in_little_memory() -> None:
    capture = Capture(100)
    for _ in range(100):
        capture.feed(b"x" * 5_000)
        assert len(capture.tail) <= 2 * capture.half + SLACK
    assert capture.cut() == 500_000 - 100


def test_chunks_are_heard_as_they_come() -> None:
    heard: list[bytes] = []
    capture = Capture(2, heard.append)
    capture.feed(b"abc")
    capture.feed(b"def")
    assert heard == [b"abc", b"def"]


def test_a_line_says_what_was_left_out() -> None:
    assert marked(b"whole", 0) == b"whole"
    assert marked(b"heta", 12) == b"he\n[... 12 bytes left out ...]\nta"


@given(chunks=CHUNKS)
def test_pieces_are_those_of_the_whole_stream(chunks: list[bytes]) -> None:
    pieces, whole, taken = Pieces(b"\0"), b"".join(chunks), []
    for chunk in chunks:
        pieces.feed(chunk)
        taken += pieces.take()
    expected = whole.split(b"\0")
    assert [*taken, *pieces.rest()] == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize(("stream", "open_"), [(b"a\0b", [b"b"]), (b"a\0", [])])
def test_a_piece_without_an_end_is_taken_last(stream: bytes, open_: list[bytes]) -> None:
    pieces = Pieces(b"\0")
    pieces.feed(stream)
    assert pieces.take() == [b"a"]
    assert pieces.rest() == open_
