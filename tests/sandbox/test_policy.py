import socket
from collections.abc import Callable
from pathlib import Path

from clean_room_agent.sandbox.policy import (
    GitFolder,
    Policy,
    arguments,
    hidden_sockets,
    home_inside,
    variables,
)

HOME = Path("/home/me")


def keep(written: list[bytes]) -> Callable[[bytes], int]:
    def data(content: bytes) -> int:
        written.append(content)
        return 10 + len(written)

    return data


def places(policy: Policy, kind: str) -> list[str]:
    """Where something of the kind is mounted, in order."""
    found = arguments(policy, keep([]))
    return [found[at + 2] for at, word in enumerate(found) if word == kind]


def test_the_tree_alone_and_the_reports_are_written() -> None:
    policy = Policy(tree=Path("/cache/t"), at=HOME / "project", home=HOME, reports=Path("/cache/r"))
    assert places(policy, "--bind") == ["/cache/r", "/home/me/project"]


def test_what_stands_deeper_is_mounted_later() -> None:
    at = HOME / "project"
    mounts = ((at / ".venv", at / ".venv"),)
    policy = Policy(tree=Path("/cache/t"), at=at, home=HOME, mounts=mounts, read=(HOME / ".pyenv/versions",))
    words = arguments(policy, keep([]))
    order = [words.index(str(path)) for path in (HOME, at, at / ".venv")]
    assert order == sorted(order)
    assert words.index("/") > max(order), "the root is closed at the end"


def test_what_is_read_shows_neither_home_nor_tree_nor_the_repository() -> None:
    at, tree = HOME / "project", HOME / ".cache/cra/t"
    asked = (
        HOME,
        Path("/home"),
        at,
        at / "x",
        HOME / ".cache",
        tree.parent,
        HOME / ".nvm",
        HOME / ".nvm/v20",
    )
    policy = Policy(tree=tree, at=at, home=HOME, read=asked)
    shown = [place for place in places(policy, "--ro-bind-try") if place.startswith("/home")]
    assert shown == ["/home/me/.nvm"]


def test_git_is_shown_with_another_configuration_and_a_file_that_leads_there() -> None:
    written: list[bytes] = []
    git = GitFolder(
        written={"config": b"[core]\n"},
        folders={"objects": HOME / "project/.git/objects"},
        worktree=HOME / "project/.git/worktrees/t1",
    )
    policy = Policy(tree=Path("/cache/t"), at=HOME / "project", home=HOME, git=git)
    words = arguments(policy, keep(written))
    assert b"gitdir: /run/cra-git/worktrees/t1\n" in written
    assert words[words.index("/run/cra-git/config") - 1] == str(11 + written.index(b"[core]\n"))


def test_secrets_are_not_let_through() -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "AWS_SECRET": "x",
        "NODE_AUTH_TOKEN": "x",
        "SSH_AUTH_SOCK": "x",
        "DB": "y",
    }
    assert variables(given, ("DB",), HOME) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "DB": "y",
        "HOME": "/home/me",
        "TMPDIR": "/tmp",
        "USER": "cra",
        "LOGNAME": "cra",
    }


def test_a_home_that_cannot_be_hidden_is_replaced() -> None:
    assert home_inside(Path("/")) == home_inside(Path("/usr/sbin")) == Path("/home/cra")
    assert home_inside(Path("/root")) == Path("/root")


def test_a_service_s_home_among_the_system_s_folders_is_hidden() -> None:
    policy = Policy(tree=Path("/cache/t"), at=Path("/srv/project"), home=Path("/opt/service"))
    words = arguments(policy, keep([]))
    assert words.index("/opt/service") > words.index("/opt")


def test_sockets_below_what_is_shown_are_found_in_the_kernel_s_listing(tmp_path: Path) -> None:
    for name in ("a b/agent", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(tmp_path / name))
    listing = tmp_path / "unix"
    line = "0000000000000000: 00000002 00000000 00010000 0001 01 31303"
    names = (f" {tmp_path}/a b/agent", f" {tmp_path}/a b/gone", f" {tmp_path}/other", " @abstract", "")
    listing.write_text(
        "Num RefCount Protocol Flags Type St Inode Path\n" + "".join(f"{line}{name}\n" for name in names)
    )
    shown = ((tmp_path / "a b", Path("/shown")), (Path("/usr"), Path("/usr")))
    assert hidden_sockets(listing, shown) == (Path("/shown/agent"),)
    assert hidden_sockets(tmp_path / "missing", shown) == ()
