"""A configuration that is wrong: refused before anything is done, with the key, the file and the remedy."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field
from testing.runs.solving import Project

from clean_room_agent.workspace import Workspace


class Wrong(Struct, frozen=True, kw_only=True):
    """A change to the configuration's text, or to its values; what the user is told."""

    said: str
    hint: str
    replace: tuple[str, str] = ("", "")
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


WRONG = {
    "a wrong key": Wrong(
        replace=("timeout = 60.0", "time_out = 60.0"),
        said="{file}: [testing] time_out: unknown key (did you mean 'timeout'?)",
        hint="`cra init --print --repo",
    ),
    "a wrong value": Wrong(
        tables={"solve": {"max_attempts": 0}}, said="[solve] max_attempts: ", hint="fix it in the file"
    ),
    "a missing model": Wrong(
        replace=('coding = "coder:3b"', ""),
        said="[models] coding: required, but missing",
        hint="run `cra init --repo",
    ),
    "a reserve beyond the window, by flags": Wrong(
        flags=("--context-window", "1000", "--reserved-tokens", "2000"),
        said="[budget] reserved_tokens: 2000 leaves nothing of context_window = 1000",
        hint="a quarter of the window is a good reserve",
    ),
    "a server on another machine": Wrong(
        tables={"models": {"base_url": "http://192.0.2.1:11434"}},
        said="[models] base_url: http://192.0.2.1:11434 is not this machine, and prompts hold your code",
        hint="use a server on 127.0.0.1, or set allow_remote = true in [models]",
    ),
    "a stage that there is not": Wrong(
        tables={"stages": {"default": "scope,magic"}},
        said="unknown stage 'magic'",
        hint="`[stages] default` know these: scope, precision",
    ),
    "an override of a prompt that there is not": Wrong(
        tables={"models": {"overrides": {"implment": "coder:7b"}}}, said="implment", hint="implement"
    ),
    "no TOML": Wrong(
        replace=("[solve]", "[solve"),
        said="{file} is not valid TOML: ",
        hint="fix the line that the message names",
    ),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_configuration_is_refused_with_key_file_and_remedy(till: Project, name: str) -> None:
    wrong = WRONG[name]
    file = Workspace(repo=till.top).config
    till.configure("http://127.0.0.1:9", **wrong.tables)
    text = file.read_text()
    assert wrong.replace[0] in text
    file.write_text(text.replace(*wrong.replace, 1) if wrong.replace[0] else text)
    told = till.cra("solve", till.task, *wrong.flags)
    assert (told.code, told.traces, told.branches, told.out, told.sessions) == (2, {}, (), "", ()), told.err
    assert told.err.startswith("error: ")
    assert wrong.said.format(file=file) in told.err
    assert wrong.hint in told.err
    assert told.recorded.run is None
    assert told.recorded.calls == ()
    assert "Traceback" not in told.err


def test_a_task_without_words_is_refused(till: Project) -> None:
    till.configure("http://127.0.0.1:9")
    told = till.cra("solve", "  ")
    assert (told.code, told.traces, told.recorded.run) == (2, {}, None)


@pytest.mark.parametrize(
    ("content", "flag", "said"),
    [
        ("steps:\n  - do it\n", "--plan", "{file} is not valid JSON: "),
        ("[1, 2]", "--meta-plan", "{file}: a plan is a JSON object"),
    ],
)
def test_a_plan_file_that_cannot_be_used_is_refused(
    till: Project, tmp_path: Path, content: str, flag: str, said: str
) -> None:
    """Each fault of a plan is in `tests/execute/test_plan_file.py`."""
    file = tmp_path / "plan.json"
    file.write_text(content)
    till.configure("http://127.0.0.1:9")
    told = till.cra("solve", till.task, flag, str(file))
    assert (told.code, told.traces, told.out, told.recorded.run) == (2, {}, "", None), told.err
    assert told.err.startswith(f"error: {said.format(file=file)}")


def test_two_plans_exclude_one_another(till: Project, tmp_path: Path) -> None:
    till.configure("http://127.0.0.1:9")
    told = till.cra("solve", till.task, "--plan", str(tmp_path / "a"), "--meta-plan", str(tmp_path / "b"))
    assert (told.code, told.traces) == (2, {})
    assert "--plan and --meta-plan exclude each other" in told.err
