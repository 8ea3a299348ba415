import os
from pathlib import Path

import pytest
from testing.index_dump import dump_of, index
from testing.repositories import commit, git, make_repository

from clean_room_agent.indexer.extract import extract
from clean_room_agent.indexer.index_run import Failed

NAMES = [
    "with space.py",
    "quo'te\".py",
    "new\nline.py",
    "tab\t.py",
    "ünï.py",
    "-dash.py",
    "a'; DROP TABLE files.py",
    "x.PY",
]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n"


def paths(top: Path) -> set[object]:
    return {row[0] for row in dump_of(top)["files"]}


def test_odd_names_are_indexed_with_their_history(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "r", {name: f"def f{number}(): pass\n" for number, name in enumerate(NAMES)}
    )
    index(top)
    rows = dump_of(top)
    assert {row[0] for row in rows["files"]} == set(NAMES)
    assert {row[0] for row in rows["symbols"]} == set(NAMES)
    assert {row[0] for row in rows["file_commits"]} == set(NAMES)


def test_what_is_no_text_or_not_to_be_read_is_left_out(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "r",
        {
            "good.py": "x = 1\n",
            "picture.png": b"\x89PNG\r\n\0\0",
            "nul.py": b"x = 1\n\0\n",
            ".env": "KEY=1\n",
            "certs/server.pem": "-----BEGIN\n",
            "big.txt": "word " * 500_000,
            ".gitignore": "ignored/\n",
            "ignored/a.py": "x = 1\n",
            "latin.txt": "Größe\n".encode("latin-1"),
            "empty.py": "",
            "model.txt": POINTER,
            "large.py": POINTER,
        },
    )
    (top / "link.py").symlink_to("good.py")
    (top / "folder").symlink_to("certs")
    other = make_repository(tmp_path / "other", {"inside.py": "x = 1\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    commit(top, {}, "Links")
    index(top)
    assert paths(top) == {"good.py", ".gitignore", ".gitmodules", "latin.txt", "empty.py"}
    assert index(top).files_changed == 0


def test_what_cannot_be_opened_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for name, reason in (("folder.py", "Is a directory"), ("none.py", "No such file or directory")):
        found = extract(tmp_path, name, max_bytes=100)
        assert found == Failed(path=name, message=f"cannot be read: {reason}")


def test_a_file_behind_a_link_is_not_read(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"good.py": "x = 1\n", "folder/a.py": "x = 1\n"})
    (top / "folder").rename(tmp_path / "outside")
    (top / "folder").symlink_to(tmp_path / "outside")
    index(top)
    assert paths(top) == {"good.py"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    (top / "a.py").chmod(0)
    assert index(top, continue_on_error=True).failures == (("a.py", "cannot be read: Permission denied"),)


def test_syntax_errors_are_marked_and_the_rest_is_there(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "r", {"a.py": "def f(): pass\n\ndef g(:\n", "b.js": "function ok () {}\nlet = = 1\n"}
    )
    index(top)
    errors = {row[0]: row[4] for row in dump_of(top)["files"]}
    assert str(errors["a.py"]).startswith("line 3")
    assert str(errors["b.js"]).startswith("line 2")
    assert {row[1] for row in dump_of(top)["symbols"]} >= {"f", "ok"}


def test_a_file_that_a_reader_breaks_on_is_in_the_index_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> tuple[str, bool]:
        raise IndexError(f"no {text}")

    monkeypatch.setattr("clean_room_agent.indexer.extract.classify", broken)
    top = make_repository(tmp_path / "r", {"a.py": "# odd\ndef f(): pass\n", "b.py": "def g(): pass\n"})
    summary = index(top)
    assert paths(top) == {"a.py", "b.py"}
    assert {row[1] for row in dump_of(top)["symbols"]} == {"g"}
    ((path, why),) = summary.unparsed
    assert (path, why.partition(" (")[0]) == ("a.py", "a bug in cra: IndexError: no odd")
