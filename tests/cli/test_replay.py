"""`cra replay` beyond the same run again: other models, other recordings, and the first difference for a program."""

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from testing.repositories import commit, git
from testing.runs.solving import Project, Script, Told, serving
from testing.servers.describing import DescribingModel
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.replaying import ComparedAnswers, Side, WhatIf
from clean_room_agent.cli.replay import comparison_object, render_comparison
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.llm.probes import ABOUT_NOTHING, NOTHING
from clean_room_agent.workspace import Workspace


def side(word: str) -> Side:
    return Side(
        answer=word or None,
        unreadable="" if word else "no text",
        prompt_tokens=10,
        completion_tokens=1,
        latency_ms=5,
    )


def compared(item: str, then: str, now: str) -> ComparedAnswers:
    return ComparedAnswers(
        pass_id="meta_plan",
        prompt="scope",
        item=item,
        call_id=7,
        decides=(item,),
        then=side(then),
        now=side(now),
    )


FOUND = WhatIf(
    replay_of="run",
    stage="scope",
    model="other",
    recorded=("first",),
    task_id="task",
    compared=(
        compared("a.py", "yes", "yes"),
        compared("b.py", "yes", "no"),
        compared("c.py", "yes", ""),
        compared("d.py", "", ""),
    ),
)


def test_what_differs_is_shown_with_what_it_decided() -> None:
    lines = render_comparison(FOUND).splitlines()
    assert lines[0] == "scope: asked again of other; recorded with first"
    assert "agree   meta_plan scope a.py: yes" in lines
    at = lines.index("DIFFER  meta_plan scope b.py")
    assert lines[at + 1 : at + 4] == [
        "          then yes",
        "          now  no",
        "          it decided about b.py",
    ]
    assert "2 of 4 agree" in lines
    assert lines[-1] == "now: 40 + 4 tokens, 20 ms, 2 unreadable"


def test_the_object_has_both_sides_of_each_question() -> None:
    told = comparison_object(FOUND)
    assert (told["replay_of"], told["agree"], told["differ"]) == ("run", 2, 2)
    assert (told["questions"][2]["now"]["answer"], told["questions"][2]["now"]["unreadable"]) == (
        None,
        "no text",
    )


MODELS = ("coder:3b", "thinker:4b", "other:1b")


