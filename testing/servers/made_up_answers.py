"""The minds of models that `cra models fit` measures: one that knows each made-up task, and what others get wrong of it."""

import json
import re
from collections.abc import Callable, Collection

from clean_room_agent.app.fit.made_up_tasks import FILE, FunctionTask, made_up_tasks
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.self_check import CHECK_PROMPT, VERDICT_PROMPT
from clean_room_agent.execute.forms.worded import FUNCTION, LINES
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT
from testing.servers.ollama_script import Answer, ChatCall

NAME = re.compile(r"def (\w+)\(")
JUDGED = re.compile(r"^=+ candidate: (\S+)$", re.MULTILINE)
YES, NO, NEITHER = (("yes", 0.9), ("no", 0.08)), (("no", 0.9), ("yes", 0.08)), (("no", 0.5), ("yes", 0.48))


class MadeUpAnswers:
    """Answers as a model that knows each task, but for the prompts in `lost` (names, and `gap`), to which it says that it does not
    know; with `agrees`, it says yes to whatever is judged.
    """

    def __init__(self, lost: Collection[str] = (), *, agrees: bool = False) -> None:
        self._lost = lost
        self._agrees = agrees

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.gap is not None:
            return "pass" if "gap" in self._lost else _text_of_gap(call.gap)
        known: dict[str, Callable[[ChatCall], Answer | str]] = {
            FUNCTION.name: lambda call: f"```python\n{_task_in(call.prompt).mended}```",
            LINES.name: _lines,
            IMPLEMENT.name: _edit,
            META_PLAN.name: lambda call: _planned(call.prompt, parts=True),
            PART_PLAN.name: lambda call: _planned(call.prompt, parts=False),
            SCOPE_JUDGMENT.name: self._judged,
            CHECK_PROMPT.name: lambda _: '{"number": 7}',
            VERDICT_PROMPT.name: lambda _: "yes",
        }
        (name,) = (prompt.name for prompt in PROMPTS if prompt.title == call.title)
        return "I do not know." if name in self._lost else known[name](call)

    def _judged(self, call: ChatCall) -> Answer:
        asked = JUDGED.search(call.prompt)
        needed = {file.path: file.needed for task in made_up_tasks().questions for file in task.files}
        if asked is None or asked[1] not in needed:
            return Answer(text="yes" if self._agrees else "no", likely=YES if self._agrees else NEITHER)
        is_yes = self._agrees or needed[asked[1]]
        return Answer(text="yes" if is_yes else "no", likely=YES if is_yes else NO)


def _task_in(prompt: str) -> FunctionTask:
    """The one whose function stands in the prompt."""
    names = set(NAME.findall(prompt))
    return next(task for task in made_up_tasks().functions if task.name in names)


def _lines(call: ChatCall) -> str:
    task = _task_in(call.prompt)
    return f"BEFORE:\n```\n{task.wrong}\n```\nAFTER:\n```\n{task.right}\n```"


def _edit(call: ChatCall) -> str:
    task = _task_in(call.prompt)
    new = f"<replacement>\n{task.mended}</replacement>"
    return f'<edit file="{FILE}" symbol="{task.name}">\n{new}\n</edit>'


def _text_of_gap(gap: tuple[str, str]) -> str:
    """What the right line has between what is before the gap and behind it, as far as that is a part of it."""
    lead, rest = gap[0].rpartition("\n")[2], gap[1].partition("\n")[0]
    right = _task_in(gap[0]).right
    if right.startswith(lead) and right.endswith(rest) and len(right) >= len(lead) + len(rest):
        return right[len(lead) : len(right) - len(rest)]
    return "pass"


def _planned(prompt: str, *, parts: bool) -> str:
    task = next(task for task in made_up_tasks().plans if task.task in prompt)
    if parts:
        whole = {"description": task.task, "files": list(task.right), "id": "all", "needs": []}
        return json.dumps({"analysis": "Both change.", "parts": [whole], "summary": task.task})
    files = [{"path": path, "role": "modify"} for path in task.right]
    step = {"description": task.task, "files": files, "id": "s1", "needs": [], "symbols": []}
    return json.dumps({"analysis": "Both change.", "steps": [step], "summary": task.task})
