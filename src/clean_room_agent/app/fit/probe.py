"""Measures a model: asks it the made-up tasks as a run would ask them, with the same prompts, readers and bounds, until each
figure is clear. What was measured is kept after each few tasks, so that measuring goes on where it was interrupted.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, product

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app.fit.checks import Check
from clean_room_agent.app.fit.decisions import best_width, can_work, is_of_use
from clean_room_agent.app.fit.figures import FIGURES, FigureName, Fit, Measured, Speed, is_clear
from clean_room_agent.app.fit.made_up_tasks import FILE, FunctionTask, PlanTask, QuestionTask, made_up_tasks
from clean_room_agent.app.wiring import Services
from clean_room_agent.artifacts.context import (
    BudgetAccount,
    ContextItem,
    ContextPackage,
    ContextRequest,
    Role,
)
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.model_calls import READ_PER_WRITTEN
from clean_room_agent.artifacts.plans import MetaPlan, PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.rules import EditRules, Places
from clean_room_agent.execute.implement import StepInstruction, implement
from clean_room_agent.execute.plan import make_meta_plan, make_part_plan
from clean_room_agent.execute.plan_drafts import PartAsked, PlanLimits
from clean_room_agent.llm.answers import YES
from clean_room_agent.orchestrator.direct.candidates import Answered
from clean_room_agent.orchestrator.direct.questions import NoCandidate, PlaceQuestion, gaps_of, in_words
from clean_room_agent.orchestrator.passes.planning import plan_limits
from clean_room_agent.orchestrator.run_config import Form
from clean_room_agent.orchestrator.test_runs.worktrees import at_a_time
from clean_room_agent.retrieval.judges import ModelJudge, question_text
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT
from clean_room_agent.retrieval.stage import Option

TIMED_ALONE = 2
"""Functions that are asked for alone, after a first one in whose time the model may be loaded; all slots are used then."""
AT_A_TIME = 3
"""Tasks between two looks at a figure, or as many as the slots take: two that choose, and one that is held."""
TEMPERATURES = (0.7, 0.4)
"""Of drawn answers, the usual one first."""
MEASURED_LENGTH = 2.0
"""So many times their usual length answers may have here, to see whether they need it."""
DOING: Mapping[FigureName, str] = {
    "function": "writing whole functions",
    "masked": "filling gaps",
    "lines": "changing lines",
    "redrawn": "drawing again what was wrong",
    "edit": "editing files",
    "plan": "planning",
    "judgment": "judging what a task needs",
}


class ProbeProgress(Struct, frozen=True, kw_only=True):
    """How far measuring got."""

    doing: str
    done: int
    most: int
    seconds_left: float | None
    """At most; None while that is not known."""


class _Item(Struct, frozen=True, kw_only=True):
    """One task of a figure."""

    task: str
    kind: str = ""
    ask: Callable[[], Sequence[Measured]]


class Probe:
    """Measures the models of the roles."""

    def __init__(
        self,
        services: Services,
        fits: Mapping[Role, Fit],
        check: Check,
        *,
        slots: int,
        keep: Callable[[Fit], None],
        tell: Callable[[ProbeProgress], None],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fits` grow, and are given to `keep` whenever they have; `slots`: how many answers are asked for at a time, at most."""
        self._services = services
        self._models = services.models
        self._pass_id = services.session.task_id
        self._fits = fits
        self._check = check
        self._slots = slots
        self._keep = keep
        self._tell = tell
        self._timer = timer
        self._tasks = made_up_tasks()
        self._speed = Speed()

    def measure(self) -> None:
        """Measure what was not yet.

        Raises:
            ModelError: the server failed; what was measured is kept.
        """
        for name, bounds in FIGURES.items():
            fit = self._fits[bounds.role]
            if name in fit.ended:
                continue
            if self._is_needed(name):
                self._measure_figure(name, fit)
            fit.ended.append(name)
            self._keep(fit)

    def _is_needed(self, name: FigureName) -> bool:
        if name == "masked":
            fit = self._fits["coding"]
            if fit.fills is None:
                fit.fills = self._models.can_fill(pass_id=self._pass_id)
            return fit.fills
        coding = self._fits["coding"]
        if name == "redrawn":
            return bool(is_of_use(coding, "function"))
        if name == "plan":  # one that nobody can carry out is worth nothing
            return bool(is_of_use(coding, "edit"))
        return can_work(coding) is not False

    def _measure_figure(self, name: FigureName, fit: Fit) -> None:
        found = fit.figures.setdefault(name, [])
        bounds = FIGURES[name]
        known = {(one.task, one.kind) for one in found}
        waiting = [one for one in self._figure_items(name, fit) if (one.task, one.kind) not in known]
        if name == "judgment":
            waiting = [one for one in waiting if one.task not in {task for task, _ in known}]
        while waiting and len(found) < bounds.most and not is_clear(name, fit.choosing(name)):
            self._tell_progress(name, len(found))
            size, width = self._batch_shape(name, len(found), fit)
            size = min(size, bounds.most - len(found))
            batch, waiting = waiting[:size], waiting[size:]
            began = self._timer()
            new = _ask_items(batch, width)
            seconds = self._timer() - began
            found += new
            self._speed = self._speed.plus(bounds.tokens * len(new), seconds)
            if name == "function" and width == len(batch) and len(found) > len(new):
                work = sum(one.tokens + one.read / READ_PER_WRITTEN for one in new)
                fit.widths[width] = fit.widths.get(width, Speed()).plus(work, seconds)
            self._keep(fit)
        self._tell_progress(name, len(found))

    def _batch_shape(self, name: FigureName, done: int, fit: Fit) -> tuple[int, int]:
        """How many tasks are asked next, and how many of them at a time."""
        if name == "function":  # asked alone and together, which shows what slots are worth
            size = 1 if done <= TIMED_ALONE else self._slots
            return size, size
        if name in {"masked", "judgment"}:  # themselves several questions
            return 1, 1
        width = best_width(fit) or 1
        if name == "redrawn":  # one task, at each temperature
            return len(TEMPERATURES), width
        size = AT_A_TIME if name == "plan" else max(AT_A_TIME, width)  # a plan is long, and two tell
        return size, width

    def _tell_progress(self, name: FigureName, done: int) -> None:
        left = 0.0
        for other, bounds in FIGURES.items():
            fit = self._fits[bounds.role]
            if other not in fit.ended:
                left += max(bounds.most - len(fit.figures.get(other, [])), 0) * bounds.tokens
        rate = self._speed.rate
        self._tell(
            ProbeProgress(
                doing=DOING[name],
                done=done,
                most=FIGURES[name].most,
                seconds_left=left / rate if rate else None,
            )
        )

    def _figure_items(self, name: FigureName, fit: Fit) -> list[_Item]:
        """The tasks of a figure, in the order in which they are asked."""
        tasks = self._tasks
        if name == "masked":
            sides = zip(tasks.to_mend, cycle((False, True)), strict=False)
            return [_Item(task=one.name, ask=partial(self._ask_gaps, one, fit, side)) for one, side in sides]
        if name == "redrawn":
            failed = {one.task for one in fit.figures.get("function", []) if not one.right}
            drawn = product((one for one in tasks.functions if one.name in failed), TEMPERATURES)
            return [
                _Item(task=one.name, kind=str(warm), ask=partial(self._ask_at_temperature, one, warm))
                for one, warm in drawn
            ]
        if name == "plan":
            return [_Item(task=one.name, ask=partial(self._ask_plan, one)) for one in tasks.plans]
        if name == "judgment":
            return [_Item(task=one.name, ask=partial(self._ask_judgments, one)) for one in tasks.questions]
        if name == "edit":
            return [_Item(task=one.name, ask=partial(self._ask_edit, one)) for one in tasks.functions]
        known: tuple[Form, Sequence[FunctionTask]] = (
            ("lines", tasks.to_mend) if name == "lines" else ("function", tasks.functions)
        )
        return [_Item(task=one.name, ask=partial(self._ask_in_words, one, known[0])) for one in known[1]]

    def _measured_answer(
        self,
        task: FunctionTask,
        text: str | None,
        tokens: int | None,
        *,
        read: int = 0,
        kind: str = "",
        over: bool = False,
    ) -> list[Measured]:
        """With whether the file's text, if there is one, does what it should."""
        one = Measured(
            task=task.name,
            held=self._tasks.is_held(task.name),
            applied=text is not None,
            right=text is not None and self._check(task, text),
            tokens=tokens or 0,
            read=read,
            kind=kind,
            over=over,
        )
        return [one]

    def _ask_in_words(self, task: FunctionTask, form: Form) -> list[Measured]:
        solve = replace(self._services.settings.solve, forms=(form,), draws=1, answer_length=MEASURED_LENGTH)
        return self._ask_question(task, in_words(self._models, task.target, task.assignment, solve)[0])

    def _ask_at_temperature(self, task: FunctionTask, temperature: float) -> list[Measured]:
        solve = replace(
            self._services.settings.solve,
            forms=("function",),
            draws=2,
            draw_temperature=temperature,
            answer_length=MEASURED_LENGTH,
        )
        question = in_words(self._models, task.target, task.assignment, solve)[1]
        named = replace(question, item=f"{question.item} {temperature}")
        return self._ask_question(task, named, kind=str(temperature))

    def _ask_question(self, task: FunctionTask, question: PlaceQuestion, *, kind: str = "") -> list[Measured]:
        answer = question.send(self._pass_id)
        tokens = answer.completion_tokens or 0
        over = tokens > question.most_tokens / MEASURED_LENGTH
        text, read = _text_with_answer(question, answer), answer.prompt_tokens or 0
        return self._measured_answer(task, text, tokens, read=read, kind=kind, over=over)

    def _ask_gaps(self, task: FunctionTask, fit: Fit, side: bool) -> list[Measured]:
        """The first gaps of the wrong line, asked for side by side or in turn."""
        questions = gaps_of(self._models, task.target, task.assignment, self._services.settings.solve)
        how, workers = ("side-by-side", self._slots) if side and self._slots > 1 else ("in-turn", 1)
        began = self._timer()
        answers = at_a_time(lambda at: questions[at].send(self._pass_id), len(questions), workers=workers)
        seconds = self._timer() - began
        tokens = sum(one.completion_tokens or 0 for one in answers)
        work = tokens + sum(one.prompt_tokens or 0 for one in answers) / READ_PER_WRITTEN
        fit.gaps[how] = fit.gaps.get(how, Speed()).plus(work, seconds)
        pairs = zip(questions, answers, strict=True)
        texts = [text for one, answer in pairs if (text := _text_with_answer(one, answer)) is not None]
        right = next((text for text in texts if self._check(task, text)), None)
        return self._measured_answer(task, right or next(iter(texts), None), tokens)

    def _ask_edit(self, task: FunctionTask) -> list[Measured]:
        words = task.assignment.task
        package = self._whole_file_package(words, {FILE: task.text})
        targets = (TargetFile(path=FILE, role="modify"),)
        step = PlanStep(id="fit", description=words, target_files=targets, target_symbols=(task.name,))
        instruction = StepInstruction(task=words, part="", step=step)
        try:
            done = implement(self._models, package, instruction, pass_id=self._pass_id, item=task.name)
        except WindowExceeded:
            return self._measured_answer(task, None, 0)
        applied = apply_edits(done.step.edits, {FILE: task.text}, package, EditRules(targets=targets))
        text = applied.texts.get(FILE) if applied.result.success else None
        return self._measured_answer(task, text, done.completion_tokens)

    def _ask_plan(self, task: PlanTask) -> list[Measured]:
        """Whether the steps of the plan change just the files that have to change."""
        pass_id = f"{self._pass_id}:{task.name}"
        package = self._whole_file_package(task.task, {file.path: file.text for file in task.files})
        limits = plan_limits(self._models, self._services.settings.orchestrator)
        paths = Places.of([file.path for file in task.files])
        targets: set[tuple[str, str]] | None = None
        try:
            meta = make_meta_plan(
                self._models, package, pass_id=pass_id, evidence=Evidence(), limits=limits
            ).value
            # What the parts leave out, their steps would seldom bring in.
            if meta is not None and {path for part in meta.parts for path in part.affected_files} >= {
                *task.right
            }:
                targets = self._planned_targets(meta, package, paths, limits, pass_id)
        except WindowExceeded:
            targets = None
        whole = targets is not None
        right = targets == {(path, "modify") for path in task.right}
        held = self._tasks.is_held(task.name)
        return [Measured(task=task.name, held=held, applied=whole, right=right)]

    def _planned_targets(
        self, meta: MetaPlan, package: ContextPackage, paths: Places, limits: PlanLimits, pass_id: str
    ) -> set[tuple[str, str]] | None:
        """What the steps of all parts change, and how; None if a part has no valid plan."""
        found: set[tuple[str, str]] = set()
        for part in meta.parts:
            asked = PartAsked(part=part, meta=meta, evidence=Evidence(), diff="", paths=paths, limits=limits)
            plan = make_part_plan(self._models, package, asked, pass_id=f"{pass_id}:{part.id}").value
            if plan is None:
                return None
            found |= {(one.path, one.role) for step in plan.steps for one in step.target_files}
        return found

    def _ask_judgments(self, task: QuestionTask) -> list[Measured]:
        """What counts is the verdict, which a run acts on: of a model that says yes to all, a bit more surely to what is needed,
        the order helps nobody.
        """
        request = ContextRequest(pass_id=self._pass_id, mode="plan", role="reasoning", task=task.task)
        judge = ModelJudge(
            self._models,
            self._services.session,
            question=question_text(request),
            pass_id=self._pass_id,
            batch_size=1,
            threshold=self._services.settings.judgments.threshold,
        )
        files = sorted(task.files, key=lambda file: file.path)
        options = [Option(key=file.path, name=file.path, text=f"{file.text}\n", score=0.0) for file in files]
        verdicts = judge.choose(SCOPE_JUDGMENT, options, labels=(YES,), stage="scope")
        found = []
        for file, verdict in zip(files, verdicts, strict=True):
            found.append(
                Measured(
                    task=task.name,
                    held=self._tasks.is_held(task.name),
                    applied=True,
                    right=bool(verdict.label) == file.needed,
                    kind="needed" if file.needed else "other",
                    score=float(bool(verdict.label)),
                )
            )
        return found

    def _whole_file_package(self, words: str, files: Mapping[str, str]) -> ContextPackage:
        """A context that shows the files whole."""
        window = self._models.window("coding")
        items = tuple(
            ContextItem(
                path=path,
                detail="primary",
                start_line=1,
                end_line=text.count("\n"),
                text=text,
                tier=0,
                score=1.0,
                reason="made up",
                tokens=self._models.count(text, "coding"),
                content_hash=hashlib.sha256(text.encode()).hexdigest(),
            )
            for path, text in files.items()
        )
        budget = BudgetAccount(
            context_window=window.context,
            reserved_tokens=window.reserved,
            used_tokens=sum(item.tokens for item in items),
        )
        return ContextPackage(pass_id=self._pass_id, task=words, items=items, budget=budget)


def _ask_items(items: Sequence[_Item], width: int) -> list[Measured]:
    """What became of the tasks, so many asked at a time."""
    made = at_a_time(lambda at: items[at].ask(), len(items), workers=width)
    return [one for answers in made for one in answers]


def _text_with_answer(question: PlaceQuestion, answer: Answered) -> str | None:
    """The file's text with the answer in it; None if it cannot be used."""
    made = NoCandidate(answer.fault) if answer.fault else question.write(answer)
    return None if isinstance(made, NoCandidate) else made