class Unsure:
    """Answers as the script does, its verdicts with little confidence."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, call: ChatCall) -> Answer | str:
        said = self._script(call)
        if said not in ("yes", "no"):
            return said
        return Answer(text=str(said), likely=((str(said), 0.7), ("no" if said == "yes" else "yes", 0.3)))


def answers(till: Project, *flags: str, code: int = 0) -> dict[str, Any]:
    told = till.cra("replay", *flags, "--json")
    assert told.code == code, told.err
    assert told.traces == {}
    found = json.loads(told.out)
    assert isinstance(found, dict)
    return found


def recorded(till: Project, column: str, where: str) -> list[Any]:
    with closing(sqlite3.connect(Workspace(repo=till.top).raw)) as conn:
        return [
            row[0]
            for row in conn.execute(f"SELECT {column} FROM retrieval_llm_calls WHERE {where} ORDER BY id")
        ]


def enrich_and_promote(till: Project, model: DescribingModel) -> None:
    with OllamaServer(model) as server:
        till.configure(server.base_url)
        assert till.cra("enrich", "--promote").code == 0


def test_a_replay_has_the_descriptions_that_the_run_had_and_no_others(till: Project) -> None:
    commit(till.top, {"weather/rain.py": "def umbrella():\n    return 1\n"}, "Mind the rain")
    enrich_and_promote(till, DescribingModel())
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("solve", till.task)
        assert told.code == 0, told.err
    assert told.recorded.run is not None
    task = told.recorded.run.task_id
    assert "described by the concept 'cents'" in till.cra("show", task[:8], "--why", "weather/rain.py").out
    git(till.top, "commit", "-q", "--allow-empty", "-m", "Something else")
    (till.top / "till/money.py").write_text("# begun anew\n")
    enrich_and_promote(till, DescribingModel())
    again = answers(till, task[:8])
    assert again["same"] is True
    assert answers(till, again["task_id"][:8])["same"] is True, "a replay can be replayed"


def test_another_model_that_says_the_same_agrees_everywhere(till: Project, solved: str) -> None:
    with serving(till, models=MODELS) as server:
        till.configure(server.base_url)
        found = answers(till, solved, "--stage", "scope", "--model", "other:1b")
        assert {call.model for call in server.calls} == {"other:1b"}
        asked = [call.prompt for call in server.calls]
    assert found["agree"] == len(found["questions"]) > 0
    assert found["differ"] == 0
    assert (found["model"], found["recorded_models"]) == ("other:1b", ["thinker:4b"])
    assert found["now"]["prompt_tokens"] == found["then"]["prompt_tokens"] > 0
    assert asked == recorded(till, "prompt", f"task_id LIKE '{solved}%' AND stage_name = 'scope'")
    assert set(recorded(till, "model", f"task_id LIKE '{found['task_id']}%'")) == {"other:1b"}


def test_where_another_model_differs_both_answers_stand_side_by_side(till: Project, solved: str) -> None:
    script = Script(
        till.oracle, every=lambda call, right: '{"relevant": [0]}' if right == '{"relevant": []}' else right
    )
    with OllamaServer(script, models=MODELS) as server:
        till.configure(server.base_url)
        told = till.cra("replay", solved, "--stage", "scope", "--model", "other:1b")
        found = answers(till, solved, "--stage", "scope", "--model", "other:1b")
    assert told.code == 0
    assert "DIFFER" in told.out
    assert '          then {"relevant": []}\n          now  {"relevant": [0]}\n' in told.out
    assert " agree\n" in told.out
    differing = [each for each in found["questions"] if not each["agree"]]
    assert len(differing) == found["differ"] > 0
    assert all(each["decides"] for each in differing)
    assert all(each["then"]["answer"] != each["now"]["answer"] for each in differing)


def test_one_prompt_can_be_asked_again_and_an_unreadable_answer_is_a_difference(
    till: Project, solved: str
) -> None:
    with OllamaServer(lambda _: "I would rather not.", models=MODELS) as server:
        till.configure(server.base_url)
        found = answers(till, solved, "--stage", "implement", "--model", "other:1b")
        assert {call.title for call in server.calls} == {IMPLEMENT.title}
    assert found["differ"] == len(found["questions"])
    assert (found["then"]["unreadable"], found["now"]["unreadable"]) == (0, len(found["questions"]))
    assert all(each["now"]["unreadable"] for each in found["questions"])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--stage", "scope"), "--stage and --model need each other"),
        (("--model", "x"), "--stage and --model need each other"),
        (("--stage", "scope", "--model", "x", "--from", "meta_plan"), "exclude each other"),
        (("--stage", "nothing", "--model", "x"), "it asked in: "),
        (("--from", "nowhere"), "its passes: meta_plan, "),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    flags: tuple[str, ...], said: str, till: Project, solved: str
) -> None:
    till.configure("http://127.0.0.1:1")
    told = till.cra("replay", solved, *flags)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_from_a_pass_on_the_configured_server_answers_and_before_it_the_record(
    till: Project, solved: str
) -> None:
    before = git(till.top, "for-each-ref")
    (first, *_) = recorded(till, "task_id", f"task_id LIKE '{solved}:impl%'")
    name = first.partition(":")[2]
    with serving(till) as server:
        till.configure(server.base_url)
        found = answers(till, solved, "--from", name)
        assert 0 < len(server.calls) < found["calls"]
        assert not any(call.title.startswith("Divide") for call in server.calls)
    assert (found["same_diff"], found["status"]) == (True, {"then": "complete", "now": "complete"})
    assert git(till.top, "for-each-ref") == before
    early = f"task_id LIKE '{found['task_id']}:meta_plan%' AND call_type <> 'window_probe'"
    assert None not in recorded(till, "replayed_from", early)
    live = recorded(
        till, "replayed_from", f"task_id LIKE '{found['task_id']}:{name}' AND call_type = 'implement'"
    )
    assert live == [None]


def test_the_first_difference_is_shown_to_a_program_too(till: Project, solved: str) -> None:
    with closing(sqlite3.connect(Workspace(repo=till.top).raw)) as conn, conn:
        number, prompt = conn.execute(
            "SELECT id, prompt FROM retrieval_llm_calls WHERE call_type = 'implement' ORDER BY id"
        ).fetchone()
        text = prompt.split("\n")
        text[4] = "x" * 300 + text[4]
        conn.execute("DROP TRIGGER retrieval_llm_calls_fixed")
        changed = "UPDATE retrieval_llm_calls SET prompt = ?, prompt_hash = '0' WHERE id = ?"
        conn.execute(changed, ("\n".join(text), number))
    found = answers(till, solved, code=1)
    assert found["same"] is False
    difference = found["difference"]
    assert difference["call"].endswith("prompt implement, attempt 0")
    assert (difference["part"], difference["line"]) == ("prompt", 5)
    assert difference["recorded"] == text[4]
    assert difference["now"] == text[4][300:]


def test_a_run_weighs_by_an_earlier_ones_measurement_and_is_replayed_by_its_own_record(till: Project) -> None:
    tasks = []
    with serving(till, Unsure(Script(till.oracle))) as server:
        till.configure(server.base_url, judgments={"route": "each"})
        for command in ("plan", "solve"):
            told = till.cra(command, till.task)
            assert told.code == 0, told.err
            assert told.recorded.run is not None
            tasks.append(told.recorded.run.task_id)
        asked = [call for call in server.calls if f"candidate: {NOTHING}\n" in call.prompt]
        loads = len(server.loads)
        assert answers(till, tasks[1][:8])["same"] is True
        assert len(server.loads) == loads, "a replay has no model loaded"
    assert (
        len(asked)
        == len(recorded(till, "id", f"task_id LIKE '{tasks[0]}%' AND item = '{ABOUT_NOTHING}'"))
        > 0
    )
    used = recorded(till, "replayed_from", f"task_id LIKE '{tasks[1]}%' AND item = '{ABOUT_NOTHING}'")
    assert used == recorded(till, "id", f"task_id LIKE '{tasks[0]}%' AND item = '{ABOUT_NOTHING}'")
    told = till.cra("show", tasks[1][:8], "--decisions")
    assert re.search(r"probability 0\.\d\d, 0\.\d\d about nothing, calibrated [+-]\d\.\d\d", told.out)


def money(till: Project) -> str:
    return (till.top / "till" / "money.py").read_text()


def refs(till: Project) -> list[str]:
    return git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra", "refs/heads/cra").split()


def replayed(till: Project, task_id: str) -> Told:
    before = refs(till)
    told = till.cra("replay", task_id)
    assert refs(till) == before
    assert told.traces == {}
    assert told.sessions == ()
    return told


def test_replay_gives_the_same_bytes_without_a_server_though_the_user_went_on_and_discarded_the_run(
    till: Project, solved: str
) -> None:
    (till.top / "till" / "money.py").write_text("gone = True\n")
    git(till.top, "commit", "-q", "-a", "-m", "went on")
    assert till.cra("discard", solved).code == 0
    told = replayed(till, solved)
    assert told.code == 0, told.err
    assert told.out.startswith("the same: ")
    assert "calls answered from the record, complete" in told.out


def test_replay_says_where_it_first_asks_something_else(till: Project, solved: str) -> None:
    with closing(sqlite3.connect(Workspace(repo=till.top).raw)) as conn, conn:
        (config,) = conn.execute(
            "SELECT config FROM orchestrator_runs WHERE task_id = ?", (solved,)
        ).fetchone()
        changed = json.loads(config)
        changed["models"]["coding"] = "another:1b"
        changed["judgments"] = {**changed.get("judgments", {}), "top_k": 1, "max_symbols": 1}
        for (name,) in conn.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'orchestrator_runs'"
        ).fetchall():
            conn.execute(f"DROP TRIGGER {name}")
        conn.execute(
            "UPDATE orchestrator_runs SET config = ? WHERE task_id = ?", (json.dumps(changed), solved)
        )
    told = replayed(till, solved)
    assert (told.code, told.out) == (1, "")
    assert "asks something else than recorded call" in told.err
    assert "of the prompt was" in told.err
