import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from clean_room_agent.sandbox.policy import (
    GitFolder,
    Policy,
    arguments,
    hidden_sockets,
    home_inside,
    interpreter_places,
    tool_places,
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


def make(home: Path, *names: str) -> None:
    for name in names:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x7fELF" if "python" in path.name else b"#!/bin/sh\n")
        path.chmod(0o755)


def shown(home: Path, path: str = "", command: str = "", **variables: str) -> set[str]:
    """What is shown of the home, by relative path."""
    found = tool_places(
        {"PATH": path.replace("~", str(home)), **variables}, (command.replace("~", str(home)),)
    )
    return {str(place.relative_to(home)) for place in found}


def test_programs_of_the_system_need_nothing(tmp_path: Path) -> None:
    assert tool_places({"PATH": "/usr/bin:/bin:/nowhere"}, ("python3 -m pytest",)) == ()


def test_a_prefix_is_shown_without_what_else_it_holds(tmp_path: Path) -> None:
    make(tmp_path, ".nvm/v20/bin/node", ".nvm/v20/lib/npm", ".local/bin/tool", ".local/share/keyrings/login")
    make(tmp_path, ".cargo/bin/cargo", ".cargo/credentials.toml")
    path = "~/.nvm/v20/bin:~/.local/bin:~/.cargo/bin"
    assert shown(tmp_path, path) == {".nvm/v20/bin", ".nvm/v20/lib", ".local/bin", ".cargo/bin"}


def test_a_program_named_by_its_path_counts(tmp_path: Path) -> None:
    make(tmp_path, "env/bin/python", "env/lib/x", "env/pyvenv.cfg")
    assert shown(tmp_path, command="~/env/bin/python -m unittest") == {
        *("env/bin", "env/bin/python", "env/lib", "env/pyvenv.cfg")
    }


def test_a_script_is_shown_without_its_folder(tmp_path: Path) -> None:
    make(tmp_path, "scripts/check.sh", "scripts/private")
    assert shown(tmp_path, command="~/scripts/check.sh") == {"scripts/check.sh"}


def places_of(home: Path, interpreter: Path | str) -> set[str]:
    """What is shown of the home for an environment in a repository whose interpreter is a link."""
    make(home, "project/.venv/pyvenv.cfg")
    (home / "project/.venv/bin").mkdir()
    (home / "project/.venv/bin/python").symlink_to(interpreter)
    (home / "project/.venv/bin/python3").symlink_to("python")
    found = interpreter_places(home / "project/.venv")
    path = f"{home}/project/.venv/bin"
    assert set(found) == set(tool_places({"PATH": path, "VIRTUAL_ENV": path[:-4]}, (), home / "project"))
    return {str(place.relative_to(home)) for place in found}


def test_an_environment_s_interpreter_is_found_along_its_links(tmp_path: Path) -> None:
    make(tmp_path, "uv/cpython-3.11.9/bin/python3.11", "uv/cpython-3.11.9/lib/python3.11/os.py")
    make(tmp_path, "uv/cpython-3.11.9/share/x", "uv/cpython-3.12/bin/python3.12", "uv/token")
    (tmp_path / "uv/cpython-3.11").symlink_to("cpython-3.11.9")
    (tmp_path / "uv/current").mkdir()
    (tmp_path / "uv/current/python3").symlink_to("../cpython-3.11/bin/python3.11")
    assert places_of(tmp_path, tmp_path / "uv/current/python3") == {
        *("uv/cpython-3.11/bin", "uv/cpython-3.11/lib", "uv/cpython-3.11.9/bin", "uv/cpython-3.11.9/lib"),
        "uv/current/python3",
    }


@pytest.mark.parametrize(
    "prefix",
    [
        ".pyenv/versions/3.11.9",
        ".local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu",
        ".rye/py/cpython@3.11.9",
        "miniconda3/envs/work",
        ".asdf/installs/python/3.11.9",
        ".local",
    ],
)
def test_where_tools_keep_interpreters_their_prefix_alone_is_shown(prefix: str, tmp_path: Path) -> None:
    beside = Path(prefix).parent / "beside"
    make(tmp_path, f"{prefix}/bin/python3.11", f"{prefix}/lib/python3.11/os.py", f"{prefix}/share/private")
    make(tmp_path, f"{beside}/bin/python3.11", f"{beside}/lib/python3.11/os.py", ".ssh/id_rsa")
    assert places_of(tmp_path, tmp_path / prefix / "bin/python3.11") == {f"{prefix}/bin", f"{prefix}/lib"}


@pytest.mark.parametrize(
    "target",
    [
        *(".ssh/id_rsa", ".ssh/nothing", ".ssh", "private/bin/key", "private/bin/run", "private/bin/python3"),
        *("bin/python3", ".aws/bin/python3.11", "secrets/python3"),
    ],
)
def test_a_link_that_leads_to_no_interpreter_shows_nothing(target: str, tmp_path: Path) -> None:
    make(tmp_path, ".ssh/id_rsa", "private/bin/key", "private/bin/run", "private/lib/python3.11/os.py")
    make(tmp_path, "bin/python3", "lib/notes", "secrets/python3", "lib/python3.11/sub/os.py")
    (tmp_path / "private/bin/python3").symlink_to("../../.ssh/id_rsa")
    (tmp_path / "private/bin/key").chmod(0o600)
    assert places_of(tmp_path, tmp_path / target) == set()


def test_parts_of_a_prefix_that_are_links_to_elsewhere_are_not_shown(tmp_path: Path) -> None:
    make(tmp_path, "p/bin/python3", "p/lib64/python3.11/os.py", ".ssh/id_rsa")
    (tmp_path / "p/lib").symlink_to("lib64")
    (tmp_path / "p/libexec").symlink_to("../.ssh")
    assert places_of(tmp_path, tmp_path / "p/bin/python3") == {"p/bin", "p/lib", "p/lib64"}


def test_of_the_repository_s_own_folders_on_path_no_link_is_followed(tmp_path: Path) -> None:
    make(tmp_path, ".ssh/id_rsa", "tools/bin/x", "project/x")
    (tmp_path / "project/bin").mkdir()
    (tmp_path / "project/bin/key").symlink_to("../../.ssh/id_rsa")
    (tmp_path / "project/bin/tool").symlink_to("../../tools/bin/x")
    (tmp_path / "other").symlink_to("project")
    for path in ("project/bin", "other/bin"):
        assert tool_places({"PATH": f"{tmp_path}/{path}"}, (), tmp_path / "project") == ()


def test_shims_are_shown_with_what_they_start(tmp_path: Path) -> None:
    make(
        tmp_path, ".pyenv/shims/python", ".pyenv/libexec/pyenv", ".pyenv/versions/3.11/bin/python", ".pyenv/x"
    )
    assert shown(tmp_path, "~/.pyenv/shims") == {".pyenv/shims", ".pyenv/libexec", ".pyenv/versions"}


def test_a_linked_tool_is_shown_where_it_stands(tmp_path: Path) -> None:
    make(tmp_path, "tools/ruff/bin/ruff", "tools/ruff/lib/x", "tools/ruff/notes", "scripts/run.sh")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ruff").symlink_to(tmp_path / "tools/ruff/bin/ruff")
    (tmp_path / "bin/run").symlink_to("../scripts/run.sh")
    assert shown(tmp_path, "~/bin") == {"bin", "tools/ruff/bin", "tools/ruff/lib", "scripts/run.sh"}


def test_folders_of_pythonpath_are_shown(tmp_path: Path) -> None:
    make(tmp_path, "shared/x.py")
    assert shown(tmp_path, PYTHONPATH=f"{tmp_path}/shared:relative:/nowhere") == {"shared"}


@pytest.mark.parametrize("command", ["python -c 'unfinished", ""])
def test_a_command_that_is_no_list_of_words_names_no_program(command: str, tmp_path: Path) -> None:
    assert shown(tmp_path, command=command) == set()
