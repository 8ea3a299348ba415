from pathlib import Path

import pytest
from tests.fakes.repositories import fingerprint, git, make_repository, write

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.commits import EXECUTABLE, FILE, FileChange, commit_files
from clean_room_agent.git.landing import apply_to_tree, create_branch, delete_ref, list_refs, update_ref
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.git.snapshot import snapshot


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return open_repository(
        make_repository(tmp_path / "repo", {"a.py": "1\n2\n3\n", "b.py": "b\n", "c.py": "c\n"})
    )


def change(repo: Repository, files: dict[str, bytes | None], base: str | None = None) -> str:
    changes = {
        path: None if data is None else FileChange(data=data, mode=FILE) for path, data in files.items()
    }
    return commit_files(repo, base or repo.head, changes, "Change", None)


def test_refs_move_by_compare_and_swap_only(repo: Repository) -> None:
    second = change(repo, {"a.py": b"x"})
    update_ref(repo, "refs/cra/t1/head", repo.head, expected="")
    with pytest.raises(GitError):
        update_ref(repo, "refs/cra/t1/head", second, expected="")
    with pytest.raises(GitError):
        update_ref(repo, "refs/cra/t1/head", second, expected=second)
    update_ref(repo, "refs/cra/t1/head", second, expected=repo.head)
    update_ref(repo, "refs/cra/t10/head", second, expected="")
    assert list_refs(repo, "refs/cra/t1") == {"refs/cra/t1/head": second}
    delete_ref(repo, "refs/cra/t1/head")
    delete_ref(repo, "refs/cra/t1/head")
    assert list_refs(repo, "refs/cra/t1") == {}


def test_a_branch_is_new_or_refused(repo: Repository) -> None:
    before = fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/"))
    made = change(repo, {"a.py": b"x"})
    create_branch(repo, "cra/1234", made)
    assert git(repo.top, "rev-parse", "cra/1234") == made
    assert fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/")) == before
    for name in ("cra/1234", "cra", "bad..name", "main"):
        with pytest.raises(RepositoryError):
            create_branch(repo, name, repo.head)
    assert git(repo.top, "rev-parse", "cra/1234") == made


def test_a_change_is_applied_beside_other_uncommitted_work(repo: Repository) -> None:
    top = repo.top
    write(top, {"a.py": "1\n2\n3\nmine\n", "mine.py": "m\n", "c.py": "c mine\n"})
    git(top, "add", "c.py")
    taken = snapshot(repo, "t1", secrets=lambda _path: False, max_untracked_bytes=1000)
    index = (top / ".git/index").read_bytes()
    made = change(
        repo,
        {"a.py": b"1\ntwo\n3\nmine\n", "b.py": None, "new/n.py": b"n\0", "mine.py": b"m2\n"},
        taken.commit,
    )
    assert apply_to_tree(repo, taken.commit, made) == ("a.py", "b.py", "mine.py", "new/n.py")
    assert (top / "a.py").read_text() == "1\ntwo\n3\nmine\n"
    assert not (top / "b.py").exists()
    assert (top / "new/n.py").read_bytes() == b"n\0"
    assert (top / "mine.py").read_text() == "m2\n"
    assert (top / "c.py").read_text() == "c mine\n"
    assert (top / ".git/index").read_bytes() == index
    assert git(top, "rev-parse", "HEAD") == repo.head


def test_files_that_moved_on_are_all_named_and_nothing_is_applied(repo: Repository) -> None:
    made = change(repo, {"a.py": b"x\n", "b.py": None, "new.py": b"n\n", "c.py": b"c2\n"})
    write(repo.top, {"a.py": "1\n2\n3\nlater\n", "b.py": "later\n", "new.py": "theirs\n"})
    before = fingerprint(repo.top)
    with pytest.raises(RepositoryError, match=r"a\.py, b\.py, new\.py; nothing was applied"):
        apply_to_tree(repo, repo.head, made)
    assert fingerprint(repo.top) == before


def test_a_link_in_the_way_is_not_followed(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    made = change(repo, {"dir/new.py": b"n\n"})
    (repo.top / "dir").symlink_to(tmp_path / "outside")
    with pytest.raises(RepositoryError, match="does not fit"):
        apply_to_tree(repo, repo.head, made)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("setting", ["true", "false"])
def test_crlf_files_take_a_change(tmp_path: Path, setting: str) -> None:
    top = make_repository(tmp_path / "repo", {"lf.txt": b"1\n2\n3\n", "crlf.txt": b"1\r\n2\r\n3\r\n"})
    git(top, "config", "core.autocrlf", setting)
    (top / "lf.txt").unlink()
    git(top, "checkout", "--", "lf.txt")
    repo = open_repository(top)
    after = {name: (top / name).read_bytes().replace(b"2", b"two") for name in ("lf.txt", "crlf.txt")}
    made = change(repo, dict(after))
    apply_to_tree(repo, repo.head, made)
    assert {name: (top / name).read_bytes() for name in after} == after


def test_a_mode_change_is_applied(repo: Repository) -> None:
    made = commit_files(repo, repo.head, {"a.py": FileChange(data=b"1\n2\n3\n", mode=EXECUTABLE)}, "m", None)
    assert apply_to_tree(repo, repo.head, made) == ("a.py",)
    assert (repo.top / "a.py").stat().st_mode & 0o111


def test_an_empty_change_applies_as_nothing(repo: Repository) -> None:
    assert apply_to_tree(repo, repo.head, change(repo, {})) == ()
