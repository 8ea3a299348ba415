"""What `cra init` can find by looking: how the repository runs its tests, and what the model server offers."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.exchange import ServedModel

DEFAULT_URL = "http://127.0.0.1:11434"
USUAL_WINDOW = 32_768
LOCKS = (("pnpm-lock.yaml", "pnpm test"), ("yarn.lock", "yarn test"), ("package.json", "npm test"))
MAKE_TARGET = re.compile(r"^(test|check):", re.MULTILINE)
LOOKED_AT = 40
"""Test files read to see which framework they use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A model server that answered."""

    base_url: str
    version: str
    models: tuple[ServedModel, ...]


def find_test_command(top: Path) -> str | None:
    """The command that runs the repository's tests, as far as its files tell; None where they don't."""
    python = next(
        (f"{name}/bin/python" for name in (".venv", "venv") if (top / name / "bin/python").exists()),
        "python3",
    )
    if _uses_pytest(top):
        return f"{python} -m pytest -q"
    if _uses_unittest(top):
        return f"{python} -m unittest -v"
    if _has_npm_test(top):
        return next(command for name, command in LOCKS if (top / name).exists())
    makefile = top / "Makefile"
    found = MAKE_TARGET.search(_text(makefile)) if makefile.is_file() else None
    return f"make {found[1]}" if found else None


def find_server(base_url: str) -> FoundServer:
    """The server at `base_url` with its models.

    Raises:
        ModelError: nobody answers there, or not as a model server would.
    """
    from clean_room_agent.llm.transports.ollama import connect

    transport = connect(ModelsConfig(base_url=base_url, coding="none", reasoning="none"))
    return FoundServer(base_url=base_url, version=transport.version(), models=transport.list_models())


def find_window(base_url: str, tags: tuple[str, ...]) -> int:
    """The largest usual window that every one of the models was trained for, in tokens."""
    from clean_room_agent.llm.transports.ollama import connect

    transport = connect(ModelsConfig(base_url=base_url, coding="none", reasoning="none"))
    lengths = []
    for tag in tags:
        try:
            lengths.append(transport.show(tag).context_length)
        except ModelError:
            lengths.append(None)
    return min([USUAL_WINDOW, *(length for length in lengths if length)])


def suggest_models(models: tuple[ServedModel, ...]) -> tuple[str, str] | None:
    """(coding, reasoning) among what the server has: a coder for code where there is one; None where it has nothing."""
    tags = [model.tag for model in models if "embed" not in model.tag]
    if not tags:
        return None
    coding = next((tag for tag in tags if "coder" in tag or "code" in tag), tags[0])
    reasoning = next((tag for tag in tags if tag != coding and "code" not in tag), coding)
    return coding, reasoning


def _uses_pytest(top: Path) -> bool:
    if (top / "pytest.ini").exists() or (top / "conftest.py").exists():
        return True
    project = top / "pyproject.toml"
    if project.is_file():
        try:
            data = tomllib.loads(_text(project))
        except tomllib.TOMLDecodeError:
            data = {}
        if "pytest" in data.get("tool", {}):
            return True
    setup = top / "setup.cfg"
    if setup.is_file() and "[tool:pytest]" in _text(setup):
        return True
    tests = _python_tests(top)
    return any("import pytest" in _text(path) for path in tests) or (
        bool(tests) and not any("unittest" in _text(path) for path in tests)
    )


def _uses_unittest(top: Path) -> bool:
    return any("unittest" in _text(path) for path in _python_tests(top))


def _python_tests(top: Path) -> list[Path]:
    found = [
        path
        for folder in (top / "tests", top / "test", top)
        if folder.is_dir()
        for path in sorted(folder.glob("test*.py"))
    ]
    return [path for path in found if path.is_file()][:LOOKED_AT]


def _has_npm_test(top: Path) -> bool:
    package = top / "package.json"
    if not package.is_file():
        return False
    try:
        scripts = json.loads(_text(package)).get("scripts", {})
    except (ValueError, AttributeError):
        return False
    return "test" in scripts and "no test specified" not in scripts["test"]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
