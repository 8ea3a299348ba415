"""Decomposed planning of a part: which places it changes, in which steps, and which step comes first.

If the meta-plan already named these places, from the same context, they are not asked for again. If only one definition
changes, the part is one step with the part's words. Two steps in the same file keep the order in which they were
written; for others the context decides if it can (`code_relations.py`), and otherwise a model is asked.
"""

from collections.abc import Sequence
from itertools import permutations

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage, section_texts
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import (
    FileRole,
    Part,
    PartPlan,
    PlanStep,
    PlanVerdict,
    PlanVerdicts,
    TargetFile,
)
from clean_room_agent.execute.code_relations import Place, ShownCode
from clean_room_agent.execute.decomposed_parts import NO_DEPENDENCY, NOT_NEEDED, pair_with_code, use_between
from clean_room_agent.execute.decomposed_plan_prompts import (
    STEP_DEPENDENCY,
    STEP_DESIGN,
    SYMBOL_TARGETS,
    DependencyInputs,
    StepDesignInputs,
    SymbolTargetsInputs,
)
from clean_room_agent.execute.grouping import needs_of
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import (
    Draft,
    PartAsked,
    Rejected,
    left_out,
    paths_shown,
    sampling_after,
    shown_evidence,
    steps_as_json,
    unreadable_draft,
)
from clean_room_agent.execute.plan_prompts import StepDesignAnswer, SymbolTargetsAnswer
from clean_room_agent.execute.plan_validation import only_match
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit, planner_contents
from clean_room_agent.llm.client import ModelClient, Reply

MAX_KNOWN = 40
"""Definitions that are listed: choosing among more would be a search."""


class Target(Struct, frozen=True, kw_only=True):
    """A place that a part changes, and what is done with its file."""

    place: Place
    role: FileRole

    def __str__(self) -> str:
        return f"{self.role} {self.place}"


