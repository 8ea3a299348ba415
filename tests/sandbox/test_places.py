from pathlib import Path

import pytest

from clean_room_agent.sandbox.places import interpreter_places, tool_places


def make(home: Path, *names: str) -> None:
    for name in names:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
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


def test_an_environment_s_interpreter_is_found_along_its_links(tmp_path: Path) -> None:
    make(tmp_path, "uv/cpython-3.11.9/bin/python3.11", "uv/cpython-3.11.9/lib/os.py", "env/pyvenv.cfg")
    (tmp_path / "uv/cpython-3.11").symlink_to("cpython-3.11.9")
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to(tmp_path / "uv/cpython-3.11/bin/python3.11")
    (tmp_path / "env/bin/python3").symlink_to("python")
    places = {str(place.relative_to(tmp_path)) for place in interpreter_places(tmp_path / "env")}
    assert places == {"uv/cpython-3.11/bin", "uv/cpython-3.11/lib"}


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
