"""`cra check`: a line a subject, each failure with its remedy, and the exit code of the first."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testing.runs.solving import Project, Told
from testing.sandboxes import installed, on_disk
from testing.servers.ollama_script import Answer
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer
from tests.cli.conftest import Knowing

from clean_room_agent.app.record_check import CheckFinding
from clean_room_agent.cli.main import run
from clean_room_agent.sandbox.escapes import BECOME_NOBODY
from clean_room_agent.workspace import Workspace

__all__ = ["on_disk"]  # in the place of `tmp_path`

NOWHERE = "http://127.0.0.1:1"


def checked(till: Project, base_url: str, *flags: str, **tables: Mapping[str, Any]) -> Told:
    till.configure(base_url, **tables)
    return till.cra("check", *flags)


def lines(out: str) -> dict[str, str]:
    """Name -> "ok" or "FAIL", of the printed lines; the last of each name."""
    found = [line.split(maxsplit=1) for line in out.splitlines() if not line.startswith(" ")]
    return {rest.partition(":")[0]: mark for mark, rest in found}


def test_where_everything_works_every_line_is_ok_and_the_code_0(till: Project, answers: Knowing) -> None:
    with OllamaServer(answers) as server:
        told = checked(till, server.base_url)
    assert told.code == 0, told.out
    assert set(lines(told.out).values()) == {"ok"}
    assert told.err.count("note: asking ") == 1
    assert {"git", "repository", "worktree", "model server", "model", "window", "structured answers"} <= set(
        lines(told.out)
    )
    assert told.traces == {}
    assert told.sessions == ()


def test_json_is_one_object_and_nothing_else(till: Project, answers: Knowing) -> None:
    with OllamaServer(answers) as server:
        told = checked(till, server.base_url, "--json")
    answer = json.loads(told.out)
    assert (answer["ok"], answer["exit_code"], told.code) == (True, 0, 0)
    assert {tuple(check) for check in answer["checks"]} == {("name", "ok", "text", "remedy")}


def test_without_configuration_the_rest_is_still_checked(till: Project) -> None:
    told = till.cra("check")
    assert told.code == 2
    assert lines(told.out)["configuration"] == "FAIL"
    assert lines(told.out)["index"] == "ok"
    assert "cra init" in told.out


def test_without_a_server_the_code_is_3_with_a_remedy(till: Project) -> None:
    told = checked(till, NOWHERE, "--json")
    failed = [check for check in json.loads(told.out)["checks"] if not check["ok"]]
    assert told.code == 3
    assert [check["name"] for check in failed] == ["model server"]
    assert failed[0]["remedy"]


def test_the_server_of_a_role_is_checked_too(till: Project, answers: Knowing) -> None:
    with (
        OllamaServer(answers, models=["thinker:4b"]) as thinker,
        OllamaServer(answers, models=["coder:3b"]) as coder,
    ):
        told = checked(
            till, thinker.base_url, "--json", models={"servers": {"coding": {"base_url": coder.base_url}}}
        )
        models = till.cra("models")
    found = json.loads(told.out)["checks"]
    assert [line["text"] for line in found if not line["ok"]] == []
    assert [line["text"].partition(",")[0] for line in found if line["name"] == "model server"] == [
        coder.base_url,
        thinker.base_url,
    ]
    assert f"{coder.base_url} and {thinker.base_url}" in " ".join(models.out.split())
    down = till.cra("check")
    assert (down.code, down.out.count("no model server answers")) == (3, 2)


def test_a_model_that_the_server_lacks_is_named(till: Project, answers: Knowing) -> None:
    with OllamaServer(answers, models=["thinker:4b"]) as server:
        told = checked(till, server.base_url)
    assert told.code == 3
    assert "coder:3b" in told.out
    assert "structured answers" not in lines(told.out)


def test_a_server_that_cuts_in_silence_is_found_out(till: Project, answers: Knowing) -> None:
    with OllamaServer(answers, overflow="silent") as server:
        told = checked(till, server.base_url)
    assert told.code == 3
    assert lines(told.out)["window"] == "FAIL"
    assert "allow_truncating_server" in told.out


def test_a_model_that_does_not_keep_to_the_shape_is_told_of(till: Project) -> None:
    with OllamaServer(lambda _: "seven, I think") as server:
        told = checked(till, server.base_url)
    assert told.code == 3
    assert lines(told.out)["structured answers"] == "FAIL"


def test_a_model_that_thinks_although_it_is_told_not_to_is_told_of(till: Project) -> None:
    with OllamaServer(lambda _: Answer(thinking="Seven, or is it?")) as server:
        told = checked(till, server.base_url)
    assert told.code == 3
    assert "went into thinking, and no answer followed" in " ".join(told.out.split())
    assert "--reasoning-budget 0" in told.out


def test_a_test_command_whose_program_is_missing_is_named(till: Project) -> None:
    told = checked(till, NOWHERE, testing={"test_command": "no-such-runner --all"})
    assert told.code == 2
    assert "no-such-runner" in told.out


def test_a_test_command_that_waits_for_changes_is_told_before_it_runs(till: Project) -> None:
    (till.top / "package.json").write_text('{"scripts": {"test": "jest --watch"}}')
    told = checked(till, NOWHERE, testing={"test_command": "npm test"})
    assert lines(told.out)["test command"] == "FAIL"
    assert "npm test: it waits for changes (--watch), so it never ends" in " ".join(told.out.split())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("python3 -m pytest -k it's", "the shell cannot read it: "),
        ('cd "o\'neil" && python3 -m pytest', ""),
        ('X="it\'s" python3 -m pytest -k "it\'s" # it\'s all', ""),
        ('("no\'such" -q)', 'there is no program "no\'such"'),
    ],
)
def test_a_test_command_with_an_apostrophe_is_read_as_the_shell_does(
    till: Project, command: str, said: str
) -> None:
    told = checked(till, NOWHERE, testing={"test_command": command})
    assert lines(told.out)["test command"] == ("FAIL" if said else "ok")
    assert said in told.out


def test_outside_a_repository_it_ends_there(till: Project) -> None:
    told = till.cra("check", within=till.home)
    assert told.code == 2
    assert lines(told.out)["repository"] == "FAIL"
    assert "configuration" not in lines(told.out)


def test_a_server_whose_window_is_smaller_than_configured_is_told_with_its_own(
    till: Project, answers: Knowing
) -> None:
    with OpenAiServer(answers, window=8_192) as server:
        told = checked(till, server.base_url, models={"provider": "openai"})
    assert told.code == 3
    assert "set context_window = 8192 or less" in told.out


def test_a_server_that_drops_long_prompts_without_a_word_is_found_out(
    till: Project, answers: Knowing
) -> None:
    with OpenAiServer(answers, kind="mute", window=16_384) as server:
        told = checked(till, server.base_url, models={"provider": "openai"})
    assert told.code == 3
    assert lines(told.out)["window"] == "FAIL"


def test_a_server_without_probabilities_is_told_of_and_good_enough(till: Project, answers: Knowing) -> None:
    with OpenAiServer(answers, logprobs=False, window=16_384) as server:
        told = checked(till, server.base_url, models={"provider": "openai"})
    assert told.code == 0
    assert "the server gives no token probabilities" in told.out


def test_a_key_that_the_environment_lacks_is_named_and_one_that_it_has_is_sent(
    till: Project, answers: Knowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAiServer(answers, window=16_384, key="s3cret") as server:
        told = checked(till, server.base_url, models={"provider": "openai", "api_key_env": "CRA_TEST_KEY"})
        assert told.code == 2
        assert "there is no environment variable CRA_TEST_KEY" in told.out
        monkeypatch.setenv("CRA_TEST_KEY", "s3cret")
        assert till.cra("check").code == 0
    assert b"s3cret" not in Workspace(repo=till.top).raw.read_bytes()


def test_the_sandbox_has_a_line_in_every_mode(till: Project) -> None:
    till.configure(NOWHERE)
    assert "no sandbox: the tests run model-written code with your privileges" in till.cra("check").out
    installed()
    for mode in ("auto", "bwrap"):
        till.configure(NOWHERE, sandbox={"mode": mode})
        assert re.search(r"ok +sandbox: bubblewrap [\d.]+ works", till.cra("check").out)


def test_check_sandbox_tries_to_get_out_and_counts(till: Project) -> None:
    installed()
    told = till.cra("check", "--sandbox", "--json")
    assert told.code == 0
    lines = [line["text"] for line in json.loads(told.out)["checks"][1:]]
    root = os.geteuid() == 0 and shutil.which(BECOME_NOBODY[0]) is not None
    assert lines == ["blocked 10/10"] * (1 + root)


def test_the_tests_are_run_once_in_the_users_tree_and_timed(till: Project) -> None:
    till.configure(NOWHERE)
    told = till.cra("check", "--tests")
    assert told.code == 0, told.out + told.err
    assert re.search(
        r"ok   test_command: 3 passed, 1 failed in \d+\.\d s \(unittest, without a sandbox\)", told.out
    )
    assert "failing tests: already fail before any change, and may keep failing where" in told.out
    assert "test_split_keeps_every_cent" in told.out
    assert told.traces == {}
    assert told.before == told.after


def test_a_module_that_tests_lack_is_named_with_a_remedy(till: Project) -> None:
    (till.top / "tests" / "test_new.py").write_text("import frobnicator_x\nimport till.nothing\n")
    till.configure(NOWHERE)
    told = till.cra("check", "--tests", "--json")
    checks = {check["name"]: check for check in json.loads(told.out)["checks"]}
    assert told.code == 2
    assert checks["dependencies"]["text"] == "missing: frobnicator_x"
    assert "[worktree] link" in checks["dependencies"]["remedy"]


@pytest.mark.parametrize(
    ("command", "timeout", "said"),
    [
        ("no-such-program", 60.0, "cannot be started"),
        ("sleep 30", 1.0, "did not end within 1 s"),
        ("python3 -m unittest discover -p none.py", 60.0, "finds no tests"),
        ("echo hi", 60.0, "exits with 0, and no test is seen to run: hi"),
    ],
)
def test_tests_that_cannot_judge_say_what_to_set(
    command: str, timeout: float, said: str, till: Project
) -> None:
    till.configure(NOWHERE, testing={"test_command": command, "timeout": timeout})
    told = till.cra("check", "--tests")
    assert told.code == 2
    assert said in told.out
    assert "[testing]" in told.out
    assert told.traces == {}


def test_the_quick_command_of_steps_is_run_too(till: Project) -> None:
    till.configure(
        NOWHERE, testing={"step_test_command": "python3 -m unittest -q tests.test_money.MoneyTest.test_total"}
    )
    told = till.cra("check", "--tests")
    assert lines(told.out)["step_test_command"] == "ok"


def test_a_remedy_names_a_command_that_works_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = CheckFinding(name="runs", ok=False, text="it has no process", remedy="`cra discard 1234`")
    monkeypatch.setattr("clean_room_agent.cli.check.record_checks", lambda _repo, **_: iter((fault,)))
    assert run(["check", "--record", "--repo", str(tmp_path)]) == fault.exit_code
    assert f"-> `cra discard 1234 --repo {tmp_path}`" in capsys.readouterr().out
