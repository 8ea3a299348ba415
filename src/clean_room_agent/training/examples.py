"""Turns the record into examples: each question with its last answer, and whether that is worth learning from.

Good: an answer that agrees with what was changed, in a solved task all of whose files came into scope. Bad: an answer
that a task's failure is charged to. Everything else is left out, with a reason: an answer that included more than was
changed, too, since nobody knows whether the change needed it. A good answer and one to the same question whose change failed
its tests are a pair.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.artifacts.names import part_of
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.db.raw.analysis import JudgedItem, ReadCall
from clean_room_agent.execute.forms.worded import FUNCTION, LINES
from clean_room_agent.llm.answers import Choice, visible
from clean_room_agent.llm.filling import FILL_NAME
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import load_logprobs
from clean_room_agent.training.credit import Charge, recalls_all, waterfall_of
from clean_room_agent.training.dataset import Message, RowOrigin, TrainingRow
from clean_room_agent.training.gold import AcceptedChange
from clean_room_agent.training.logs import (
    NOT_JUDGED,
    PLANNING,
    LogAnalysisAPI,
    TaskLog,
    files_of_parts,
    files_of_plan,
    is_gold,
    lets_in,
)

Worth = Literal["good", "bad", "out"]
AGREES = "agrees with what was changed"
FORMS = frozenset({FILL_NAME, FUNCTION.name, LINES.name})
"""They are asked about places that ran: no file was judged."""


class Example(Struct, frozen=True, kw_only=True):
    """One question with its tries."""

    tries: tuple[ReadCall, ...]
    """The first asked the question itself; those after it show an earlier answer's fault."""
    answer: str
    """The last answer in the prompt's own form."""
    worth: Worth
    reason: str
    task: TaskLog
    license: str = ""
    """Of the code in the prompt; "" if it is unknown."""
    failed: tuple[str, ...] = ()
    """Of a good one: other answers to the same question, whose changes failed their tests."""

    @property
    def last(self) -> ReadCall:
        """The try whose answer counts."""
        return self.tries[-1]

    @property
    def question(self) -> str:
        """Its text, without what a repair adds."""
        return self.tries[0].call.request.prompt

    def row(self, *, label: bool) -> TrainingRow:
        """The first question with the last answer."""
        asked, last, run = self.tries[0].call.request, self.last.call, self.task.run
        system = (Message(role="system", content=asked.system_prompt),) if asked.system_prompt else ()
        return TrainingRow(
            prompt=(*system, Message(role="user", content=asked.prompt)),
            completion=_as_message(self.answer),
            origin=RowOrigin(
                stage=last.site.call_type,
                source="logged",
                repo=run.repo_path,
                commit=run.commit,
                timestamp=last.cost.timestamp,
                license=self.license,
                model=last.model.tag,
                task_id=last.site.pass_id,
                call_id=last.id,
            ),
            label=label,
        )

    def pairs(self) -> tuple[TrainingRow, ...]:
        """The answer, preferred to those that failed, and, if it repaired an unreadable one, to that."""
        rejected = [*self.failed]
        first = visible(self.tries[0].call.answer.response)
        if self.last.read is not None and self.last.read.reading is AnswerReading.REPAIRED and first:
            rejected.append(first)
        row = self.row(label=True)
        return tuple(
            replace(row, rejected=_as_message(text))
            for text in dict.fromkeys(rejected)
            if text != self.answer
        )


def read_examples(
    logs: LogAnalysisAPI, prompt: Prompt[Any, Any], progress: Callable[[int, int], None]
) -> tuple[Example, ...]:
    """Every question of this prompt in an ended run, in the order of asking; runs oldest first."""
    charges = {charge.task_id: charge for charge in waterfall_of(logs.watched_tasks(progress)).charges}
    return tuple(
        example
        for task in logs.watched_tasks(progress)
        for example in examples_of(task, prompt, logs, charges.get(task.run.task_id))
    )


def examples_of(
    task: TaskLog, prompt: Prompt[Any, Any], logs: LogAnalysisAPI, charge: Charge | None
) -> Iterator[Example]:
    """The task's questions of this prompt, in the order of asking."""
    judged: dict[int, list[JudgedItem]] = defaultdict(list)
    for item in task.items:
        if item.call_id is not None and item.stage not in NOT_JUDGED:
            judged[item.call_id].append(item)
    complete = task.solved and recalls_all(task)
    found = []
    for tries in questions(logs.calls(task.run.task_id, prompt.name)):
        last = tries[-1]
        worth, reason = _example_worth(task, last, judged[last.call.id], charge, complete=complete)
        found.append(
            Example(
                tries=tries,
                answer=_in_prompt_form(prompt, last),
                worth=worth,
                reason=reason,
                task=task,
            )
        )
    failing = {each.call_id for each in task.attempts if each.outcome is AttemptOutcome.TESTS_FAILED}
    failed: dict[str, list[str]] = defaultdict(list)
    for each in found:
        if each.last.call.id in failing:
            failed[each.question].append(each.answer)
    for each in found:
        yield replace(each, failed=tuple(failed[each.question])) if each.worth == "good" else each


