import sys
from pathlib import Path

import pytest

from clean_room_agent import proc
from clean_room_agent.child_processes import inherited_environment
from clean_room_agent.orchestrator.testing.test_commands import (
    ANY_PYTHON,
    import_command,
    import_fault,
    interpreter_of,
)


@pytest.mark.parametrize(
    ("command", "interpreter"),
    [
        ("python -m pytest -q", "python"),
        ("/opt/venv/bin/python3.12 -m unittest", "/opt/venv/bin/python3.12"),
        ("cd src && PYTHONPATH='a b' python3 -m pytest", "PYTHONPATH='a b' python3"),
        ("/opt/venv/bin/pytest tests", "/opt/venv/bin/python"),
        ("X=1 pytest", f"X=1 {ANY_PYTHON}"),
        ("uv run pytest", "uv run python"),
        ("make test", ANY_PYTHON),
        ("pytest 'a", ANY_PYTHON),
    ],
)
def test_the_interpreter_is_that_of_the_tests(command: str, interpreter: str) -> None:
    assert interpreter_of(command) == interpreter


def tried(folder: Path, *paths: str, test_command: str = f"{sys.executable} -m unittest") -> tuple[str, bool]:
    done = proc.run(
        import_command(test_command, paths),
        cwd=folder,
        env=inherited_environment(without="PYTHON") | {"PYTHONPATH": f"{folder / 'src'}:{folder}"},
        timeout=60,
        check=False,
    )
    return import_fault(done.returncode, done.stdout.decode())


def write(folder: Path, path: str, text: str = "") -> str:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")
    return path


def test_modules_of_packages_of_folders_and_odd_names_are_imported(tmp_path: Path) -> None:
    write(tmp_path, "src/shop/__init__.py")
    paths = (
        write(tmp_path, "src/shop/money.py", "from . import bills\n"),
        write(tmp_path, "src/shop/bills.py", "from shop import money\n"),
        write(tmp_path, "plain/tool.py", "import plain.tool as me\n"),
        write(tmp_path, "odd-name/run-it.py", "X = 1\n"),
    )
    assert tried(tmp_path, *paths) == ("", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all\n", "line 1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f(x: Missing):\n    pass\n", "line 1: NameError: name 'Missing' is not defined"),
        ("def f(:\n", "SyntaxError: invalid syntax"),
        ("X = 1\n\nraise SystemExit(0)\n", "line 3: SystemExit: 0"),
    ],
)
def test_what_keeps_a_file_from_being_imported_is_said_and_can_be_mended(
    tmp_path: Path, text: str, said: str
) -> None:
    fault, repairable = tried(tmp_path, write(tmp_path, "shop.py", text))
    assert fault.startswith("cannot import shop.py: ")
    assert said in fault
    assert repairable


def test_a_module_that_another_one_hides_is_not_proven(tmp_path: Path) -> None:
    write(tmp_path, "shop.py")
    fault, _ = tried(tmp_path, write(tmp_path, "src/shop.py", "X = 1\n"))
    assert "shop is found at another place" in fault


def test_where_there_is_no_interpreter_nothing_can_be_mended(tmp_path: Path) -> None:
    fault, repairable = tried(tmp_path, write(tmp_path, "shop.py"), test_command="/nowhere/python -m pytest")
    assert (fault, repairable) == ("the import could not be tried: exit code 127", False)
