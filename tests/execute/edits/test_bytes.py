"""From a file's bytes through an edit and back: outside of what was edited, every byte is the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.packages import package, shown_file

from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.file_contents import NotTextError, decode

RULES = EditRules(targets=(TargetFile(path="a.txt"),))
MARK = "the line to edit"
FORMS = (
    ("utf-8", b"", ""),
    ("utf-8", b"\xef\xbb\xbf", ""),
    ("utf-16-le", b"\xff\xfe", ""),
    ("utf-16-be", b"\xfe\xff", ""),
    ("utf-32-le", b"\xff\xfe\x00\x00", ""),
    ("latin-1", b"", "# coding: latin-1\u00e9"),
    ("cp1252", b"", "# -*- coding: cp1252 -*- \u20ac"),
    ("latin-1", b"", "caf\u00e9"),
)
"""(codec, byte-order mark, a first line that makes it be read so)"""
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


@given(
    form=st.sampled_from(FORMS),
    before=st.lists(st.tuples(TEXT, st.sampled_from(("\n", "\r\n", "\r"))), max_size=5),
    after=st.lists(st.tuples(TEXT, st.sampled_from(("\n", "\r\n", "\r"))), max_size=5),
    same_ends=st.sampled_from(("", "\n", "\r\n")),
    new=st.sampled_from(("changed", "two\nlines", "")),
    last=TEXT,
)
def test_every_byte_outside_of_the_edited_line_stays(
    form: tuple[str, bytes, str],
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    same_ends: str,
    new: str,
    last: str,
) -> None:
    codec, mark, first = form
    end = same_ends or "\n"
    head = (first + end if first else "") + "".join(text + (same_ends or own) for text, own in before)
    tail = "".join(text + (same_ends or own) for text, own in after) + last
    if head.endswith("\r"):
        head += end
    head_bytes, tail_bytes = mark + head.encode(codec), tail.encode(codec)
    data = head_bytes + (MARK + end).encode(codec) + tail_bytes
    file = decode(data)
    edit = PatchEdit(kind="edit", file_path="a.txt", search=MARK, replacement=new)
    applied = apply_edits((edit,), {"a.txt": file.text}, package(shown_file("a.txt", file.text)), RULES)
    assert applied.result.success, applied.result
    written = file.encode(applied.texts["a.txt"] or "")
    assert written.startswith(head_bytes)
    assert written.endswith(tail_bytes)
    middle = written[len(head_bytes) : len(written) - len(tail_bytes)].decode(codec)
    if new:
        assert middle.replace("\r\n", "\n") == f"{new}\n"
        assert ("\r\n" in middle) == (end == "\r\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"a\0b\n", "NUL"),
        (b"\xef\xbb\xbfa\xff\n", "byte-order mark says utf-8"),
        (b"\xff\xfea\0b", "byte-order mark says utf-16"),
        (b"# coding: utf-8\n\xff\n", "neither UTF-8"),
        (b"# coding: no-such\n\xff\n", "neither UTF-8"),
        (b"# coding: rot13\n\xff\n", "neither UTF-8"),
        (b"# coding: unicode_escape\n\xff\\x41\n", "round trip"),
        (b"# coding: utf-7\n\xff+AGE-\n", "neither UTF-8|round trip"),
        (b"\xff\x01\x02\x03" * 50, "control bytes"),
    ],
)
def test_a_file_that_would_not_come_back_the_same_says_why(data: bytes, why: str) -> None:
    with pytest.raises(NotTextError, match=why):
        decode(data)


def test_the_refusal_of_an_uneditable_file_says_why() -> None:
    rules = EditRules(targets=RULES.targets, uneditable={"a.txt": "binary (it holds NUL bytes)"})
    edit = PatchEdit(kind="create", file_path="a.txt", replacement="x\n")
    (report,) = apply_edits((edit,), {}, package(), rules).result.reports
    assert report.code is EditCode.PROTECTED
    assert report.detail == "a.txt is not editable: binary (it holds NUL bytes)"
