"""The direct route: for a task with goal tests and few likely places, nothing is planned. Short answers are drawn for these
places, each becomes a tree, and the goal tests decide; of those that are green, the step's tests do.

Shown failing code, small models repair it no better than they write it anew, and each stage without a test to judge it
loses (arXiv 2306.09896, 2310.01798): so candidates are many, cheap and judged by running them.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Subject
from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import Goals, GoalSource, GoalTest, GoalTrace, TracedFunction, gives
from clean_room_agent.artifacts.model_calls import READ_PER_WRITTEN
from clean_room_agent.artifacts.names import counted, implement_pass, listed
from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.db.raw.passes import AttemptRow, DecisionRow, ValidationRow
from clean_room_agent.errors import ModelError, WindowExceeded
from clean_room_agent.execute.forms.place import Assignment, class_to_write, place_of
from clean_room_agent.execute.goal_prompts import observed_text, rank_places
from clean_room_agent.languages.test_names import file_part, is_in
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.direct.candidates import (
    Answered,
    GoalsAtBase,
    TriedAnswer,
    choose,
    in_vain,
    likeliest_first,
    outcome_of,
    run_goals,
)
from clean_room_agent.orchestrator.direct.questions import (
    NoCandidate,
    PlaceQuestion,
    Questions,
    Rounds,
    Target,
)
from clean_room_agent.orchestrator.direct.seen_calls import (
    SeenCalls,
    beside_goals,
    broken_example,
    held_examples,
    values_of,
)
from clean_room_agent.orchestrator.events import CandidateDrawn, PassProgress
from clean_room_agent.orchestrator.full_tests import settle_names, unstable_tests, validation_of
from clean_room_agent.orchestrator.goals import as_told, goal_of_test
from clean_room_agent.orchestrator.journal import JournalEntry, Pass
from clean_room_agent.orchestrator.run import Run, StepDone, Tried
from clean_room_agent.orchestrator.run_config import SolveConfig
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader
from clean_room_agent.orchestrator.steps.attempt import ChangeJudgment
from clean_room_agent.orchestrator.test_runs.gate import judge_step
from clean_room_agent.orchestrator.test_runs.goal_trace import trace_goals
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.orchestrator.test_runs.worktrees import at_a_time
from clean_room_agent.paths import is_test_configuration, is_test_path, matches_glob

PART, STEP, HINT = "direct", "change", "hint"
"""The ids under which its passes are recorded: the first, and one for each time that the user has added a hint."""
DONE = "direct"
"""The name in the journal of how a pass ended."""
ROUND = "round"
"""The name of a round in the journal."""
NAMED = 3
"""Places that the live view names."""
MOST_READ = 8
"""Tests that a candidate breaks, of which one is looked for that makes a call."""
MOST_SUITES = 3
"""Candidates of one round whose goal tests are green and for which the step's tests are run."""
MOST_PLACES = 6
LOOKED_ON, LEAST_SHARE = 2, 0.5
"""Where the first that holds leaves tests of what the task names red, one that does not is looked for until this many times as much
was spent, and at least this share of the limit.
"""
OBSERVED_CHARS = 900
"""Of what was observed, in a prompt of some 1,500 tokens."""


class Direct(Struct, frozen=True, kw_only=True):
    """What the direct route works on."""

    goals: Goals
    base: TestRun
    """The step's tests at the head."""
    places: tuple[str, ...]
    """The definitions that it asks about, for people: names without their files."""
    held: tuple[SeenCalls, ...] = ()
    """Documented examples of the places, which a candidate must not break."""
    limit: int
    """Answer tokens that it may take, with those that are read at a tenth."""
    took_ms: int = 0
    """By the goal tests, or by the step's tests if these took longer, at the head."""