class _Chosen(Struct, frozen=True, kw_only=True):
    """The places of a part, and what the answer said about them."""

    targets: tuple[Target, ...]
    rationale: str
    notes: tuple[str, ...]
    call_ids: tuple[int, ...]


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
        self._first = YesNo(
            models, STEP_DEPENDENCY, pass_id=pass_id, nothing=NO_DEPENDENCY, unreadable=False, rule=NOT_NEEDED
        )

    def draft(self, rejected: Rejected) -> Draft[PartPlan]:
        """The part in steps.

        Raises:
            WindowExceeded: the primary items of the context do not fit.
            ModelError: the server failed.
        """
        chosen = self._chosen(rejected)
        if isinstance(chosen, Draft):
            return chosen
        targets, notes = chosen.targets, chosen.notes
        part = self._asked.part
        if len(targets) == 1 and targets[0].place.symbol and not rejected.faults:
            step = PlanStep(
                id="s1",
                description=part.description,
                target_files=(TargetFile(path=targets[0].place.path, role=targets[0].role),),
                target_symbols=(targets[0].place.symbol,),
            )
            notes += ("one definition changes: the part is one step",)
            return self._made((step,), part.description, chosen, chosen.call_ids, notes, ())
        designed, dropped = self._design(targets, rejected)
        notes += dropped
        if designed.value is None:
            return unreadable_draft(designed, notes)
        own, moved = _places_of(designed.value, targets)
        steps = tuple(
            _step(f"s{number}", entry.description, [targets[place] for place in places])
            for number, (entry, places) in enumerate(zip(designed.value.steps, own, strict=True), 1)
            if places
        )
        ordered = self._ordered(steps)
        needs, circles = needs_of(tuple(step.id for step in steps), ordered)
        steps = tuple(step.model_copy(update={"depends_on": needs[step.id]}) for step in steps)
        asked = dict.fromkeys(one.call_id for one in ordered if one.call_id is not None)
        calls = (*chosen.call_ids, designed.call_id, *asked)
        return self._made(steps, designed.value.summary, chosen, calls, notes + moved + circles, ordered)

    def _made(
        self,
        steps: tuple[PlanStep, ...],
        summary: str,
        chosen: _Chosen,
        calls: tuple[int, ...],
        notes: tuple[str, ...],
        verdicts: tuple[PlanVerdict, ...],
    ) -> Draft[PartPlan]:
        part = self._asked.part
        plan = PartPlan(part_id=part.id, task_summary=summary, steps=steps, rationale=chosen.rationale)
        return Draft(
            value=plan,
            text=steps_as_json(steps),
            fault="",
            notes=notes,
            call_ids=calls,
            verdicts=verdicts,
            account=PlanVerdicts(items=tuple((step.id, step.description) for step in steps)),
        )

    def _chosen(self, rejected: Rejected) -> _Chosen | Draft[PartPlan]:
        """The places: those of the meta-plan if nothing was learned since, otherwise those that the model names."""
        known = self._known_targets() if self._asked.same_context and not rejected.faults else ()
        if known:
            note = "the places are those of the meta-plan, which was made from the same context"
            return _Chosen(targets=known, rationale=self._asked.rationale, notes=(note,), call_ids=())
        reply, notes = self._choose(rejected)
        if reply.value is None:
            return unreadable_draft(reply, notes)
        targets, corrected = self._targets(reply.value)
        return _Chosen(
            targets=targets,
            rationale=reply.value.analysis,
            notes=notes + corrected,
            call_ids=(reply.call_id,),
        )

    def _known_targets(self) -> tuple[Target, ...]:
        """The part's places if it names definitions and the context shows each of them; otherwise none."""
        part, found = self._asked.part, []
        for path in part.affected_files:
            named = [Place(path=path, symbol=symbol) for symbol in part.target_symbols]
            own = [place for place in named if self._shown.code(place)]
            found += [Target(place=place, role="modify") for place in own]
            if not own:
                return ()
        missing = set(part.target_symbols) - {target.place.symbol for target in found}
        return () if missing else tuple(found)

    def _choose(self, rejected: Rejected) -> tuple[Reply[SymbolTargetsAnswer], tuple[str, ...]]:
        asked = self._asked
        known = tuple(map(str, self._shown.definitions()))

        def build(carried: PromptContents) -> SymbolTargetsInputs:
            return SymbolTargetsInputs(
                context=carried.sections,
                others=carried.others,
                diff=carried.diff,
                evidence=self._evidence,
                task=self._package.task,
                goal="" if asked.goal in self._package.task else asked.goal,
                part=asked.part.description,
                files=asked.part.affected_files,
                known=known if len(known) <= MAX_KNOWN else (),
                max_targets=asked.max_targets,
                rejected=carried.rejected,
                faults=rejected.faults,
                paths=(*asked.part.affected_files, *paths_shown(self._package)),
            )

        fitted = fit(
            self._models,
            SYMBOL_TARGETS,
            build,
            planner_contents(self._package, asked.diff, rejected.text),
            answer_tokens=SYMBOL_TARGETS.max_answer_tokens,
        )
        sampling = sampling_after(self._models, rejected)
        reply = self._models.ask(SYMBOL_TARGETS, fitted.inputs, pass_id=self._pass_id, sampling=sampling)
        return reply, left_out(fitted.dropped)

    def _targets(self, answer: SymbolTargetsAnswer) -> tuple[tuple[Target, ...], tuple[str, ...]]:
        """The places without duplicates, with unambiguous paths completed; if there are too many, whole files instead."""
        paths = self._asked.paths
        found: dict[Place, FileRole] = {}
        notes = []
        for target in answer.targets:
            path = target.file
            if target.role != "create" and path not in paths and only_match(path, paths):
                path = only_match(path, paths)
                notes.append(f"{target.file} can only be {path}")
            found.setdefault(Place(path=path, symbol=target.symbol.strip()), target.role)
        if len(found) > self._asked.max_targets:
            notes.append(
                f"{len(found)} places are more than {self._asked.max_targets}: whole files in their place"
            )
            files: dict[Place, FileRole] = {}
            for place, role in found.items():
                files.setdefault(Place(path=place.path), role)
            found = files
        return tuple(Target(place=place, role=role) for place, role in found.items()), tuple(notes)

    def _design(
        self, targets: Sequence[Target], rejected: Rejected
    ) -> tuple[Reply[StepDesignAnswer], tuple[str, ...]]:
        asked = self._asked
        files = {target.place.path for target in targets}
        about = [item for item in self._package.items if item.section != "code" or item.path in files]

        def build(carried: PromptContents) -> StepDesignInputs:
            return StepDesignInputs(
                context=carried.sections,
                diff=carried.diff,
                evidence=self._evidence,
                task=self._package.task,
                part=asked.part.description,
                targets=tuple(map(str, targets)),
                max_steps=asked.max_steps,
                max_lines=asked.max_lines,
                rejected=carried.rejected,
                faults=rejected.faults,
            )

        wanted = all_contents(None, asked.diff, rejected=rejected.text)
        fitted = fit(
            self._models,
            STEP_DESIGN,
            build,
            PromptContents(items=tuple(about), hunks=wanted.hunks, rejected=wanted.rejected),
            answer_tokens=STEP_DESIGN.max_answer_tokens,
        )
        sampling = sampling_after(self._models, rejected)
        reply = self._models.ask(STEP_DESIGN, fitted.inputs, pass_id=self._pass_id, sampling=sampling)
        return reply, left_out(fitted.dropped)

    def _ordered(self, steps: Sequence[PlanStep]) -> tuple[PlanVerdict, ...]:
        """For each ordered pair of steps, whether the first needs the second to be done before it."""
        pairs = list(permutations(steps, 2))
        known = {(step.id, other.id): self._order_by_code(step, other, steps) for step, other in pairs}
        open_pairs = [(step, other) for step, other in pairs if known[step.id, other.id] is None]
        words = tuple(f"{step.id}: {step.description}" for step in steps)
        asked = self._first.ask(
            [
                (
                    f"{step.id} {other.id}",
                    [
                        DependencyInputs(task=self._package.task, drafts=words, one=first, other=second)
                        for first, second in pair_with_code(
                            self._shown,
                            (f"{step.id}: {step.description}", _step_places(self._shown, step)),
                            (f"{other.id}: {other.description}", _step_places(self._shown, other)),
                        )
                    ],
                )
                for step, other in open_pairs
            ]
        )
        answers = {verdict.item: verdict for verdict in asked}
        return tuple(known[step.id, other.id] or answers[f"{step.id} {other.id}"] for step, other in pairs)

    def _order_by_code(
        self, step: PlanStep, other: PlanStep, steps: Sequence[PlanStep]
    ) -> PlanVerdict | None:
        item = f"{step.id} {other.id}"
        files = {target.path for target in step.target_files}
        if not files.isdisjoint(target.path for target in other.target_files):
            later = steps.index(step) > steps.index(other)
            return self._first.decided(item, yes=later, reason="the same file: in the order of the plan")
        used = use_between(self._shown, _step_places(self._shown, step), _step_places(self._shown, other))
        return None if used is None else self._first.decided(item, yes=used[0], reason=used[1])


