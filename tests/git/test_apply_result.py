import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.repositories import commit_change, fingerprint, git, make_repository, write

from clean_room_agent.errors import RepositoryError
from clean_room_agent.git.apply_result import apply_to_tree, take_back
from clean_room_agent.git.commits import EXECUTABLE, FILE, LINK, FileChange, commit_files, snapshot
from clean_room_agent.git.repository import Repository, open_repository


def applied(repo: Repository, base: str, commit: str, *, undo: bool = False) -> tuple[str, ...]:
    """The paths that were changed; nothing temporary is left of it."""
    move = take_back if undo else apply_to_tree
    try:
        return move(repo, base, commit, what="applying run r")
    finally:
        assert list(repo.top.rglob(".cra-*")) == []


def test_a_change_is_applied_beside_other_uncommitted_work(repo: Repository) -> None:
    top = repo.top
    write(top, {"a.py": "1\n2\n3\nmine\n", "mine.py": "m\n", "c.py": "c mine\n"})
    git(top, "add", "c.py")
    taken = snapshot(repo, "t1", secrets=lambda _path: False, max_untracked_bytes=1000)
    index = (top / ".git/index").read_bytes()
    made = commit_change(
        repo,
        {"a.py": b"1\ntwo\n3\nmine\n", "b.py": None, "new/n.py": b"n\0", "mine.py": b"m2\n"},
        taken.commit,
    )
    assert applied(repo, taken.commit, made) == ("a.py", "b.py", "mine.py", "new/n.py")
    assert (top / "a.py").read_text() == "1\ntwo\n3\nmine\n"
    assert not (top / "b.py").exists()
    assert (top / "new/n.py").read_bytes() == b"n\0"
    assert (top / "mine.py").read_text() == "m2\n"
    assert (top / "c.py").read_text() == "c mine\n"
    assert (top / ".git/index").read_bytes() == index
    assert git(top, "rev-parse", "HEAD") == repo.head


def test_files_that_moved_on_are_all_named_and_nothing_is_applied(repo: Repository) -> None:
    made = commit_change(repo, {"a.py": b"x\n", "b.py": None, "new.py": b"n\n", "c.py": b"c2\n"})
    write(repo.top, {"a.py": "1\n2\n3\nlater\n", "b.py": "later\n", "new.py": "theirs\n"})
    before = fingerprint(repo.top)
    with pytest.raises(RepositoryError, match=r"a\.py, b\.py, new\.py; nothing was applied"):
        applied(repo, repo.head, made)
    assert fingerprint(repo.top) == before


def test_a_link_in_the_way_is_not_followed(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    made = commit_change(repo, {"dir/new.py": b"n\n"})
    (repo.top / "dir").symlink_to(tmp_path / "outside")
    with pytest.raises(RepositoryError, match="changed here since the run started: dir/new"):
        applied(repo, repo.head, made)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("setting", ["true", "false"])
def test_crlf_files_take_a_change(tmp_path: Path, setting: str) -> None:
    top = make_repository(tmp_path / "repo", {"lf.txt": b"1\n2\n3\n", "crlf.txt": b"1\r\n2\r\n3\r\n"})
    git(top, "config", "core.autocrlf", setting)
    (top / "lf.txt").unlink()
    git(top, "checkout", "--", "lf.txt")
    repo = open_repository(top)
    after = {name: (top / name).read_bytes().replace(b"2", b"two") for name in ("lf.txt", "crlf.txt")}
    made = commit_change(repo, dict(after))
    applied(repo, repo.head, made)
    assert {name: (top / name).read_bytes() for name in after} == after


def test_a_mode_change_is_applied(repo: Repository) -> None:
    made = commit_files(repo, repo.head, {"a.py": FileChange(data=b"1\n2\n3\n", mode=EXECUTABLE)}, "m")
    assert applied(repo, repo.head, made) == ("a.py",)
    assert (repo.top / "a.py").stat().st_mode & 0o111


def test_a_mode_alone_is_changed_and_changed_back(repo: Repository) -> None:
    (repo.top / "a.py").chmod(0o640)
    made = commit_files(repo, repo.head, {"a.py": FileChange(data=b"1\n2\n3\n", mode=EXECUTABLE)}, "m")
    modes = [(repo.top / "a.py").stat().st_mode & 0o777]
    for undo in (False, True):
        assert applied(repo, repo.head, made, undo=undo) == ("a.py",)
        modes.append((repo.top / "a.py").stat().st_mode & 0o777)
    assert modes == [0o640, 0o750, 0o640]


def test_a_private_file_stays_private(repo: Repository) -> None:
    (repo.top / "a.py").chmod(0o600)
    made = commit_change(repo, {"a.py": b"x\n"})
    for undo in (False, True):
        applied(repo, repo.head, made, undo=undo)
        assert (repo.top / "a.py").stat().st_mode & 0o777 == 0o600


def test_what_stands_already_is_left_and_the_rest_is_applied(repo: Repository) -> None:
    made = commit_change(repo, {"a.py": b"x\n", "b.py": None, "c.py": b"c2\n", "new.py": b"n\n"})
    write(repo.top, {"a.py": "x\n", "b.py": None})
    assert applied(repo, repo.head, made) == ("c.py", "new.py")
    assert applied(repo, repo.head, made) == ()
    write(repo.top, {"b.py": "b\n", "new.py": None})
    assert applied(repo, repo.head, made, undo=True) == ("a.py", "c.py")
    assert git(repo.top, "status", "--porcelain") == ""


def test_a_file_that_becomes_a_folder_is_left_to_the_user(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"file": "f\n", "a.py": "a\n"})
    repo = open_repository(top)
    made = commit_change(repo, {"file/in/c.py": b"c\n", "a.py": b"b\n"}, commit_change(repo, {"file": None}))
    before = fingerprint(top)
    with pytest.raises(
        RepositoryError, match="files become folders, or folders files: file; nothing was applied"
    ):
        applied(repo, repo.head, made)
    assert fingerprint(top) == before