def go_direct(run: Run, at_base: GoalsAtBase, files: Sequence[str]) -> bool:
    """Whether the direct route did the task; `files` are those that the user allows, all if empty. Where it
    found nothing in an earlier process and the user has added a hint since, its places are asked about again with the hint: for
    whole definitions, since a hint says little about a gap.
    """
    goals = run.progress.goals.guiding
    targets, assignment = what_to_ask(run, at_base, files)
    if not targets:
        return False
    solve = run.limits.solve

    def fills() -> bool:
        if "masked" not in solve.forms:
            return False
        run.recorder.observer.notice(PassProgress(doing="asking whether the model fills gaps"))
        return run.models.can_fill(pass_id=pass_of(run))

    def text(commit: str, path: str) -> str:
        return run.commits.tree(commit).texts((path,))[0].get(path, "")

    def rounds(
        candidates: Sequence[TriedAnswer], solve: SolveConfig = solve
    ) -> Iterable[Sequence[PlaceQuestion]]:
        now = replace(assignment, task=run.task.words)
        questions = Questions(run.models, targets, now, at_base.ran, text, fills=fills, solve=solve)
        return questions.rounds(candidates)

    def in_words(candidates: Sequence[TriedAnswer]) -> Iterable[Sequence[PlaceQuestion]]:
        forms = tuple(form for form in solve.forms if form != "masked")
        return rounds(candidates, replace(solve, forms=forms or ("function",)))

    places = [(target.place.path, target.place.name) for target in targets]
    direct = Direct(
        held=held_examples(run, at_base.standard, places, goals),
        goals=Goals(tests=goals, commit=run.progress.goals.commit, related=run.progress.goals.related),
        base=at_base.standard,
        places=tuple(target.place.name for target in targets),
        limit=solve.direct_tokens,
        took_ms=max(at_base.took_ms, at_base.standard.end.duration_ms),
    )
    done, number = try_direct(run, direct, rounds if goals else in_words), 1
    while not done and _is_hinted(run, step_id := f"{HINT}-{number}"):
        what_to_ask(run, at_base, files, step_id)
        done = try_direct(run, direct, in_words, step_id)
        number += 1
    return done


def _is_hinted(run: Run, step_id: str) -> bool:
    """Whether this pass would be the first to be shown a hint, or was so in an earlier process."""
    pass_id = pass_of(run, step_id)
    return run.journal.has(pass_id, DONE) or run.journal.hints.new_to(pass_id) > 0


def what_to_ask(
    run: Run, at_base: GoalsAtBase, files: Sequence[str] = (), step_id: str = STEP
) -> tuple[list[Target], Assignment]:
    """The places that are asked about, the likeliest first, and what is asked of each; the places are on record then."""
    goals = run.progress.goals.guiding
    trace = _goal_trace(run, goals, at_base.standard) if goals else GoalTrace()
    if trace.problem:
        run.recorder.note(f"what the goal tests execute is not known, or not whole: {trace.problem}")
    words = " ".join((run.task.words, *(goal.call for goal in goals)))
    likely = rank_places(trace, words, [goal.got for goal in goals]) if goals else _only_named(run)
    targets, functions = _likely_targets(run, likely, files)
    _record_places(run, trace, functions, pass_of(run, step_id))
    assignment = Assignment(
        task=run.task.words,
        goals=as_told(run, goals),
        observed=observed_text(functions[:3], bound=OBSERVED_CHARS),
    )
    return targets, assignment


def pass_of(run: Run, step_id: str = STEP) -> str:
    """The id of a pass of the direct route, by default of the first."""
    return implement_pass(run.task.task_id, PART, step_id)


def _goal_trace(run: Run, goals: Sequence[GoalTest], like: TestRun) -> GoalTrace:
    entry = run.journal.entry(run.task.task_id, "goal_trace", GoalTrace, (run.commits.head,))
    if entry.value is not None:
        return entry.value
    names = [goal.name for goal in goals if not goal.command]
    passing = passing_beside(goals, like.green())
    run.recorder.observer.notice(PassProgress(doing="running the goal tests to see what they execute"))
    run.tests.checkout(run.commits.head)
    return entry.keep(trace_goals(run.tests, names or goals[0].command, passing if names else (), like))


def passing_beside(goals: Sequence[GoalTest], green: Collection[str]) -> list[str]:
    """The passing tests, sorted, that stand where one of the goal tests does."""
    places = {goal.path or file_part(goal.name) for goal in goals}
    return sorted(name for name in green if file_part(name) in places or is_in(name, places))


