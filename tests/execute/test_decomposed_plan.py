"""The task in parts, and a part in steps, from small questions."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.packages import package, shown_file

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanVerdict
from clean_room_agent.execute.code_relations import PlanPiece
from clean_room_agent.execute.decomposed_plan import grouped, needs_of
from clean_room_agent.execute.plan import make_meta_plan, make_part_plan
from clean_room_agent.execute.plan_drafts import PartAsked, PlanDraft, PlanLimits
from clean_room_agent.execute.plan_validation import in_order
from clean_room_agent.llm.transport import ChatRequest

MONEY = "def split(cents, people):\n    return cents\n"
RECEIPT = "from till.money import split\n\n\ndef receipt(cents):\n    return split(cents, 2)\n"
VIEW = "import html\n\n\ndef view(text):\n    return html.escape(text)\n"
CONTEXT = package(
    shown_file("till/money.py", MONEY),
    shown_file("till/receipt.py", RECEIPT),
    shown_file("web/view.py", VIEW),
    task="Split every cent, and show it.",
)


def point(file: str, symbol: str = "", change: str = "Change it.") -> dict[str, str]:
    return {"change": change, "file": file, "symbol": symbol}


def points(*entries: dict[str, str]) -> str:
    return json.dumps({"analysis": "Cents are lost.", "points": entries, "summary": "Split every cent."})


def answering(listed: str, verdicts: Mapping[str, str]) -> ScriptedTransport:
    """`verdicts` by prompt and item, `no` for all others."""

    def script(request: ChatRequest) -> Scripted:
        if request.identity.prompt == "change_points":
            return listed
        return verdicts.get(f"{request.identity.prompt} {request.identity.item}", "no")

    return ScriptedTransport(script)


def planned(
    transport: ScriptedTransport, shown: ContextPackage = CONTEXT, **limits: Any
) -> PlanDraft[MetaPlan]:
    bounds: dict[str, Any] = {"max_parts": 3, "max_steps": 3, "max_lines": 200} | limits
    return make_meta_plan(
        model_client(transport, MemorySink(), window=8192),
        shown,
        pass_id="t:meta_plan",
        evidence=Evidence(),
        limits=PlanLimits(**bounds),
        route="decomposed",
    )


def parts_of(plan: PlanDraft[MetaPlan]) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    assert plan.value is not None, plan.faults
    return [(part.id, part.affected_files, part.depends_on) for part in plan.value.parts]


def verdicts_of(plan: PlanDraft[MetaPlan]) -> list[tuple[str, str, bool, str]]:
    return [(one.question, one.item, one.yes, one.reason) for one in plan.verdicts]


def test_one_place_is_one_part_by_one_call() -> None:
    transport = answering(points(point("till/money.py", "split")), {})
    plan = planned(transport)
    assert parts_of(plan) == [("p1", ("till/money.py",), ())]
    assert plan.value is not None
    assert plan.value.parts[0].description == "split in till/money.py: Change it."
    assert (plan.value.task_summary, plan.value.rationale) == ("Split every cent.", "Cents are lost.")
    assert len(transport.requests) == len(plan.call_ids) == 1


def test_places_in_one_file_are_one_part_without_a_question() -> None:
    plan = planned(answering(points(point("web/view.py", "view"), point("web/view.py", "page")), {}))
    assert parts_of(plan) == [("p1", ("web/view.py",), ())]
    assert verdicts_of(plan) == [("same_part", "c1 c2", True, "the same file")]


def test_what_uses_nothing_of_the_other_in_another_folder_is_a_part_of_its_own() -> None:
    transport = answering(points(point("till/money.py", "split"), point("web/view.py", "view")), {})
    plan = planned(transport)
    assert parts_of(plan) == [("p1", ("till/money.py",), ()), ("p2", ("web/view.py",), ())]
    assert len(transport.requests) == 1
    assert [one[3] for one in verdicts_of(plan)] == [
        "other folders, and neither uses the other",
        "it uses nothing that is changed there",
        "it uses nothing that is changed there",
    ]


def test_a_model_says_whether_related_places_belong_together() -> None:
    listed = points(point("till/receipt.py", "receipt"), point("till/money.py", "split"))
    apart = answering(listed, {})
    assert parts_of(planned(apart)) == [("p1", ("till/receipt.py",), ("p2",)), ("p2", ("till/money.py",), ())]
    asked = [one for one in apart.requests if one.identity.item == "c1 c2"]
    assert "return split(cents, 2)" in asked[0].prompt
    assert "Split every cent, and show it." in asked[0].prompt
    assert "- receipt in till/receipt.py uses split in till/money.py" in asked[0].prompt
    together = planned(answering(listed, {"same_part c1 c2": "yes"}))
    assert parts_of(together) == [("p1", ("till/receipt.py", "till/money.py"), ())]


def test_an_order_that_nobody_can_tell_is_asked_and_a_circle_is_broken() -> None:
    listed = points(point("till/tax.py", "tax"), point("till/vat.py", "vat"))
    verdicts = {"part_dependency p1 p2": "yes", "part_dependency p2 p1": "yes"}
    plan = planned(answering(listed, verdicts))
    assert parts_of(plan) == [("p1", ("till/tax.py",), ("p2",)), ("p2", ("till/vat.py",), ())]
    assert plan.notes == ("p2 does not wait for p1: p1 needs p2 already, and they cannot both come first",)


def test_what_cannot_be_read_stays_together_and_makes_nobody_wait() -> None:
    listed = points(point("till/tax.py", "tax"), point("till/vat.py", "vat"))
    plan = planned(answering(listed, {"same_part c1 c2": "Hm."}))
    assert parts_of(plan) == [("p1", ("till/tax.py", "till/vat.py"), ())]
    plan = planned(answering(listed, {"part_dependency p1 p2": "Hm."}))
    assert parts_of(plan)[0] == ("p1", ("till/tax.py",), ())


def test_places_and_parts_beyond_their_bounds_are_kept() -> None:
    many = points(*(point(f"a{number}/x.py", f"name{number}") for number in range(4)))
    plan = planned(answering(many, {}), max_points=2)
    assert parts_of(plan) == [("p1", ("a0/x.py",), ()), ("p2", ("a1/x.py", "a2/x.py", "a3/x.py"), ())]
    plan = planned(answering(many, {}), max_parts=2)
    assert parts_of(plan)[1] == ("p2", ("a1/x.py", "a2/x.py", "a3/x.py"), ())
    assert plan.notes == ("4 parts are too many: the last 3 are one",)


def test_a_place_is_taken_once_by_the_path_that_it_can_only_mean() -> None:
    plan = planned(answering(points(point("money.py", "split"), point("till/money.py", "split")), {}))
    assert parts_of(plan) == [("p1", ("till/money.py",), ())]
    assert plan.notes == ("money.py can only be till/money.py",)


def test_a_faulty_list_goes_back_once() -> None:
    bad = points(point("../out.py", "x"))
    answers = iter([bad, points(point("till/money.py", "split"))])
    transport = ScriptedTransport(lambda _: next(answers))
    plan = planned(transport)
    assert parts_of(plan) == [("p1", ("till/money.py",), ())]
    assert "../out.py" in transport.requests[1].prompt
    unreadable = planned(ScriptedTransport(lambda _: "No."))
    assert unreadable.value is None
    assert unreadable.faults == ("the answer holds no JSON object",)


def said(item: str, *, yes: bool = True, call: int | None = 1, clearness: float | None = None) -> PlanVerdict:
    return PlanVerdict(
        question="part_dependency", item=item, yes=yes, reason="", call_id=call, calibrated=clearness
    )


def test_of_a_circle_what_was_decided_without_a_model_stays_then_what_was_said_most_clearly() -> None:
    needs, _ = needs_of(("a", "b"), [said("a b", clearness=2.0), said("b a", call=None)])
    assert needs == {"a": (), "b": ("a",)}
    needs, _ = needs_of(("a", "b"), [said("a b", clearness=0.2), said("b a", clearness=0.9)])
    assert needs == {"a": (), "b": ("a",)}


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.booleans()), max_size=25))
def test_whatever_is_said_there_are_groups_and_an_order(pairs: list[tuple[str, str, bool]]) -> None:
    verdicts = [said(f"{one} {other}", yes=yes) for one, other, yes in pairs if one != other]
    needs, _ = needs_of(tuple("abcde"), verdicts)
    assert sorted(in_order(needs)) == list("abcde")
    groups = grouped([PlanPiece(id=name, words=name, places=()) for name in "abcde"], verdicts, 2)
    assert len(groups) <= 2
    assert sorted(piece.id for group in groups for piece in group) == list("abcde")
    apart = {frozenset(piece.id for piece in group) for group in groups}
    together = [verdict.item.split(" ") for verdict in verdicts if verdict.yes]
    assert all(any({one, other} <= group for group in apart) for one, other in together)


MONEY_WITH_TOTAL = (
    "def split(cents, people):\n    return cents\n\n\ndef total(shares):\n    return sum(shares)\n"
)
RECEIPT_BY_TOTAL = "from till.money import total\n\n\ndef receipt(cents):\n    return total(cents)\n"
CONTEXT_OF_STEPS = package(
    shown_file("till/money.py", MONEY_WITH_TOTAL),
    shown_file("till/receipt.py", RECEIPT_BY_TOTAL),
    task="Split every cent.",
)
PART = Part(id="p1", description="Split every cent.", affected_files=("till/money.py",))
META = MetaPlan(task_summary="Split every cent.", parts=(PART,))
PATHS = frozenset({"till/money.py", "till/receipt.py"})


def target(file: str, symbol: str = "", role: str = "modify") -> dict[str, str]:
    return {"file": file, "role": role, "symbol": symbol}


def targets(*entries: dict[str, str]) -> str:
    return json.dumps({"analysis": "Cents are lost.", "targets": entries})


def steps(*entries: tuple[str, list[int]]) -> str:
    made = [{"description": words, "targets": numbers} for words, numbers in entries]
    return json.dumps({"steps": made, "summary": "Split."})


BOTH = targets(target("till/receipt.py", "receipt"), target("till/money.py", "total"))


def planned_steps(
    transport: ScriptedTransport, part: Part = PART, *, same_context: bool = False, **limits: Any
) -> PlanDraft[PartPlan]:
    bounds: dict[str, Any] = {"max_parts": 3, "max_steps": 3, "max_lines": 200} | limits
    asked = PartAsked(
        part=part,
        meta=META,
        evidence=Evidence(),
        diff="",
        paths=PATHS,
        limits=PlanLimits(**bounds),
        same_context=same_context,
    )
    models = model_client(transport, MemorySink(), window=8192)
    return make_part_plan(models, CONTEXT_OF_STEPS, asked, pass_id="t:part_plan:p1", route="decomposed")


def answering_steps(chosen: str, designed: str = "", verdict: str = "no") -> ScriptedTransport:
    def script(request: ChatRequest) -> Scripted:
        return {"symbol_targets": chosen, "step_design": designed}.get(request.identity.prompt, verdict)

    return ScriptedTransport(script)


def steps_of(plan: PlanDraft[PartPlan]) -> list[tuple[str, list[str], tuple[str, ...], tuple[str, ...]]]:
    assert plan.value is not None, plan.faults
    return [
        (
            step.id,
            [f"{file.role} {file.path}" for file in step.target_files],
            step.target_symbols,
            step.depends_on,
        )
        for step in plan.value.steps
    ]


def test_one_definition_is_one_step_by_one_call() -> None:
    transport = answering_steps(targets(target("till/money.py", "split")))
    plan = planned_steps(transport)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], ("split",), ())]
    assert plan.value is not None
    assert (plan.value.steps[0].description, plan.value.rationale) == ("Split every cent.", "Cents are lost.")
    assert len(transport.requests) == 1
    assert "- split in till/money.py" in transport.requests[0].prompt


def test_steps_are_written_for_the_chosen_places_and_ordered_by_use() -> None:
    transport = answering_steps(BOTH, steps(("Write it.", [1]), ("Sum it.", [2])))
    plan = planned_steps(transport)
    assert steps_of(plan) == [
        ("s1", ["modify till/receipt.py"], ("receipt",), ("s2",)),
        ("s2", ["modify till/money.py"], ("total",), ()),
    ]
    assert (
        "1. modify receipt in till/receipt.py\n2. modify total in till/money.py"
        in transport.requests[1].prompt
    )
    assert [one.reason for one in plan.verdicts] == [
        "receipt in till/receipt.py uses total",
        "only the other uses what is changed here",
    ]


def test_steps_at_the_same_file_keep_their_order() -> None:
    chosen = targets(target("till/money.py", "total"), target("till/money.py", "split"))
    plan = planned_steps(answering_steps(chosen, steps(("One.", [1]), ("Two.", [2]))))
    assert [step[3] for step in steps_of(plan)] == [(), ("s1",)]


def test_what_the_context_does_not_tell_is_asked() -> None:
    chosen = targets(target("till/tax.py", "", "create"), target("till/vat.py", "", "create"))
    plan = planned_steps(answering_steps(chosen, steps(("One.", [1]), ("Two.", [2])), verdict="yes"))
    assert [step[3] for step in steps_of(plan)] == [("s2",), ()]
    assert "s2 does not wait for s1: s1 needs s2 already, and they cannot both come first" in plan.notes


def test_a_place_in_no_step_goes_to_the_one_at_its_file_and_a_step_without_a_place_goes() -> None:
    chosen = targets(
        target("till/money.py", "total"), target("till/receipt.py"), target("till/money.py", "split")
    )
    plan = planned_steps(answering_steps(chosen, steps(("One.", [1, 9]), ("Two.", [2]), ("Look.", []))))
    assert steps_of(plan)[0] == ("s1", ["modify till/money.py"], ("total", "split"), ())
    assert [step[0] for step in steps_of(plan)] == ["s1", "s2"]
    assert plan.notes == (
        "no step had modify split in till/money.py: step 1 has it",
        "step 3 names no place and is left out",
    )


def test_too_many_places_are_whole_files() -> None:
    chosen = targets(*(target("till/money.py", f"name{number}") for number in range(4)))
    plan = planned_steps(answering_steps(chosen, steps(("All.", [1]))), max_points=2)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], (), ())]


def test_a_plan_that_is_refused_is_asked_for_again_with_its_faults() -> None:
    bad = targets(target("till/new.py", "x"))
    answers = iter([bad, bad, steps(("Do.", [1]))])
    transport = ScriptedTransport(lambda _: next(answers))
    plan = planned_steps(transport)
    assert plan.value is None
    assert plan.faults == ("step s1 is to modify till/new.py, which does not exist",)
    assert "which does not exist" in transport.requests[1].prompt
    assert "which does not exist" in transport.requests[2].prompt
    unreadable = planned_steps(answering_steps(BOTH, "No."))
    assert unreadable.faults == ("the answer holds no JSON object",)


def test_places_of_a_meta_plan_from_the_same_context_are_not_asked_for_again() -> None:
    own = PART.model_copy(update={"target_symbols": ("split",)})
    transport = answering_steps("")
    plan = planned_steps(transport, own, same_context=True)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], ("split",), ())]
    assert transport.requests == []
    two = own.model_copy(
        update={
            "affected_files": ("till/money.py", "till/receipt.py"),
            "target_symbols": ("split", "receipt"),
        }
    )
    transport = answering_steps("", steps(("All.", [1, 2])))
    plan = planned_steps(transport, two, same_context=True)
    assert steps_of(plan)[0][2] == ("split", "receipt")
    assert [request.identity.prompt for request in transport.requests] == ["step_design"]


def test_places_are_asked_for_where_the_context_is_another_or_does_not_show_them() -> None:
    own = PART.model_copy(update={"target_symbols": ("split",)})
    asked = answering_steps(targets(target("till/money.py", "split")))
    planned_steps(asked, own)
    new = own.model_copy(update={"target_symbols": ("split", "tax")})
    planned_steps(asked, new, same_context=True)
    beside = own.model_copy(update={"affected_files": ("till/money.py", "till/tax.py")})
    planned_steps(asked, beside, same_context=True)
    assert [request.identity.prompt for request in asked.requests] == ["symbol_targets"] * 3
