"""Decomposed planning: which places change, which of them belong together, which part or step comes first.

    c1 split in till/money.py     c1 c2: another file, other folder, neither uses the other: no    p1 = c1
    c2 page in web/view.py        c2 c3: the same file: yes                                       p2 = c2, c3
    c3 link in web/view.py        p2 p1: page uses split: yes                                     p2 needs p1

A part is divided likewise: its places, the steps over these places, which step comes first. If the meta-plan already
named the places, from the same context, they are not asked for again; if only one definition changes, the part is one step.

The context decides if it can (`code_relations.py`); otherwise a model is asked. An unreadable answer counts as "together"
and as "not needed": parts that are too large are divided into steps, and parts are in the order of their places anyway.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import (
    FileRole,
    MetaPlan,
    Part,
    PartPlan,
    PlanStep,
    PlanVerdict,
    TargetFile,
)
from clean_room_agent.execute.code_relations import CodePlace, PlanPiece, ShownCode
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import (
    PartAsked,
    PlanDraft,
    PlanLimits,
    Rejected,
    ask_for_draft,
    paths_shown,
    shown_evidence,
    steps_as_json,
    unreadable_draft,
)
from clean_room_agent.execute.plan_prompts import (
    CHANGE_POINTS,
    PART_DEPENDENCY,
    SAME_PART,
    STEP_DEPENDENCY,
    STEP_DESIGN,
    SYMBOL_TARGETS,
    ChangePointsAnswer,
    ChangePointsInputs,
    DependencyInputs,
    SamePartInputs,
    StepDesignAnswer,
    StepDesignInputs,
    SymbolTargetsAnswer,
    SymbolTargetsInputs,
)
from clean_room_agent.execute.plan_validation import only_match
from clean_room_agent.execute.prompt_fitting import all_contents, planner_contents
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.llm.prompt import InputsT, Prompt

MAX_KNOWN = 40
"""Definitions that are listed: choosing among more would be a search."""
NO_PAIR = SamePartInputs(task=NOTHING, changes=(NOTHING,), first=NOTHING, second=NOTHING, known=())
NO_DEPENDENCY = DependencyInputs(task=NOTHING, drafts=(NOTHING,), one=NOTHING, other=NOTHING)


def dependency_question(
    models: ModelClient, prompt: Prompt[DependencyInputs, Choice], pass_id: str
) -> YesNo[DependencyInputs]:
    """The question whether one piece needs another first."""
    rule = "what cannot be read makes nobody wait"
    return YesNo(models, prompt, pass_id=pass_id, nothing=NO_DEPENDENCY, unreadable=False, rule=rule)


def ordered(
    question: YesNo[DependencyInputs], shown: ShownCode, task: str, pieces: Sequence[PlanPiece]
) -> tuple[PlanVerdict, ...]:
    """For each ordered pair of pieces, whether the first needs the second to be done before it."""
    drafts = tuple(map(str, pieces))

    def by_code(piece: PlanPiece, other: PlanPiece) -> PlanVerdict | None:
        used = shown.waits(piece, other)
        return used and question.decided(f"{piece.id} {other.id}", yes=used[0], reason=used[1])

    def ways(piece: PlanPiece, other: PlanPiece) -> list[DependencyInputs]:
        return [
            DependencyInputs(task=task, drafts=drafts, one=one, other=two)
            for one, two in shown.with_code(piece, other, (str(piece), str(other)))
        ]

    return _judge_pairs(question, permutations(pieces, 2), by_code, ways)


def _judge_pairs(
    question: YesNo[InputsT],
    pairs: Iterable[tuple[PlanPiece, PlanPiece]],
    by_code: Callable[[PlanPiece, PlanPiece], PlanVerdict | None],
    ways: Callable[[PlanPiece, PlanPiece], Sequence[InputsT]],
) -> tuple[PlanVerdict, ...]:
    """The verdict on each pair, by the code if that shows it, else by the model."""
    known = [(one, other, by_code(one, other)) for one, other in pairs]
    asked = iter(
        question.ask(
            [(f"{one.id} {other.id}", ways(one, other)) for one, other, verdict in known if verdict is None]
        )
    )
    return tuple(verdict or next(asked) for *_, verdict in known)


def grouped(
    pieces: Sequence[PlanPiece], together: Iterable[PlanVerdict], most: int
) -> list[tuple[PlanPiece, ...]]:
    """The pieces in groups, in the order of their first; the last of more than `most` groups are merged.

    `together` are verdicts on `a b`: whether a and b belong together, with all that belong with either.
    """
    group = {piece.id: frozenset({piece.id}) for piece in pieces}
    for verdict in together:
        if verdict.yes:
            first, second = verdict.item.split(" ")
            merged = group[first] | group[second]
            group |= dict.fromkeys(merged, merged)
    found = list(dict.fromkeys(group[piece.id] for piece in pieces))
    found[most - 1 :] = [frozenset().union(*found[most - 1 :])] if len(found) > most else found[most - 1 :]
    return [tuple(piece for piece in pieces if piece.id in ids) for ids in found]


def needs_of(
    names: Sequence[str], verdicts: Iterable[PlanVerdict]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """What each of the names needs, by the verdicts on `a b` (a needs b); and a note on each dependency that was left
    out.

    A cycle loses its least certain dependency. What was decided without a model is the most certain, then what the
    model said most clearly, then what was asked first.
    """
    certain = sorted(
        (verdict for verdict in verdicts if verdict.yes),
        key=lambda verdict: (verdict.call_id is not None, -(verdict.calibrated or 0.0)),
    )
    needs: dict[str, set[str]] = {name: set() for name in names}
    reach = {name: {name} for name in names}  # itself, and everything that it needs, directly or not
    notes = []
    for verdict in certain:
        user, needed = verdict.item.split(" ")
        if user in reach[needed]:
            notes.append(
                f"{user} does not wait for {needed}: {needed} needs {user} already, and they cannot both come first"
            )
            continue
        needs[user].add(needed)
        for name in names:
            if user in reach[name]:
                reach[name] |= reach[needed]
    return {name: tuple(other for other in names if other in needs[name]) for name in names}, tuple(notes)


def _call_ids(*verdicts: PlanVerdict) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one.call_id for one in verdicts if one.call_id is not None))


class DecomposedParts:
    """Makes the drafts of one meta-plan; verdicts of one draft are reused for the next."""

    def __init__(
        self,
        models: ModelClient,
        package: ContextPackage,
        evidence: Evidence,
        limits: PlanLimits,
        *,
        pass_id: str,
    ) -> None:
        self._models = models
        self._package = package
        self._evidence = shown_evidence(models, evidence)
        self._pass_id = pass_id
        self._limits = limits
        self._shown = ShownCode(package)
        rule = "what cannot be read stays in one part"
        self._same = YesNo(models, SAME_PART, pass_id=pass_id, nothing=NO_PAIR, unreadable=True, rule=rule)
        self._first = dependency_question(models, PART_DEPENDENCY, pass_id)

    def draft(self, rejected: Rejected) -> PlanDraft[MetaPlan]:
        """The task in parts.

        Raises:
            WindowExceeded: the primary items of the context do not fit.
            ModelError: the server failed.
        """
        task = self._package.task

        inputs = ChangePointsInputs(
            evidence=self._evidence,
            max_points=self._limits.max_points,
            task=task,
            paths=paths_shown(self._package),
        )
        wanted = planner_contents(self._package, rejected=rejected.text)
        reply, notes = ask_for_draft(
            self._models, CHANGE_POINTS, inputs, wanted, rejected, pass_id=self._pass_id
        )
        if reply.value is None:
            return unreadable_draft(reply, notes)
        points, corrected = self._merge_change_points(reply.value)
        together = self._judge_same_part(points)
        apart = len(grouped(points, together, len(points)))
        groups = grouped(points, together, self._limits.max_parts)
        if len(groups) < apart:
            notes += (f"{apart} parts are too many: the last {apart - len(groups) + 1} are one",)
        pieces = [
            PlanPiece(
                id=f"p{number}",
                words="; ".join(point.words for point in group),
                places=tuple(place for point in group for place in point.places),
            )
            for number, group in enumerate(groups, 1)
        ]
        verdicts = ordered(self._first, self._shown, task, pieces)
        needs, circles = needs_of([piece.id for piece in pieces], verdicts)
        plan = MetaPlan(
            task_summary=reply.value.summary,
            parts=tuple(_part_from_piece(piece, needs[piece.id]) for piece in pieces),
            rationale=reply.value.analysis,
        )
        return PlanDraft(
            value=plan,
            text=reply.text,
            notes=notes + corrected + circles,
            call_ids=(reply.call_id, *_call_ids(*together, *verdicts)),
            verdicts=(*together, *verdicts),
        )

    def _merge_change_points(
        self, answer: ChangePointsAnswer
    ) -> tuple[tuple[PlanPiece, ...], tuple[str, ...]]:
        """The places without duplicates, with unambiguous paths completed."""
        known = {*(item.path for item in self._package.items), *self._package.others}
        found: dict[CodePlace, list[str]] = {}
        notes = []
        for point in answer.points:
            path = point.file if point.file in known else only_match(point.file, known) or point.file
            if path != point.file:
                notes.append(f"{point.file} can only be {path}")
            found.setdefault(CodePlace(path=path, symbol=point.symbol.strip()), []).append(
                point.change.strip()
            )
        pieces = []
        for number, (place, changes) in enumerate(found.items(), 1):
            change = " ".join(dict.fromkeys(filter(None, changes)))
            words = f"{place}: {change}" if change else str(place)
            pieces.append(PlanPiece(id=f"c{number}", words=words, places=(place,)))
        return tuple(pieces), tuple(dict.fromkeys(notes))

    def _judge_same_part(self, points: Sequence[PlanPiece]) -> tuple[PlanVerdict, ...]:
        """For each pair of points, whether they belong in the same part."""
        changes = tuple(point.words for point in points)

        def by_code(one: PlanPiece, other: PlanPiece) -> PlanVerdict | None:
            found = self._known_together(one, other, points)
            return found and self._same.decided(f"{one.id} {other.id}", yes=found[0], reason=found[1])

        def ways(one: PlanPiece, other: PlanPiece) -> list[SamePartInputs]:
            (here,), (there,) = one.places, other.places
            known = tuple(
                f"{user} uses {used}"
                for user, used in ((here, there), (there, here))
                if self._shown.uses(user, used)
            )
            return [
                SamePartInputs(
                    task=self._package.task, changes=changes, first=first, second=second, known=known
                )
                for first, second in self._shown.with_code(one, other, (one.words, other.words))
            ]

        return _judge_pairs(self._same, combinations(points, 2), by_code, ways)

    def _known_together(
        self, one: PlanPiece, other: PlanPiece, points: Sequence[PlanPiece]
    ) -> tuple[bool, str] | None:
        """Whether two points belong together, and why, if it needs no model; else None."""
        (here,), (there,) = one.places, other.places
        if here.path == there.path:
            return True, "the same file"
        if points.index(other) >= self._limits.max_points:
            last = points[self._limits.max_points - 1]
            return one is last, f"beyond max_change_points = {self._limits.max_points}: with {last.id}"
        if test := self._shown.tested_together(here, there):
            return True, f"the failing test {test} uses both"
        related = (self._shown.uses(here, there), self._shown.uses(there, here))
        if related == (False, False) and PurePosixPath(here.path).parent != PurePosixPath(there.path).parent:
            return False, "other folders, and neither uses the other"
        return None


def _part_from_piece(piece: PlanPiece, needs: tuple[str, ...]) -> Part:
    return Part(
        id=piece.id,
        description=piece.words,
        affected_files=tuple(dict.fromkeys(place.path for place in piece.places)),
        depends_on=needs,
        target_symbols=tuple(dict.fromkeys(place.symbol for place in piece.places if place.symbol)),
    )


class PlannedTarget(Struct, frozen=True, kw_only=True):
    """A place that a part changes, and what is done with its file."""

    place: CodePlace
    role: FileRole

    def __str__(self) -> str:
        return f"{self.role} {self.place}"


class DecomposedSteps:
    """Makes the drafts of one part's plan; verdicts of one draft are reused for the next."""

    def __init__(
        self, models: ModelClient, package: ContextPackage, asked: PartAsked, *, pass_id: str
    ) -> None:
        self._models = models
        self._package = package
        self._asked = asked
        self._evidence = shown_evidence(models, asked.evidence)
        self._pass_id = pass_id
        self._shown = ShownCode(package)
        self._first = dependency_question(models, STEP_DEPENDENCY, pass_id)

    def draft(self, rejected: Rejected) -> PlanDraft[PartPlan]:
        """The part in steps.

        Raises:
            WindowExceeded: the primary items of the context do not fit.
            ModelError: the server failed.
        """
        part = self._asked.part
        targets = self._known_targets() if self._asked.same_context and not rejected.faults else ()
        notes: tuple[str, ...] = ()
        calls: tuple[int, ...] = ()
        verdicts: tuple[PlanVerdict, ...] = ()
        rationale = self._asked.meta.rationale
        if targets:
            notes = ("the places are those of the meta-plan, which was made from the same context",)
        else:
            reply, notes = self._choose_targets(rejected)
            if reply.value is None:
                return unreadable_draft(reply, notes)
            targets, corrected = self._merge_targets(reply.value)
            rationale, notes, calls = reply.value.analysis, notes + corrected, (reply.call_id,)
        if len(targets) == 1 and targets[0].place.symbol and not rejected.faults:
            steps: tuple[PlanStep, ...] = (_step_from_targets("s1", part.description, targets),)
            summary = part.description
            notes += ("one definition changes: the part is one step",)
        else:
            designed, dropped = self._design_steps(targets, rejected)
            if designed.value is None:
                return unreadable_draft(designed, notes + dropped)
            own, moved = _places_of(designed.value, targets)
            steps = tuple(
                _step_from_targets(f"s{number}", entry.description, [targets[place] for place in places])
                for number, (entry, places) in enumerate(zip(designed.value.steps, own, strict=True), 1)
                if places
            )
            verdicts = ordered(
                self._first, self._shown, self._package.task, tuple(map(self._piece_from_step, steps))
            )
            needs, circles = needs_of([step.id for step in steps], verdicts)
            steps = tuple(step.model_copy(update={"depends_on": needs[step.id]}) for step in steps)
            summary = designed.value.summary
            notes += (*dropped, *moved, *circles)
            calls = (*calls, designed.call_id, *_call_ids(*verdicts))
        return PlanDraft(
            value=PartPlan(part_id=part.id, task_summary=summary, steps=steps, rationale=rationale),
            text=steps_as_json(steps),
            notes=notes,
            call_ids=calls,
            verdicts=verdicts,
        )

    def _known_targets(self) -> tuple[PlannedTarget, ...]:
        """The part's places if it names definitions and the context shows each of them; otherwise none."""
        part, found = self._asked.part, []
        for path in part.affected_files:
            named = [CodePlace(path=path, symbol=symbol) for symbol in part.target_symbols]
            own = [place for place in named if self._shown.code(place)]
            found += [PlannedTarget(place=place, role="modify") for place in own]
            if not own:
                return ()
        missing = set(part.target_symbols) - {target.place.symbol for target in found}
        return () if missing else tuple(found)

    def _choose_targets(self, rejected: Rejected) -> tuple[Reply[SymbolTargetsAnswer], tuple[str, ...]]:
        asked = self._asked
        known = tuple(map(str, self._shown.definitions))
        inputs = SymbolTargetsInputs(
            evidence=self._evidence,
            task=self._package.task,
            goal="" if asked.goal in self._package.task else asked.goal,
            part=asked.part.description,
            files=asked.part.affected_files,
            known=known if len(known) <= MAX_KNOWN else (),
            max_targets=asked.limits.max_points,
            paths=(*asked.part.affected_files, *paths_shown(self._package)),
        )
        wanted = planner_contents(self._package, asked.diff, rejected.text)
        return ask_for_draft(self._models, SYMBOL_TARGETS, inputs, wanted, rejected, pass_id=self._pass_id)

    def _merge_targets(
        self, answer: SymbolTargetsAnswer
    ) -> tuple[tuple[PlannedTarget, ...], tuple[str, ...]]:
        """The places without duplicates, with unambiguous paths completed; if there are too many, whole files instead."""
        paths, most = self._asked.paths, self._asked.limits.max_points
        found: dict[CodePlace, FileRole] = {}
        notes = []
        for target in answer.targets:
            path = target.file
            if target.role != "create" and path not in paths and only_match(path, paths):
                path = only_match(path, paths)
                notes.append(f"{target.file} can only be {path}")
            found.setdefault(CodePlace(path=path, symbol=target.symbol.strip()), target.role)
        if len(found) > most:
            notes.append(f"{len(found)} places are more than {most}: whole files in their place")
            files: dict[CodePlace, FileRole] = {}
            for place, role in found.items():
                files.setdefault(CodePlace(path=place.path), role)
            found = files
        return tuple(PlannedTarget(place=place, role=role) for place, role in found.items()), tuple(notes)

    def _design_steps(
        self, targets: Sequence[PlannedTarget], rejected: Rejected
    ) -> tuple[Reply[StepDesignAnswer], tuple[str, ...]]:
        asked = self._asked
        files = {target.place.path for target in targets}
        about = tuple(item for item in self._package.items if item.section != "code" or item.path in files)
        inputs = StepDesignInputs(
            evidence=self._evidence,
            task=self._package.task,
            part=asked.part.description,
            targets=tuple(map(str, targets)),
            max_steps=asked.limits.max_steps,
            max_lines=asked.limits.max_lines,
        )
        wanted = replace(all_contents(None, asked.diff, rejected=rejected.text), items=about)
        return ask_for_draft(self._models, STEP_DESIGN, inputs, wanted, rejected, pass_id=self._pass_id)

    def _piece_from_step(self, step: PlanStep) -> PlanPiece:
        """The step with its definitions that the context shows; with the whole of a file of which it shows none."""
        places: list[CodePlace] = []
        for target in step.target_files:
            named = [CodePlace(path=target.path, symbol=symbol) for symbol in step.target_symbols]
            places += [place for place in named if self._shown.code(place)] or [CodePlace(path=target.path)]
        return PlanPiece(id=step.id, words=step.description, places=tuple(places))