def questions(calls: tuple[ReadCall, ...]) -> tuple[tuple[ReadCall, ...], ...]:
    """The calls by question: a repair, or a try after an error, begins with the question's own text."""
    kept: list[list[ReadCall]] = []
    newest: dict[tuple[str, str, str], list[ReadCall]] = {}
    for call in calls:
        key = (call.call.site.pass_id, call.call.site.call_type, call.call.site.item)
        known = newest.get(key)
        asked = call.call.request.prompt
        if known and not known[-1].is_readable and asked.startswith(known[0].call.request.prompt):
            known.append(call)
        else:
            newest[key] = [call]
            kept.append(newest[key])
    return tuple(map(tuple, kept))


def _example_worth(
    task: TaskLog, last: ReadCall, judged: list[JudgedItem], charge: Charge | None, *, complete: bool
) -> tuple[Worth, str]:
    if task.gold is None:
        return "out", "no accepted change is known"
    if not task.solved:
        prompt = charge.prompt if charge is not None else ""
        at_fault = charge is not None and (not charge.call_ids or last.call.id in charge.call_ids)
        if prompt == last.call.site.call_type and at_fault and visible(last.call.answer.response):
            return "bad", "the task's failure is charged to it"
        return "out", "of a failed task that is not charged to it"
    if not complete and last.call.site.call_type not in FORMS:
        return "out", "of a solved task whose files were not all in scope"
    if not last.is_readable:
        return "out", "its answer could not be read"
    return _agreement_with_gold(task, task.gold, last, judged)


def _agreement_with_gold(
    task: TaskLog, gold: AcceptedChange, last: ReadCall, judged: list[JudgedItem]
) -> tuple[Worth, str]:
    name = last.call.site.call_type
    if name in PLANNING.values():
        return _plan_agreement(task, gold, last)
    if name in {PassType.IMPLEMENT.value, *FORMS}:
        passed = {each.call_id for each in task.attempts if each.outcome is AttemptOutcome.APPLIED_AND_PASSED}
        if last.call.id in passed:
            return "good", "its edits were accepted"
        return "out", "its edits were not accepted"
    if not judged:
        decides = last.call.site.stage_name not in {"", *NOT_JUDGED}
        return ("out", "no decision rests on it") if decides else ("good", "of a solved task")
    pairs = [(is_gold(item, gold), lets_in(item)) for item in judged]
    if (True, False) in pairs:
        return "out", "contradicts what was changed"
    return ("out", "let in more than was changed") if (False, True) in pairs else ("good", AGREES)


def _plan_agreement(task: TaskLog, gold: AcceptedChange, last: ReadCall) -> tuple[Worth, str]:
    made = next((each for each in task.passes if each.pass_id == last.call.site.pass_id), None)
    if made is None or not made.plan or not made.success:
        return "out", "no plan was made of it"
    named, paths = set(files_of_plan(made.plan)), {file.path for file in gold.files}
    parts: dict[str, tuple[str, ...]] = {}
    for each in task.passes:
        parts |= files_of_parts(each.plan)
    is_whole = made.pass_type is PassType.META_PLAN
    due = paths if is_whole else paths & set(parts.get(part_of(made.pass_id), ()))
    if due - named:
        return "out", "contradicts what was changed"
    return ("out", "names more than was changed") if named - paths else ("good", AGREES)


def _in_prompt_form(prompt: Prompt[Any, Any], last: ReadCall) -> str:
    """The answer in the prompt's format: a verdict that was read from probabilities or from an object becomes its word."""
    if prompt.name == FILL_NAME:  # its blanks are part of it
        return last.call.answer.response
    if last.is_readable:
        value = prompt.parse(last.call.answer.response, load_logprobs(last.call.answer.logprobs))
        if isinstance(value, Choice):
            return value.word
    return visible(last.call.answer.response)


def _as_message(text: str) -> tuple[Message, ...]:
    return (Message(role="assistant", content=text),)
