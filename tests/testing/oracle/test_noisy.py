"""How the oracle plans and errs. What it writes in whole runs is tested wherever these use it."""

import json
from collections import Counter

import pytest
from testing.oracle.noisy import NoisyOracle, Rates
from testing.oracle.oracle import Oracle
from testing.servers.ollama_script import ChatCall

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.training.gold_edits import GoldFile, Shown, edits_for

BEFORE = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(9))
AFTER = (
    BEFORE.replace("return 0", "return 10").replace("return 4", "return 14").replace("return 8", "return 18")
)
GOLD = (
    GoldFile(path="a.py", before=BEFORE, after=AFTER),
    GoldFile(path="b.py", before="x = 1\n", after="x = 2\n"),
)


def plan_prompt(lines: int) -> str:
    return (
        "# Instructions: Divide a part of a task into steps\n\n## Code\na.py and b.py\n\n## Task\nMore.\n\n"
        f"Use at most 9. The edits of one step can have at most {lines} lines. Answer with the JSON object."
    )


def steps_of(lines: int) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = json.loads(Oracle(GOLD).plan_steps(plan_prompt(lines)))["steps"]
    return steps


def call(prompt: str, **options: float) -> ChatCall:
    return ChatCall(number=0, model="m", system="", prompt=prompt, schema=None, options=options, body={})


def test_a_change_that_an_answer_can_hold_is_one_step() -> None:
    (step,) = steps_of(200)
    assert step["files"] == [{"path": "a.py", "role": "modify"}, {"path": "b.py", "role": "modify"}]


def test_a_longer_change_is_divided_within_a_file_and_each_step_says_what_it_does() -> None:
    steps = steps_of(25)
    assert [step["description"] for step in steps] == [
        "More.: change 1, 2 of a.py",
        "More.: change 3 of a.py",
        "More.: change 1 of b.py",
    ]
    assert [step["symbols"] for step in steps] == [["f0", "f4"], ["f8"], ["x"]]
    assert [step["needs"] for step in steps] == [[], ["s1"], ["s2"]]


def test_a_step_of_some_changes_gets_the_edits_of_these_alone() -> None:
    package = (Shown(path="a.py", editable=True, text=BEFORE),)
    edits = edits_for(GOLD[0], package, [1])
    assert ["return 14" in edit.replacement for edit in edits] == [True]


def test_a_step_over_several_files_names_the_changes_of_each_and_gets_them() -> None:
    made = "\n\n## Changes made so far\n+++ b/c.py\n+x\n\n## Task"
    prompt = plan_prompt(200).replace("\n\n## Task", made, 1)
    oracle = Oracle((GOLD[0], GoldFile(path="b.py", before="limit = 100\n", after="limit = 200\n")))
    (step,) = json.loads(oracle.plan_steps(prompt))["steps"]
    assert step["description"] == "More.: change 1, 2, 3 of a.py; change 1 of b.py"
    shown = f"===== file: a.py (lines 1-36)\n{BEFORE}===== end\n===== file: b.py (lines 1-1)\nlimit = 100\n===== end\n"
    files = "Files: modify a.py, modify b.py"
    asked = (
        f"# Instructions: Write the edits for one step\n\n## Code to change\n{shown}\n## The step to do now\n"
    )
    few = step["description"].replace("1, 2, 3 of a.py", "2 of a.py")
    for words, count in ((step["description"], 4), (few, 2)):
        edits = parse_edits(str(oracle(call(f"{asked}{words}\n{files}"))))
        assert isinstance(edits, tuple)
        assert len(edits) == count


def test_lines_are_added_at_the_end_of_a_file() -> None:
    file = GoldFile(path="a.py", before="limit = 100\n", after="limit = 100\ny = 2\n")
    (edit,) = edits_for(file, (Shown(path="a.py", editable=True, text="limit = 100"),))
    assert (edit.search, edit.replacement) == ("limit = 100", "limit = 100\ny = 2")


def test_what_is_asked_again_in_the_same_words_is_answered_in_the_same_way() -> None:
    noisy = NoisyOracle(lambda _: "yes")
    answers = [noisy(call(f"# T\n{n}")) for n in range(300)]
    assert [noisy(call(f"# T\n{n}")) for n in range(300)] == answers
    assert 15 <= answers.count("no") <= 50
    assert NoisyOracle(lambda _: "yes", seed=2)(call("# T\n0")) in {"yes", "no"}