def _only_named(run: Run) -> list[TracedFunction]:
    """The function that the task names; none if it names several: without a goal test nothing tells which of them has to change."""
    words = run.task.words
    found = run.context.mentioned(words) or run.context.named_plainly(words)
    return [
        TracedFunction(path=one.path, name=one.name, first_line=one.first_line, calls=0, lines=())
        for one in found
        if len(found) == 1 and one.kind in {"function", "method"}
    ]


def _likely_targets(
    run: Run, likely: Iterable[TracedFunction], files: Sequence[str]
) -> tuple[list[Target], list[TracedFunction]]:
    """The places of these functions that may be changed, with their files' texts; and their functions."""
    tree = run.commits.tree()
    targets: list[Target] = []
    functions: list[TracedFunction] = []
    for one in likely:
        if len(targets) == MOST_PLACES:
            break
        if not one.name or not may_change(run, tree, one.path, files):
            continue
        text = tree.texts((one.path,))[0][one.path]
        place = place_of(one, text)
        place = place and (class_to_write(place, text) or place)
        if place is not None and place not in [target.place for target in targets]:
            targets.append(Target(place=place, text=text, suspicion=one.suspicion))
            functions.append(one)
    return targets, functions


def _record_places(run: Run, trace: GoalTrace, chosen: Sequence[TracedFunction], pass_id: str) -> None:
    """The places that are asked about, and those that are not, as decisions of the pass."""
    rows = [
        DecisionRow(
            task_id=pass_id,
            stage="trace",
            subject=Subject(path=one.path, symbol=one.name, tier=0, score=round(one.suspicion, 3)),
            included=one in chosen,
            detail="primary" if one in chosen else "",
            reason=f"ran {counted(one.calls, 'time')} under the goal tests"
            if one.calls
            else "the task names it",
            timestamp="",
        )
        for one in (*chosen, *(other for other in trace.functions if other not in chosen))
    ]
    run.recorder.decisions(pass_id, rows)


def try_direct(run: Run, direct: Direct, rounds: Rounds, step_id: str = STEP) -> bool:
    """Whether a candidate holds: it is the run's head then, as the run's only step. All candidates are recorded."""
    pass_id = pass_of(run, step_id)
    title = f"asking about {listed(direct.places, NAMED)}"
    header = PassHeader(kind=PassType.IMPLEMENT, pass_id=pass_id, title=title, part_id=PART, step_id=step_id)
    entry = run.journal.entry(pass_id, DONE, Ended, (run.commits.head,))
    if entry.value is not None and entry.value.commit and not run.commits.exists(entry.value.commit):
        entry.value = None  # git lost it in a power cut
    current = run.journal.open_pass(header, entry)
    known = entry.value
    if known is None:
        known = entry.keep(_Route(run, direct, current).carry_out(rounds))
    with run.journal.interrupts.shield():
        current.close(PassEnd(success=known.tests is not None, detail=known.detail, diff=known.diff or None))
        if known.tests is None:
            run.progress.tried = known.tried
            return False
        _accept_candidate(run, known, step_id)
    return True


class Ended(Struct, frozen=True, kw_only=True):
    """How the direct route ended."""

    detail: str
    tests: TestRun | None = None
    """The step's tests of the candidate that holds; None if none does."""
    commit: str = ""
    diff: str = ""
    path: str = ""
    symbol: str = ""
    doubt: str = ""
    """What tells it from another candidate that holds as well, in words; "" if nothing is known to."""
    tried: tuple[Tried, ...] = ()
    """If none holds: what was tried."""


def _accept_candidate(run: Run, ended: Ended, step_id: str) -> None:
    assert ended.tests is not None
    plan = run.progress.plan
    step = PlanStep(
        id=step_id,
        description=run.task.description,
        target_files=(TargetFile(path=ended.path, role="modify"),),
        target_symbols=(ended.symbol,),
    )
    plan.total_parts = plan.total_steps = plan.parts_done = 1
    plan.files.add(ended.path)
    plan.done.append(StepDone(part_id=PART, step=step, commit=ended.commit))
    run.commits.head = ended.commit
    run.progress.accepted = ended.tests
    run.progress.doubt = ended.doubt
    if not run.journal.behind:
        run.commits.keep_head()
    run.report_progress()