def _places_of(
    answer: StepDesignAnswer, targets: Sequence[PlannedTarget]
) -> tuple[list[list[int]], tuple[str, ...]]:
    """For each step, its targets (from 0); a target that no step names goes to the step in the same file, or else to
    the last step.
    """
    own = [
        [number - 1 for number in dict.fromkeys(step.targets) if 1 <= number <= len(targets)]
        for step in answer.steps
    ]
    notes = []
    for place, target in enumerate(targets):
        if any(place in places for places in own):
            continue
        path = target.place.path
        same = (step for step, places in enumerate(own) if any(targets[n].place.path == path for n in places))
        step = next(same, len(own) - 1)
        own[step].append(place)
        notes.append(f"no step had {target}: step {step + 1} has it")
    notes += [
        f"step {step} names no place and is left out" for step, places in enumerate(own, 1) if not places
    ]
    return own, tuple(notes)


def _step_from_targets(name: str, description: str, targets: Sequence[PlannedTarget]) -> PlanStep:
    files: dict[str, FileRole] = {}
    for target in targets:
        files.setdefault(target.place.path, target.role)
    return PlanStep(
        id=name,
        description=description.strip(),
        target_files=tuple(TargetFile(path=path, role=role) for path, role in files.items()),
        target_symbols=tuple(dict.fromkeys(target.place.symbol for target in targets if target.place.symbol)),
    )