def test_a_file_keeps_its_own_line_ends(repo: Repository) -> None:
    git(repo.top, "config", "core.autocrlf", "input")
    (repo.top / "a.py").write_bytes(b"1\r\n2\r\n3\r\n")
    made = commit_change(repo, {"a.py": b"1\ntwo\n3\n"})
    applied(repo, repo.head, made)
    assert (repo.top / "a.py").read_bytes() == b"1\r\ntwo\r\n3\r\n"
    applied(repo, repo.head, made, undo=True)
    assert (repo.top / "a.py").read_bytes() == b"1\r\n2\r\n3\r\n"


def test_no_filter_driver_runs(repo: Repository, tmp_path: Path) -> None:
    git(repo.top, "config", "filter.bad.smudge", f"touch {tmp_path}/ran; cat")
    git(repo.top, "config", "filter.bad.clean", f"touch {tmp_path}/ran; cat")
    made = commit_change(repo, {"a.py": b"x\n"})
    write(repo.top, {".gitattributes": "*.py filter=bad\n"})
    applied(repo, repo.head, made)
    assert (repo.top / "a.py").read_text() == "x\n"
    assert not (tmp_path / "ran").exists()


def test_a_submodule_is_not_changed(repo: Repository) -> None:
    git(repo.top, "update-index", "--add", "--cacheinfo", f"160000,{repo.head},sub")
    git(repo.top, "commit", "-q", "-m", "Submodule")
    with pytest.raises(RepositoryError, match="submodules change: sub; nothing was applied"):
        applied(repo, repo.head, git(repo.top, "rev-parse", "HEAD"))


def test_binary_files_and_links_are_applied(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "repo", {"a.bin": b"\0\1" * 500, "b.bin": b"\0b", "sp ace/\n.bin": b"\0c"}
    )
    repo = open_repository(top)
    files = {
        "a.bin": FileChange(data=b"\0\2" * 700, mode=EXECUTABLE),
        "b.bin": None,
        "link": FileChange(data=b"a.bin", mode=LINK),
        "sp ace/\n.bin": FileChange(data=b"\0d", mode=FILE),
    }
    made = commit_files(repo, repo.head, files, "Change")
    assert applied(repo, repo.head, made) == ("a.bin", "b.bin", "link", "sp ace/\n.bin")
    assert (top / "a.bin").read_bytes() == b"\0\2" * 700
    assert (top / "a.bin").stat().st_mode & 0o111
    assert not (top / "b.bin").exists()
    assert (top / "link").readlink() == Path("a.bin")
    assert (top / "sp ace/\n.bin").read_bytes() == b"\0d"


@pytest.mark.parametrize("way", ["file", "folder", "link to nothing"])
def test_nothing_is_created_over_what_is_not_tracked(repo: Repository, way: str) -> None:
    made = commit_change(repo, {"new/n.py": b"n\n", "a.py": b"x\n"})
    if way == "file":
        write(repo.top, {"new": "mine\n"})
    elif way == "folder":
        (repo.top / "new/n.py").mkdir(parents=True)
    else:
        (repo.top / "new").mkdir()
        (repo.top / "new/n.py").symlink_to("nothing")
    before = fingerprint(repo.top)
    with pytest.raises(RepositoryError):
        applied(repo, repo.head, made)
    assert fingerprint(repo.top) == before


def test_an_empty_change_applies_as_nothing(repo: Repository) -> None:
    assert applied(repo, repo.head, commit_change(repo, {})) == ()


def test_a_file_with_other_names_is_not_applied_to(repo: Repository, tmp_path: Path) -> None:
    made = commit_change(repo, {"a.py": b"x\n"})
    (tmp_path / "other").hardlink_to(repo.top / "a.py")
    before = fingerprint(repo.top)
    with pytest.raises(RepositoryError, match=r"hard links .* a\.py; nothing was applied"):
        applied(repo, repo.head, made)
    assert fingerprint(repo.top) == before
    assert (tmp_path / "other").read_text() == "1\n2\n3\n"


@pytest.fixture
def small_files() -> Iterator[None]:
    """No process that starts meanwhile writes a file of more than 100,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_changed_is_put_back_when_the_rest_cannot_be_written(
    repo: Repository, request: pytest.FixtureRequest
) -> None:
    (repo.top / "link").symlink_to("a.py")
    git(repo.top, "add", "link")
    git(repo.top, "commit", "-q", "-m", "Link")
    repo = open_repository(repo.top)
    made = commit_change(
        repo,
        {
            "a.py": b"x\n",
            "b.py": None,
            "c.py": None,
            "in.py": b"i\n",
            "d/e/n.py": b"n\n",
            "z.bin": os.urandom(300_000),
        },
    )
    before = fingerprint(repo.top)
    request.getfixturevalue("small_files")
    with pytest.raises(RepositoryError, match="File too large; nothing was changed"):
        applied(repo, repo.head, made)
    assert fingerprint(repo.top) == before
