"""How a repository's tests in Python are run, judging by its files: by pytest, by unittest, or by the command of Django or nose2."""

import shlex
from collections.abc import Callable

from clean_room_agent.languages.jsonc import as_object
from clean_room_agent.languages.repository_files import LOOKED_AT, RepositoryFiles

PYTEST_FILES = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"})
PYTEST_SECTIONS = (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"))
PACKAGERS = (
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("pdm.lock", "pdm"),
    ("Pipfile.lock", "pipenv"),
    ("Pipfile", "pipenv"),
    ("pixi.lock", "pixi"),
    ("pixi.toml", "pixi"),
    ("uv.toml", "uv"),
    ("requirements.lock", "rye"),
)
"""What tells that an environment outside the tree is entered by `TOOL run`: a file, or a table of the tool."""
PROJECT_FILES = (
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "manage.py",
    "tox.ini",
    *sorted(PYTEST_FILES - {"conftest.py"}),
)
"""What begins a project."""


def pytest_command(files: RepositoryFiles) -> str:
    """The command of pytest, or of hatch's script that stands for it; "" if the tests are run in another way."""
    return _in_project(files, _pytest_command)


def unittest_command(files: RepositoryFiles) -> str:
    """The command of unittest, Django or nose2, where neither a configuration nor an import shows pytest; "" otherwise."""
    return _in_project(files, _unittest_command)


def _in_project(files: RepositoryFiles, find: Callable[[RepositoryFiles], str]) -> str:
    """The command that is found in the one project to which all tests belong: at the top, or in a folder."""
    folder = "" if files.first(PROJECT_FILES) else _project_folder(files)
    if not folder:
        return find(files)
    command = find(files.below(folder))
    return f"cd {shlex.quote(folder)} && {command}" if command else ""


def _project_folder(files: RepositoryFiles) -> str:
    """The outermost folder of a project in which all tests are; "" if there is none."""
    begun = sorted(path.rpartition("/")[0] for name in PROJECT_FILES for path in files.nearest(name))
    tests = files.python_tests
    return next((one for one in begun if tests and all(path.startswith(f"{one}/") for path in tests)), "")


def _pytest_command(files: RepositoryFiles) -> str:
    if not _configures_pytest(files):
        if _own_command(files) or (files.python_tests and _unittest_command(files)):
            return ""
        if not files.python_tests:
            return _hatch_script(files)
    return _hatch_script(files) or _default_pytest_command(files)


def _unittest_command(files: RepositoryFiles) -> str:
    if _configures_pytest(files):
        return ""
    if own := _own_command(files):
        return own
    texts = [files.text(path) for path in files.python_tests[:LOOKED_AT]]
    if any("import pytest" in text or "from pytest" in text for text in texts):
        return ""
    options = _unittest_options(files) if any("unittest" in text for text in texts) else None
    return "" if options is None else f"{_python_command(files)} -m unittest {options}"


def _own_command(files: RepositoryFiles) -> str:
    """That of Django or nose2; "" where neither is used."""
    if "manage.py" in files.paths:
        return f"{_python_command(files)} manage.py test"
    return f"{_python_command(files)} -m nose2 -v" if files.first(("nose2.cfg", "unittest.cfg")) else ""


def _configures_pytest(files: RepositoryFiles) -> bool:
    return (
        any(path.rpartition("/")[2] in PYTEST_FILES for path in files.paths)
        or "pytest" in files.tools
        or any(section in files.text(name) for name, section in PYTEST_SECTIONS)
    )


def _unittest_options(files: RepositoryFiles) -> str | None:
    """The options with which unittest finds all tests; None if it would not: it looks into packages alone."""
    tests = files.python_tests
    if not all(path.rpartition("/")[2].startswith("test") for path in tests):
        return None
    starts = {_outside_packages(files, path.rpartition("/")[0]) for path in tests}
    if len(starts) > 1:
        return None
    start = starts.pop()
    return f"discover -v -s {start}" if start else "-v"


def _outside_packages(files: RepositoryFiles, folder: str) -> str:
    """The innermost folder from which `folder` is reached through packages only."""
    while folder and f"{folder}/__init__.py" in files.paths:
        folder = folder.rpartition("/")[0]
    return folder


def _environment_python(files: RepositoryFiles) -> str:
    """The Python of an environment in the tree; "" if there is none."""
    return next(
        (f"{name}/bin/python" for name in (".venv", "venv") if (files.top / name / "bin/python").exists()), ""
    )


def _package_manager(files: RepositoryFiles) -> str:
    return next((tool for name, tool in PACKAGERS if name in files.paths or tool in files.tools), "")


def _python_command(files: RepositoryFiles) -> str:
    packager = _package_manager(files)
    return _environment_python(files) or (f"{packager} run python" if packager else "python3")


def _default_pytest_command(files: RepositoryFiles) -> str:
    packager = _package_manager(files)
    is_entered = packager and not _environment_python(files)
    start = f"{packager} run pytest -q" if is_entered else f"{_python_command(files)} -m pytest -q"
    return start + _other_names(files)


def _other_names(files: RepositoryFiles) -> str:
    """The option for files of tests by whose names pytest finds none; "" if it finds some, or the repository says where they are."""
    names = {path.rpartition("/")[2] for path in files.python_tests}
    found = any(name.startswith("test_") or name.endswith("_test.py") for name in names)
    if found or not names or _configures_pytest(files):
        return ""
    return f" -o python_files={shlex.quote(' '.join(sorted(names)))}"


def _hatch_script(files: RepositoryFiles) -> str:
    """The script called test of one of hatch's environments, or its own command for tests; "" if there is neither."""
    if _environment_python(files):
        return ""
    environments = as_object({**as_object(files.tools.get("hatch")), **files.toml("hatch.toml")}.get("envs"))
    for name, table in sorted(environments.items(), key=lambda entry: entry[0] != "default"):
        if "test" in as_object(as_object(table).get("scripts")):
            return "hatch run test" if name == "default" else f"hatch run {name}:test"
    return "hatch test" if "hatch-test" in environments else ""
