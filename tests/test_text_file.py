import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.text_file import POINTER, NotTextError, decode


@given(st.binary(max_size=400))
def test_what_is_accepted_survives_a_round_trip(data: bytes) -> None:
    try:
        file = decode(data)
    except NotTextError:
        return
    assert file.encode(file.text) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\r\nb\n", "a\r\nb\n"),
        (b"\xef\xbb\xbfa\n", "a\n"),
        ("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "# coding: latin-1\nx = 'é'\n"),
        ("é\n".encode("latin-1"), "é\n"),
        ("\ufeffa\n".encode("utf-16-le"), "a\n"),
        (b"", ""),
        (b"no newline", "no newline"),
    ],
)
def test_text_is_read_in_its_own_form(data: bytes, text: str) -> None:
    assert decode(data).text == text


def test_an_edit_keeps_line_ends_and_mark() -> None:
    file = decode(b"\xef\xbb\xbfa\r\nb\r\n")
    assert file.encode("a\nc\n") == b"\xef\xbb\xbfa\r\nc\r\n"


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff" * 8 + b"\1\2\3" * 9, b"x" * 11, POINTER])
def test_what_is_no_text_says_why(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decode(data, max_bytes=10 if data.startswith(b"x") else 1000)


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    file = decode("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    with pytest.raises(NotTextError, match="'€'"):
        file.encode("€")
