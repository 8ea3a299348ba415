"""Inputs for each prompt of the registry: one small repository, one task."""

from typing import Any

from clean_room_agent.artifacts.context import ContextRequest, section_texts
from clean_room_agent.artifacts.prompt_sources import PromptSource, sourced
from clean_room_agent.enrichment.prompt import EnrichmentInputs
from clean_room_agent.execute.diagnose import DoctorInputs
from clean_room_agent.execute.edits.format import Editable
from clean_room_agent.execute.forms.worded import FormInputs
from clean_room_agent.execute.goal_prompts import GoalInputs
from clean_room_agent.execute.implement import ImplementInputs
from clean_room_agent.execute.plan_prompts import (
    AdjustmentInputs,
    ChangePointsInputs,
    DependencyInputs,
    FinalizeInputs,
    GoalCheckInputs,
    MetaPlanInputs,
    NewStepInputs,
    PartPlanInputs,
    RootCauseInputs,
    SamePartInputs,
    StepDesignInputs,
    StepViabilityInputs,
    SymbolTargetsInputs,
)
from clean_room_agent.retrieval.judges import question_text
from clean_room_agent.retrieval.prompts import BatchInputs, SingleInputs, TaskAnalysisInputs
from testing.packages import shown_file

PATH = "src/till.py"
CODE = "def total(prices):\n    return sum(prices[1:])\n"
TASK = "total() leaves out the first price. Make it add all prices."
CONTEXT = section_texts((shown_file(PATH, CODE),))
QUESTION = question_text(ContextRequest(pass_id="task:meta_plan", mode="plan", role="reasoning", task=TASK))
OPTIONS = (
    f"1. {PATH}\n1: def total(prices):",
    "2. src/menu.py\n1: def dishes():",
    "3. src/door.py\n1: OPEN = 9",
)
SINGLE = SingleInputs(question=QUESTION, option=f"{PATH}\n{CODE}", others=(PATH, "src/menu.py"))
BATCH = BatchInputs(question=QUESTION, options=OPTIONS, remark="At most 300 tokens are left.")
FIRST = f"total in {PATH}: Add all prices."
TRIED = "- s1, failed: Sum all prices. (tests failed)"
FAILED = "- test failure, test_total: assert 3 == 6"
LEFT = "s2: Export total. (modify src/__init__.py)"
FORM = FormInputs(
    task=TASK,
    evidence="`total([1, 2])` gives 2, but it should give 3",
    observed="total([1, 2]): prices = [1, 2], returned 2",
    path=PATH,
    name="total",
    code=sourced(CODE.rstrip("\n"), PromptSource.FILE, path=PATH, symbol="total", number=1),
    fence="```",
    related=sourced("def rounded(price):", PromptSource.OUTLINE, path=PATH, symbol="rounded"),
    opening="def total(prices):",
    language="python",
    failed="",
)
SECOND = "src/menu.py: Show the total below the dishes."