class _Route:
    """One direct route under way."""

    def __init__(self, run: Run, direct: Direct, current: Pass) -> None:
        self._run = run
        self._direct = direct
        self._pass_id = current.header.pass_id
        self._attempts = f"attempts/{PART}/{current.header.step_id}"
        self._row_id = current.row_id
        self._candidates: list[TriedAnswer] = []

    def carry_out(self, rounds: Rounds) -> Ended:
        best: TriedAnswer | None = None
        limit: float = self._direct.limit
        for number, questions in enumerate(rounds(self._candidates)):
            if not questions:
                continue
            spent = self._run.journal.budget.spent()
            if spent or self._total_cost() >= limit:
                break
            try:
                self._run_round(number, questions)
            except ModelError as error:
                if best is None:
                    raise
                self._run.recorder.note(f"no smaller change was looked for: {error.message}")
                break
            first = best is None
            best = choose(self._candidates)
            if first and best is not None and best.left:
                limit = min(limit, max(LOOKED_ON * self._total_cost(), LEAST_SHARE * limit))
        if best is not None:
            return self._ended_with_best(best)
        return Ended(detail=self._failure_detail(), tried=in_vain(self._candidates))

    def _total_cost(self) -> float:
        """Of all answers so far."""
        answers = [one.answer for one in self._candidates]
        return sum(
            (one.completion_tokens or 0) + (one.prompt_tokens or 0) / READ_PER_WRITTEN for one in answers
        )

    def _run_round(self, number: int, questions: Sequence[PlaceQuestion]) -> None:
        """Add the candidates of one round; all are recorded, with the values from before if the run was resumed."""
        inputs = (self._run.commits.head, *(one.item for one in questions))
        entry: JournalEntry[list[TriedAnswer]] = self._run.journal.entry(
            self._pass_id, f"{ROUND} {number}", list[TriedAnswer], inputs
        )
        made = entry.value
        if made is not None and not all(self._run.commits.exists(one.commit) for one in made if one.commit):
            made = None  # git lost them in a power cut
        if made is None:
            made = entry.keep(self._with_test_results(self._draw_candidates(questions)))
        self._candidates += made
        best = choose(made)
        with self._run.journal.interrupts.shield():
            for one in made:
                self._record_candidate(one, best)

    def _draw_candidates(self, questions: Sequence[PlaceQuestion]) -> list[TriedAnswer]:
        """The answers, asked for side by side or in turn, as trees; of equal ones only the first is one."""
        first = len(self._candidates)
        numbers = f"candidates {first + 1} to {first + len(questions)}"
        self._notify_progress(f"{numbers}: {'less of the change' if questions[0].is_smaller else 'writing'}")

        def ask(index: int) -> Answered | NoCandidate:
            try:
                return questions[index].send(self._pass_id)
            except WindowExceeded as error:
                return NoCandidate(error.message)

        in_turn = any(question.in_turn for question in questions)
        workers = 1 if in_turn else min(len(questions), self._run.models.parallel)
        answers = at_a_time(ask, len(questions), workers=workers)
        made: list[TriedAnswer] = []
        for question, answer in zip(questions, answers, strict=True):
            if isinstance(answer, NoCandidate):
                self._run.recorder.event(self._pass_id, EventKind.DROPPED_FROM_PROMPT, question.item)
                continue
            made.append(self._place_answer(first + len(made) + 1, question, answer, made))
        return made

    def _place_answer(
        self, number: int, question: PlaceQuestion, answer: Answered, made: Sequence[TriedAnswer]
    ) -> TriedAnswer:
        one = TriedAnswer(
            number=number,
            item=question.item,
            path=question.path,
            symbol=question.symbol,
            base=question.base,
            answer=answer,
            fault=answer.fault,
        )
        if answer.fault:
            return one
        text = question.write(answer)
        if isinstance(text, NoCandidate):
            return replace(one, fault=text.words)
        same = next(
            (
                other
                for other in (*self._candidates, *made)
                if (other.base, other.path, other.text) == (one.base, one.path, text)
            ),
            None,
        )
        if same is not None:
            return replace(one, fault=f"the same change as candidate {same.number}")
        base = next(
            (other.commit for other in self._candidates if other.number == one.base), self._run.commits.head
        )
        changes = self._run.commits.tree(base).encode({question.path: text})
        if isinstance(changes, EditReport):
            return replace(one, fault=changes.detail)
        message = f"{self._run.task.description.strip()}\n\nCra-Task: {self._run.task.task_id}\nCra-Step: {self._pass_id}\n"
        commit = self._run.commits.commit(changes, message, parent=base)
        diff = self._run.commits.diff(self._run.commits.head, commit)
        self._run.recorder.observer.notice(CandidateDrawn(pass_id=self._pass_id, number=number, diff=diff))
        return replace(one, text=text, commit=commit, diff=diff)

    def _with_test_results(self, placed: list[TriedAnswer]) -> list[TriedAnswer]:
        """With the goal tests' runs, and the step's tests of those that are green."""
        waiting = [one for one in placed if one.commit]
        goals, like, took_ms = self._direct.goals.tests, self._direct.base, self._direct.took_ms
        runs = self._run.worktrees.at_each(
            [one.commit for one in waiting], lambda runner: run_goals(runner, goals, like, took_ms)
        )
        by_number = {one.number: replace(one, goals=ran) for one, ran in zip(waiting, runs, strict=True)}
        green = likeliest_first([one for one in by_number.values() if one.is_green(len(goals))])
        for one in green[:MOST_SUITES]:
            self._notify_progress(f"candidate {one.number}: goal tests green, now the others")
            by_number[one.number] = self._with_suite(one)
        green_before = {one.number: len(one.goals.green) for one in self._candidates if one.goals}
        nearer = [
            one
            for one in by_number.values()
            if one.goals and green_before.get(one.base, 0) < len(one.goals.green) < len(goals)
        ]
        for one in sorted(nearer, key=lambda one: -len(one.goals.green) if one.goals else 0)[:MOST_SUITES]:
            by_number[one.number] = self._with_what_it_breaks(one)
        return [by_number.get(one.number, one) for one in placed]

    def _with_suite(self, one: TriedAnswer) -> TriedAnswer:
        run, before = self._run, self._run.tests.names.of(self._direct.base)
        broken = broken_example(run, before, self._direct.held, one.commit)
        if broken:
            words = f"the documented example {broken.call} {gives(broken.got)}, not {broken.wanted} as before"
            return replace(one, broken=words, counter=broken)
        name = f"{self._attempts}/{one.number}"
        commit = run.commits.keep(one.commit, name)
        tests = run.worktrees.run_step_at((commit,))[0]
        accept = run.tests.config.accept
        verdict = judge_step(before, tests, accept)
        if not verdict.passed and settle_names(
            run, before, tests, unchanged=run.commits.head, changed=commit
        ):
            before, tests = run.tests.names.of(before), run.tests.names.of(tests)
            verdict = judge_step(before, tests, accept)
        if verdict.newly_failing:
            unstable = unstable_tests(run, tests, verdict.newly_failing, commit)
            if unstable:
                verdict = judge_step(before, tests, accept, unstable=unstable)
        if verdict.passed:
            run.tests.inform(commit)
        left = tuple(sorted(tests.red().intersection(self._direct.goals.related))) if verdict.passed else ()
        if left:
            red = counted(
                len(left), "test of what the task names is red", "tests of what the task names are red"
            )
            self._notify_progress(f"candidate {one.number} is kept, but {red} still: looking further")
        failing = [*sorted(verdict.newly_failing), *left][:MOST_READ]
        told = (goal_of_test(run, tests, name, GoalSource.REPOSITORY) for name in failing)
        counter = next((test for test in told if test.call and test.wanted), None)
        return replace(
            one,
            commit=commit,
            counter=counter,
            judgment=ChangeJudgment(tests=tests, verdict=verdict),
            left=left,
        )

    def _with_what_it_breaks(self, one: TriedAnswer) -> TriedAnswer:
        """The candidate, from which it may be gone on, with the tests that passed and fail with it."""
        run = self._run
        tests = run.worktrees.run_step_at((one.commit,))[0]
        before = run.tests.names.of(self._direct.base)
        failing = judge_step(before, run.tests.names.of(tests), run.tests.config.accept).newly_failing
        return replace(one, broken=f"fails now: {listed(failing, NAMED)}") if failing else one

    def _record_candidate(self, one: TriedAnswer, best: TriedAnswer | None) -> None:
        run = self._run
        outcome, error = outcome_of(one)
        if one.holds and best is not None and one is not best:
            error = f"candidate {best.number} is likelier, or more of them make its change"
        kept = one.judgment is not None
        row = AttemptRow(
            task_run_id=self._row_id,
            attempt=one.number,
            prompt_tokens=one.answer.prompt_tokens,
            completion_tokens=one.answer.completion_tokens,
            latency_ms=one.answer.latency_ms,
            raw_response=one.answer.text,
            patch_applied=bool(one.commit),
            timestamp=run.recorder.now(),
            outcome=outcome,
            diff=one.diff,
            call_id=one.answer.call_id,
            commit_hash=one.commit if kept else "",
            error=error,
        )
        run.recorder.attempt(row, self._validation_row(one, error))

    def _validation_row(self, one: TriedAnswer, error: str) -> ValidationRow | None:
        """The tests that judged it: all of the step's, or the goal tests alone."""
        if one.judgment is not None:
            return validation_of(
                self._run,
                one.judgment.tests,
                "attempt",
                task_id=self._pass_id,
                success=one.holds,
                newly_failing=one.judgment.verdict.newly_failing,
            )
        if one.goals is None:
            return None
        return ValidationRow(
            attempt_id=None,
            success=False,
            test_output=error,
            failing_tests=tuple(FailingTest(name=name, message=said) for name, said in one.goals.said),
            task_id=self._pass_id,
            kind="attempt",
            tests_run=len(self._direct.goals.tests),
            tests_passed=len(one.goals.green),
            timestamp=self._run.recorder.now(),
        )

    def _describe_doubt(self, best: TriedAnswer) -> str:
        """A call for which another candidate that holds gives something else than the best, where only the task's words show
        that either is right; "" if there is none.
        """
        run, base = self._run, self._direct.base
        goals = self._direct.goals.tests
        others = [one for one in self._candidates if one.holds and one is not best][:MOST_SUITES]
        if not others or any(goal.trust == "proof" for goal in goals):
            return ""
        calls = beside_goals(run, base, goals)
        values = values_of(run, base, calls, best.commit)
        for one in others:
            for call, value in values_of(run, base, calls, one.commit).items():
                if value != values[call]:
                    return (
                        f"{call} {gives(values[call])} with this change, {value} with another that does as well "
                        f"(candidate {one.number}); --check 'assert {call} == …' decides"
                    )
        return ""

    def _ended_with_best(self, best: TriedAnswer) -> Ended:
        assert best.judgment is not None, "only what passed its tests holds"
        detail = f"candidate {best.number} of {len(self._candidates)}: {best.judgment.verdict.reason}"
        return Ended(
            detail=detail,
            tests=best.judgment.tests,
            commit=best.commit,
            diff=best.diff,
            path=best.path,
            symbol=best.symbol,
            doubt=self._describe_doubt(best),
        )

    def _failure_detail(self) -> str:
        tried = [one for one in self._candidates if one.goals is not None]
        green = sum(one.is_green(len(self._direct.goals.tests)) for one in tried)
        if tried and not self._direct.goals.tests:
            return f"{counted(len(tried), 'candidate')}, each of which breaks tests"
        if green:
            return f"{counted(len(tried), 'candidate')}, {green} with green goal tests, each of which breaks others"
        return f"{counted(len(tried), 'candidate')}, none with green goal tests"

    def _notify_progress(self, words: str) -> None:
        self._run.recorder.observer.notice(PassProgress(doing=words))


def may_change(run: Run, tree: Tree, path: str, files: Sequence[str]) -> bool:
    """Whether a candidate may change the file: none that decides whether tests pass, that is protected, or that the user left
    out.
    """
    if files and path not in files:
        return False
    if is_test_path(path) or is_test_configuration(path) or path in run.deciding.files:
        return False
    return not matches_glob(path, run.limits.edit.protected) and bool(tree.texts((path,))[0])
