"""How a repository's tests in Python are run, judging by its files: by pytest, by unittest, or by Django's command."""

from clean_room_agent.config import load_toml
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
)
"""What tells that an environment outside the tree is entered by `TOOL run`: a file, or a table of the tool."""


def pytest_command(files: RepositoryFiles) -> str:
    """The command of pytest, or of hatch's script that stands for it; "" if the tests are run in another way."""
    if not _configures_pytest(files):
        if _django_command(files) or (files.python_tests and unittest_command(files)):
            return ""
        if not files.python_tests:
            return _hatch_script(files)
    return _hatch_script(files) or _pytest(files)


def unittest_command(files: RepositoryFiles) -> str:
    """The command of unittest, or Django's own, where neither a configuration nor an import shows pytest; "" otherwise."""
    if _configures_pytest(files):
        return ""
    if django := _django_command(files):
        return django
    texts = [files.text(path) for path in files.python_tests[:LOOKED_AT]]
    if any("import pytest" in text or "from pytest" in text for text in texts):
        return ""
    options = _unittest_options(files) if any("unittest" in text for text in texts) else None
    return "" if options is None else f"{_interpreter(files)} -m unittest {options}"


def _django_command(files: RepositoryFiles) -> str:
    django = files.nearest("manage.py")[:1]
    if not django or not (files.python_tests or django == ["manage.py"]):
        return ""
    folder = django[0].rpartition("/")[0]
    return (f"cd {folder} && " if folder else "") + f"{_interpreter(files)} manage.py test"


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


def _environment(files: RepositoryFiles) -> str:
    """The Python of an environment in the tree; "" if there is none."""
    return next(
        (f"{name}/bin/python" for name in (".venv", "venv") if (files.top / name / "bin/python").exists()),
        "",
    )


def _packager(files: RepositoryFiles) -> str:
    return next((tool for name, tool in PACKAGERS if name in files.paths or tool in files.tools), "")


def _interpreter(files: RepositoryFiles) -> str:
    packager = _packager(files)
    return _environment(files) or (f"{packager} run python" if packager else "python3")


def _pytest(files: RepositoryFiles) -> str:
    packager = _packager(files)
    if packager and not _environment(files):
        return f"{packager} run pytest -q"
    return f"{_interpreter(files)} -m pytest -q"


def _hatch_script(files: RepositoryFiles) -> str:
    """The script called test of one of hatch's environments, or its own command for tests; "" if there is neither."""
    if _environment(files):
        return ""
    try:
        own = load_toml(files.text("hatch.toml"))
    except (ValueError, RecursionError):
        own = {}
    environments = as_object({**as_object(files.tools.get("hatch")), **own}.get("envs"))
    for name, table in sorted(environments.items(), key=lambda entry: entry[0] != "default"):
        if "test" in as_object(as_object(table).get("scripts")):
            return "hatch run test" if name == "default" else f"hatch run {name}:test"
    return "hatch test" if "hatch-test" in environments else ""
