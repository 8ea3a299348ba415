import hashlib
from pathlib import Path

import pytest

from clean_room_agent.errors import RepositoryError
from clean_room_agent.retrieval.context_files import ContextFiles, FileText, NotEditable


def read(root: Path, path: str, data: bytes) -> FileText | NotEditable:
    (root / path).write_bytes(data)
    return ContextFiles(root).read(path, hashlib.sha256(data).hexdigest())


def test_lines_have_no_line_ends_and_spans_have_them(tmp_path: Path) -> None:
    text = read(tmp_path, "a.py", b"one\r\ntwo\r\nthree")
    assert isinstance(text, FileText)
    assert text.lines == ("one", "two", "three")
    assert text.span(2, 3) == "two\nthree\n"


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    text = read(tmp_path, "a.py", b"")
    assert isinstance(text, FileText)
    assert text.lines == ()


@pytest.mark.parametrize(("path", "data"), [(".env", b"TOKEN=1"), ("a.bin", b"\x00\x01"), ("key.pem", b"x")])
def test_secrets_and_binaries_are_not_shown(tmp_path: Path, path: str, data: bytes) -> None:
    assert isinstance(read(tmp_path, path, data), NotEditable)


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.py").write_text("x")
    (tmp_path / "inside/link.py").symlink_to(tmp_path / "outside.py")
    found = ContextFiles(tmp_path / "inside").read("link.py", hashlib.sha256(b"x").hexdigest())
    assert isinstance(found, NotEditable)


def test_a_missing_or_changed_file_asks_for_a_refresh(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="no longer exists"):
        ContextFiles(tmp_path).read("a.py", "0")
    (tmp_path / "a.py").write_text("x")
    with pytest.raises(RepositoryError, match="changed after it was indexed"):
        ContextFiles(tmp_path).read("a.py", "0")