INPUTS: dict[str, Any] = {
    "goal_test": GoalInputs(task=TASK, call="total([1, 2])", gives="2", choices=("3",)),
    "enrichment": EnrichmentInputs(
        path=PATH,
        language="python",
        lines=2,
        imports=(),
        imported_by=("src/menu.py",),
        commits=("Add prices",),
        outline=("1: def total(prices)",),
        text=CODE.rstrip("\n"),
        remark="",
    ),
    "task_analysis": TaskAnalysisInputs(
        task=TASK, focus="", evidence="", tests="", files=(PATH, "src/menu.py"), symbols=(f"total ({PATH})",)
    ),
    "function": FORM,
    "lines": FORM,
    "scope_judgment": SINGLE,
    "scope_batch": BATCH,
    "piece_judgment": SINGLE,
    "precision_batch": BATCH,
    "refilter": BATCH,
    "meta_plan": MetaPlanInputs(
        context=CONTEXT,
        others=("src/menu.py", "src/door.py"),
        evidence="",
        max_parts=4,
        task=TASK,
        rejected="",
        faults=(),
    ),
    "part_plan": PartPlanInputs(
        context=CONTEXT,
        others=("src/menu.py",),
        diff="",
        evidence="",
        task=TASK,
        goal="Add all prices.",
        part="Let total() add all prices.",
        files=(PATH,),
        max_steps=4,
        max_lines=60,
        rejected="",
        faults=(),
    ),
    "change_points": ChangePointsInputs(
        context=CONTEXT,
        others=("src/menu.py",),
        evidence="",
        max_points=8,
        task=TASK,
        rejected="",
        faults=(),
    ),
    "same_part": SamePartInputs(
        task=TASK, changes=(FIRST, SECOND), first=f"{FIRST}\n{CODE.rstrip()}", second=SECOND, known=()
    ),
    "part_dependency": DependencyInputs(
        task=TASK, drafts=(f"p1: {FIRST}", f"p2: {SECOND}"), one=SECOND, other=FIRST
    ),
    "symbol_targets": SymbolTargetsInputs(
        context=CONTEXT,
        others=(),
        diff="",
        evidence="",
        task=TASK,
        goal="Add all prices.",
        part="Let total() add all prices.",
        files=(PATH,),
        known=(f"total in {PATH}",),
        max_targets=8,
        rejected="",
        faults=(),
    ),
    "step_design": StepDesignInputs(
        context=CONTEXT,
        diff="",
        evidence="",
        task=TASK,
        part="Let total() add all prices.",
        targets=(f"modify total in {PATH}",),
        max_steps=4,
        max_lines=60,
        rejected="",
        faults=(),
    ),
    "step_dependency": DependencyInputs(
        task=TASK, drafts=(f"s1: {FIRST}", f"s2: {SECOND}"), one=SECOND, other=FIRST
    ),
    "adjustment_step_viability": StepViabilityInputs(
        task=TASK, part="Let total() add all prices.", diff="", done=(TRIED,), failures=(FAILED,), step=LEFT
    ),
    "adjustment_root_cause": RootCauseInputs(
        task=TASK, part="Let total() add all prices.", diff="", failure=FAILED, step=LEFT, remains=True
    ),
    "adjustment_new_step": NewStepInputs(
        task=TASK,
        part="Let total() add all prices.",
        diff="",
        done=(TRIED,),
        remaining=(LEFT,),
        failure=FAILED,
    ),
    "adjustment_finalize": FinalizeInputs(
        context=CONTEXT,
        diff="",
        task=TASK,
        part="Let total() add all prices.",
        done=(TRIED,),
        failures=(FAILED,),
        remaining='{"description": "Export total.", "files": [], "id": "s2", "needs": [], "symbols": []}',
        verdicts=("s2: goes",),
        max_steps=4,
        rejected="",
        faults=(),
    ),
    "goal_check": GoalCheckInputs(
        task=TASK,
        part="Let total() add all prices.",
        diff="",
        done=("- s1, done: Sum all prices.",),
        before=(f"- s2: Export total. ({PATH})",),
        after=(),
    ),
    "implement": ImplementInputs(
        context=CONTEXT,
        diff="",
        evidence="",
        task=TASK,
        part="",
        constraints="",
        step="Sum all of prices in total().",
        targets=(f"modify {PATH}",),
        symbols=("total",),
        unshown=(),
        failures=(),
        hint="",
        edited=(Editable(path=PATH, names=("total",)),),
    ),
    "doctor": DoctorInputs(
        task=TASK,
        step="Sum all prices in total().",
        targets=(f"modify {PATH}",),
        attempts=("tests failed: AssertionError: 5 != 6", "tests failed: AssertionError: 4 != 6"),
        edits="",
    ),
    "adjustment": AdjustmentInputs(
        context=CONTEXT,
        diff="",
        task=TASK,
        part="Let total() add all prices.",
        done=("s1: done. Sum all prices in total().",),
        remaining='{"description": "Export total.", "files": [{"path": "src/__init__.py", "role": "modify"}], '
        '"id": "s2", "needs": ["s1"], "symbols": []}',
        max_steps=4,
        rejected="",
        faults=(),
    ),
}