def test_each_number_of_a_list_is_turned_over_for_itself() -> None:
    listed = "# T\n## Files\n" + "".join(f"===== candidate {n}: f{n}.py\n===== end\n" for n in range(1, 101))
    noisy = NoisyOracle(lambda _: json.dumps({"relevant": list(range(1, 51))}), rates=Rates(verdicts=0.2))
    picked = json.loads(str(noisy(call(listed))))["relevant"]
    assert 30 <= sum(n <= 50 for n in picked) < 50
    assert 0 < sum(n > 50 for n in picked) <= 20


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_edits_err_in_every_way_that_is_promised(rate: float) -> None:
    edits = tuple(
        PatchEdit(kind="edit", file_path="a.py", search=f"return {n} # old", replacement=f"return {n} # new")
        for n in range(3)
    )
    right = render_edits(edits)
    noisy = NoisyOracle(lambda _: right, rates=Rates(answers=rate))
    kinds = Counter(kind_of(str(noisy(call(f"# T\n{n}"))), right, edits) for n in range(200))
    expected = {"right"} if rate == 0 else {"cut", "unreadable", "missing", "misquoted", "bug"}
    assert set(kinds) == expected


def kind_of(answer: str, right: str, edits: tuple[PatchEdit, ...]) -> str:
    if answer == right:
        return "right"
    read = parse_edits(answer)
    if not isinstance(read, tuple):
        return "cut" if right.startswith(answer) else "unreadable"
    if right.startswith(answer.rstrip()):
        return "cut" if len(answer) < len(right) and not answer.endswith("</edit>\n") else "missing"
    if len(read) < len(edits):
        return "missing"
    return "misquoted" if [e.search for e in read] != [e.search for e in edits] else "bug"


def test_plans_name_a_wrong_file_or_cannot_be_read() -> None:
    right = json.dumps({"parts": [{"files": ["a.py"], "id": "p1"}], "summary": "s"})
    shown = "# T\n===== file: other.py (lines 1-2)\nx\n===== end\n"
    noisy = NoisyOracle(lambda _: right, rates=Rates(answers=1.0))
    answers = [str(noisy(call(f"{shown}{n}"))) for n in range(60)]
    wrong = [answer for answer in answers if "other.py" in answer]
    assert json.loads(wrong[0])["parts"][0]["files"] == ["other.py"]
    assert any(right.startswith(answer) and answer != right for answer in answers)


@pytest.mark.parametrize("key", ["points", "targets"])
def test_places_err_in_their_file_and_steps_over_numbers_still_err(key: str) -> None:
    right = json.dumps({key: [{"file": "a.py", "symbol": "f0"}]})
    shown = "# T\n===== file: other.py (lines 1-2)\nx\n===== end\n"
    noisy = NoisyOracle(lambda _: right, rates=Rates(answers=1.0))
    assert any("other.py" in str(noisy(call(f"{shown}{n}"))) for n in range(30))
    steps = json.dumps({"steps": [{"description": "x", "targets": [1]}], "summary": "s"})
    noisy = NoisyOracle(lambda _: steps, rates=Rates(answers=1.0))
    assert all(noisy(call(f"{shown}{n}")) != steps for n in range(30))


def test_the_oracle_makes_the_same_steps_of_numbered_places() -> None:
    oracle = Oracle(GOLD)
    chosen = "# Instructions: List the places that a part of a task changes\n\na.py b.py\n\n## Task\nMore.\n\nName at most 8."
    targets = json.loads(str(oracle(call(chosen))))["targets"]
    assert [(one["file"], one["symbol"]) for one in targets] == [
        ("a.py", "f0"),
        ("a.py", "f4"),
        ("a.py", "f8"),
        ("b.py", "x"),
    ]
    numbered = "\n".join(f"{n}. modify {one['symbol']} in {one['file']}" for n, one in enumerate(targets, 1))
    prompt = (
        f"# Instructions: Write the steps that change given places\n\n## Task\nMore.\n\n## Places that it changes\n{numbered}\n\n"
        "Use at most 9. The edits of one step can have at most 25 lines. Answer with the JSON object."
    )
    steps = json.loads(str(oracle(call(prompt))))["steps"]
    assert [step["targets"] for step in steps] == [[1, 2], [3], [4]]


def test_the_oracle_keeps_the_goal_that_the_steps_before_had() -> None:
    oracle = Oracle(GOLD)
    head = "# Instructions: Judge whether a revised plan keeps the goal\n\n## Steps before\n- s1: a (a.py)\n\n## Revised steps\n"
    assert oracle(call(head + "- s2: b (a.py)")) == "yes"
    assert oracle(call(head + "(none)")) == "no"


def test_a_file_that_brings_a_name_is_changed_before_those_that_use_it() -> None:
    user = GoldFile(path="a.py", before="import b\n", after="import b\n\nx = b.added()\n")
    bringer = GoldFile(path="b.py", before="", after="def added():\n    return 1\n")
    planned = json.loads(Oracle((user, bringer)).plan_steps(plan_prompt(12)))
    assert [step["files"][0]["path"] for step in planned["steps"]] == ["b.py", "a.py"]
