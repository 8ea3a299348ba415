import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import IMPLEMENT, ImplementInputs
from clean_room_agent.execute.plan_prompts import META_PLAN, MetaPlanInputs
from clean_room_agent.execute.prompt_fitting import Fitted, PromptContents, Retry, all_contents, fit

LINE = "value = compute(1, 2, 3)\n"
DIFF = "".join(
    f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n" + f"+{LINE}" * 10
    for name in ("x", "y")
)
RETRIES = tuple(Retry(number=number, edits=LINE * 10, feedback="Result: refused.") for number in (1, 2))
CONTEXT = package(
    shown_file("a.py", LINE * 10),
    shown_file("b.py", LINE * 10, detail="supporting"),
    shown_symbol("c.py", LINE * 10, "C", 1, 10, detail="type_context"),
)
ORDER = (
    "attempt 1",
    "hunk diff --git a/x b/x @@ -1 +1 @@",
    "hunk diff --git a/y b/y @@ -1 +1 @@",
    "type_context c.py::C",
    "supporting b.py",
    "attempt 2",
)


def build(carried: PromptContents) -> ImplementInputs:
    return ImplementInputs(
        context=carried.sections,
        diff=carried.diff,
        task="Do it.",
        part="",
        constraints="",
        evidence="",
        step="Do it.",
        targets=(),
        symbols=(),
        unshown=(),
        failures=carried.retries,
        hint="",
    )


def fitted(window: int) -> Fitted[ImplementInputs]:
    models = model_client(ScriptedTransport([]), MemorySink(), window=window)
    return fit(models, IMPLEMENT, build, all_contents(CONTEXT, DIFF, RETRIES), answer_tokens=100)


def test_all_of_it_stays_where_there_is_room() -> None:
    assert fitted(8000).dropped == ()
    assert fitted(8000).inputs == build(all_contents(CONTEXT, DIFF, RETRIES))


def test_things_go_in_a_fixed_order_one_after_the_other() -> None:
    full = fitted(8000).need
    seen = set()
    for window in range(full + 100, full - 600, -5):
        result = fitted(window)
        assert result.need + 100 <= window
        assert result.dropped == ORDER[: len(result.dropped)]
        seen.add(len(result.dropped))
    assert seen >= {0, 1, 2, 3, 4, 5}


def test_a_refused_answer_goes_before_code_and_its_faults_stay() -> None:
    refused = "the answer\n" * 200

    def inputs(carried: PromptContents) -> MetaPlanInputs:
        return MetaPlanInputs(
            context=carried.sections,
            others=carried.others,
            evidence="",
            max_parts=1,
            task="Mend it.",
            rejected=carried.rejected,
            faults=("part p1 is there twice",),
        )

    def fitted_to(window: int) -> Fitted[MetaPlanInputs]:
        models = model_client(ScriptedTransport([]), MemorySink(), window=window)
        return fit(models, META_PLAN, inputs, all_contents(CONTEXT, rejected=refused), answer_tokens=100)

    found = fitted_to(fitted_to(8000).need + 99)
    assert found.dropped == ("the refused answer",)
    assert found.inputs.rejected == ""
    assert "part p1 is there twice" in META_PLAN.render(found.inputs)


def test_primary_items_never_go() -> None:
    with pytest.raises(
        WindowExceeded, match=r"prompt implement needs about \d+ tokens and 100 .*: a.py \("
    ) as caught:
        fitted(300)
    assert caught.value.hint
    assert "b.py" not in caught.value.message
