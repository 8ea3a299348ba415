"""`cra retrieve`: the room for a task in four forms, with a model or by score alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from testing.runs.solving import MONEY, PROBE, Project, Script
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

FLAGS = ("--no-model", "--context-window", "16384", "--reserved-tokens", "4096")
FORMATS = ("text", "json", "markdown", "prompt")


@pytest.fixture
def till(indexed: Project) -> Project:
    return indexed


def as_json(till: Project, *flags: str) -> dict[str, Any]:
    told = till.cra("retrieve", till.task, *flags, "--json")
    assert told.code == 0, told.err
    answer: dict[str, Any] = json.loads(told.out)
    return answer


def test_flags_alone_are_enough_without_a_model(till: Project) -> None:
    answer = as_json(till, *FLAGS)
    assert "till/money.py" in {item["path"] for item in answer["items"]}
    assert answer["budget"]["context_window"] == 16_384
    assert 0 < answer["budget"]["used_tokens"] <= 16_384 - 4_096


def test_the_json_has_the_shape_that_other_tools_are_told_of(till: Project) -> None:
    answer = as_json(till, *FLAGS)
    assert {"task_id", "items", "candidates", "dropped", "budget"} <= set(answer)
    for candidate in answer["candidates"]:
        assert {"path", "score", "tier", "reasons"} <= set(candidate)
        assert candidate["path"]
        assert all(isinstance(reason, str) for reason in candidate["reasons"])
    assert [entry["path"] for entry in answer["candidates"]] == list(
        dict.fromkeys(entry["path"] for entry in answer["candidates"])
    )
    (money,) = [entry for entry in answer["candidates"] if entry["path"] == "till/money.py"]
    assert money["included"]
    assert money["reasons"]


def test_every_file_found_is_a_candidate_best_first_though_few_are_judged(till: Project) -> None:
    till.configure("http://127.0.0.1:1", judgments={"top_k": 1})
    answer = as_json(till, "--no-model")
    ranked = [(min(entry["tier"], 2), -entry["score"], entry["path"]) for entry in answer["candidates"]]
    assert len(ranked) > 2
    assert ranked == sorted(ranked)
    assert {entry["path"] for entry in answer["judged"]} <= {entry["path"] for entry in answer["candidates"]}


def test_without_any_configuration_a_window_is_assumed_and_said(till: Project) -> None:
    told = till.cra("retrieve", till.task, "--no-model", "--json")
    assert told.code == 0
    assert "--context-window 32768 --reserved-tokens 8192" in told.err
    budget = json.loads(told.out)["budget"]
    assert (budget["context_window"], budget["reserved_tokens"]) == (32_768, 8_192)


def test_an_item_holds_the_lines_that_it_names(till: Project) -> None:
    lines = MONEY.splitlines(keepends=True)
    items = [item for item in as_json(till, *FLAGS)["items"] if item["path"] == "till/money.py"]
    whole = [item for item in items if item["detail"] != "type_context"]
    assert whole
    for item in whole:
        assert item["text"].rstrip() == "".join(lines[item["start_line"] - 1 : item["end_line"]]).rstrip()


def test_with_a_model_its_verdicts_decide(till: Project) -> None:
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        answer = as_json(till)
    assert server.calls
    assert {item["path"] for item in answer["items"] if item["detail"] == "primary"} == {"till/money.py"}
    assert any("judged" in entry["reason"] for entry in answer["judged"])


def test_without_a_model_none_is_asked_though_one_is_configured(till: Project) -> None:
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        as_json(till, "--no-model")
    assert server.requests == []


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_shows_the_code_or_names_it(form: str, till: Project) -> None:
    told = till.cra("retrieve", till.task, *FLAGS, "--format", form)
    assert told.code == 0
    assert told.err == ""
    assert "till/money.py" in told.out
    assert ("def split(cents, people):" in told.out) == (form != "text")


def test_the_table_says_why_and_what_it_costs(till: Project) -> None:
    told = till.cra("retrieve", "shares of cents do not add up to the sum", *FLAGS)
    assert "till/money.py" in told.out
    assert "  score 1.00\n" in told.out
    assert "judged by score alone: no model was asked" in told.out
    assert "of 12,288 tokens used" in told.out


def test_a_function_that_the_task_names_is_shown_by_its_name(till: Project) -> None:
    told = till.cra("retrieve", "fix split()", *FLAGS, "--format", "json")
    assert "def split(cents, people):" in told.out


def test_the_task_can_come_from_a_file(till: Project, tmp_path: Path) -> None:
    issue = tmp_path / "issue.md"
    issue.write_text(till.task + "\n\nmore words\n")
    told = till.cra("retrieve", "--issue", str(issue), *FLAGS, "--format", "markdown")
    assert told.out.startswith(f"# Task\n\n{till.task}\n\nmore words\n")


@pytest.mark.parametrize("words", [[], ["one", "--issue", "-"], ["  "]])
def test_the_task_is_said_once_and_is_not_empty(words: list[str], till: Project) -> None:
    told = till.cra("retrieve", *words, *FLAGS)
    assert (told.code, told.out) == (2, "")
    assert "task" in told.err


def test_without_configuration_the_way_without_a_model_is_named(till: Project) -> None:
    told = till.cra("retrieve", till.task)
    assert told.code == 2
    assert "cra init" in told.err
    assert "--no-model" in told.err


def test_a_model_whose_verdicts_cannot_be_read_is_said_to_be_too_weak(till: Project) -> None:
    right = Script(till.oracle)

    def perhaps(call: ChatCall) -> Answer | str:
        return right(call) if call.prompt.startswith(PROBE) else "perhaps"

    with OllamaServer(perhaps) as server:
        till.configure(server.base_url, judgments={"route": "each"})
        told = till.cra("retrieve", till.task)
    assert told.code == 0, told.err
    assert re.search(r"^(\d+) of \1 answers to scope_judgment could not be read$", told.err, re.MULTILINE)
    assert "this model is too weak to judge what the task needs" in told.err