def symbol_targets_tokens(
    models: ModelClient, task: str, part: Part, *, goal: str, evidence: Evidence, rejected: Rejected
) -> int:
    """Tokens that the larger of the two prompts and its answer need besides code, paths and diff."""
    shown = shown_evidence(models, evidence)
    targets = SymbolTargetsInputs(
        context=section_texts(()),
        others=(),
        diff="",
        evidence=shown,
        task=task,
        goal=goal,
        part=part.description,
        files=part.affected_files,
        known=(),
        max_targets=1,
        rejected=rejected.text,
        faults=rejected.faults,
    )
    steps = StepDesignInputs(
        context=section_texts(()),
        diff="",
        evidence=shown,
        task=task,
        part=part.description,
        targets=part.affected_files,
        max_steps=1,
        max_lines=1,
        rejected=rejected.text,
        faults=rejected.faults,
    )
    return max(
        models.measure(SYMBOL_TARGETS, targets) + SYMBOL_TARGETS.max_answer_tokens,
        models.measure(STEP_DESIGN, steps) + STEP_DESIGN.max_answer_tokens,
    )


def _places_of(
    answer: StepDesignAnswer, targets: Sequence[Target]
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
    for step, places in enumerate(own, 1):
        if not places:
            notes.append(f"step {step} names no place and is left out")
    return own, tuple(notes)


def _step(name: str, description: str, targets: Sequence[Target]) -> PlanStep:
    files: dict[str, FileRole] = {}
    for target in targets:
        files.setdefault(target.place.path, target.role)
    return PlanStep(
        id=name,
        description=description.strip(),
        target_files=tuple(TargetFile(path=path, role=role) for path, role in files.items()),
        target_symbols=tuple(dict.fromkeys(target.place.symbol for target in targets if target.place.symbol)),
    )


def _step_places(shown: ShownCode, step: PlanStep) -> list[Place]:
    """The step's definitions that the context shows of its files; the whole of a file of which it shows none."""
    places = []
    for target in step.target_files:
        named = [Place(path=target.path, symbol=symbol) for symbol in step.target_symbols]
        places += [place for place in named if shown.code(place)] or [Place(path=target.path)]
    return places
