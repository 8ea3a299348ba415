import json
from typing import Any

from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.packages import package, shown_file

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan
from clean_room_agent.execute.plan import make_part_plan
from clean_room_agent.execute.plan_drafts import PartAsked, PlanDraft, PlanLimits
from clean_room_agent.llm.transport import ChatRequest

MONEY = "def split(cents, people):\n    return cents\n\n\ndef total(shares):\n    return sum(shares)\n"
RECEIPT = "from till.money import total\n\n\ndef receipt(cents):\n    return total(cents)\n"
CONTEXT = package(
    shown_file("till/money.py", MONEY), shown_file("till/receipt.py", RECEIPT), task="Split every cent."
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


def planned(
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
    return make_part_plan(models, CONTEXT, asked, pass_id="t:part_plan:p1", route="decomposed")


def answering(chosen: str, designed: str = "", verdict: str = "no") -> ScriptedTransport:
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
    transport = answering(targets(target("till/money.py", "split")))
    plan = planned(transport)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], ("split",), ())]
    assert plan.value is not None
    assert (plan.value.steps[0].description, plan.value.rationale) == ("Split every cent.", "Cents are lost.")
    assert len(transport.requests) == 1
    assert "- split in till/money.py" in transport.requests[0].prompt


def test_steps_are_written_for_the_chosen_places_and_ordered_by_use() -> None:
    transport = answering(BOTH, steps(("Write it.", [1]), ("Sum it.", [2])))
    plan = planned(transport)
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
    plan = planned(answering(chosen, steps(("One.", [1]), ("Two.", [2]))))
    assert [step[3] for step in steps_of(plan)] == [(), ("s1",)]


def test_what_the_context_does_not_tell_is_asked() -> None:
    chosen = targets(target("till/tax.py", "", "create"), target("till/vat.py", "", "create"))
    plan = planned(answering(chosen, steps(("One.", [1]), ("Two.", [2])), verdict="yes"))
    assert [step[3] for step in steps_of(plan)] == [("s2",), ()]
    assert "s2 does not wait for s1: s1 needs s2 already, and they cannot both come first" in plan.notes


def test_a_place_in_no_step_goes_to_the_one_at_its_file_and_a_step_without_a_place_goes() -> None:
    chosen = targets(
        target("till/money.py", "total"), target("till/receipt.py"), target("till/money.py", "split")
    )
    plan = planned(answering(chosen, steps(("One.", [1, 9]), ("Two.", [2]), ("Look.", []))))
    assert steps_of(plan)[0] == ("s1", ["modify till/money.py"], ("total", "split"), ())
    assert [step[0] for step in steps_of(plan)] == ["s1", "s2"]
    assert plan.notes == (
        "no step had modify split in till/money.py: step 1 has it",
        "step 3 names no place and is left out",
    )


def test_too_many_places_are_whole_files() -> None:
    chosen = targets(*(target("till/money.py", f"name{number}") for number in range(4)))
    plan = planned(answering(chosen, steps(("All.", [1]))), max_points=2)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], (), ())]


def test_a_plan_that_is_refused_is_asked_for_again_with_its_faults() -> None:
    bad = targets(target("till/new.py", "x"))
    answers = iter([bad, bad, steps(("Do.", [1]))])
    transport = ScriptedTransport(lambda _: next(answers))
    plan = planned(transport)
    assert plan.value is None
    assert plan.faults == ("step s1 is to modify till/new.py, which does not exist",)
    assert "which does not exist" in transport.requests[1].prompt
    assert "which does not exist" in transport.requests[2].prompt
    unreadable = planned(answering(BOTH, "No."))
    assert unreadable.faults == ("the answer holds no JSON object",)


def test_places_of_a_meta_plan_from_the_same_context_are_not_asked_for_again() -> None:
    own = PART.model_copy(update={"target_symbols": ("split",)})
    transport = answering("")
    plan = planned(transport, own, same_context=True)
    assert steps_of(plan) == [("s1", ["modify till/money.py"], ("split",), ())]
    assert transport.requests == []
    two = own.model_copy(
        update={
            "affected_files": ("till/money.py", "till/receipt.py"),
            "target_symbols": ("split", "receipt"),
        }
    )
    transport = answering("", steps(("All.", [1, 2])))
    plan = planned(transport, two, same_context=True)
    assert steps_of(plan)[0][2] == ("split", "receipt")
    assert [request.identity.prompt for request in transport.requests] == ["step_design"]


def test_places_are_asked_for_where_the_context_is_another_or_does_not_show_them() -> None:
    own = PART.model_copy(update={"target_symbols": ("split",)})
    asked = answering(targets(target("till/money.py", "split")))
    planned(asked, own)
    new = own.model_copy(update={"target_symbols": ("split", "tax")})
    planned(asked, new, same_context=True)
    beside = own.model_copy(update={"affected_files": ("till/money.py", "till/tax.py")})
    planned(asked, beside, same_context=True)
    assert [request.identity.prompt for request in asked.requests] == ["symbol_targets"] * 3
