import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.llm.transports import ndjson
from clean_room_agent.llm.transports.ndjson import LineSplitter, LineTooLongError


def split(chunks: list[bytes]) -> list[bytes]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.end()


@given(st.lists(st.text()), st.lists(st.integers(min_value=0)), st.booleans())
def test_lines_survive_any_division_into_chunks(texts: list[str], cuts: list[int], ended: bool) -> None:
    lines = [json.dumps({"t": text}, ensure_ascii=False).encode() for text in texts]
    whole = b"\n".join(lines) + (b"\n" if ended else b"")
    places = sorted({cut % (len(whole) + 1) for cut in cuts} | {0, len(whole)})
    chunks = [whole[start:end] for start, end in itertools.pairwise(places)]
    assert split(chunks) == lines


def test_blank_lines_are_left_out() -> None:
    assert split([b"\n\r\na\n \n", b"\nb"]) == [b"a", b"b"]


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    splitter.feed(b"123456")
    with pytest.raises(LineTooLongError):
        splitter.feed(b"789012")
