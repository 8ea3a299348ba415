"""Decomposed planning of a task: which places change, which of them belong together, which part comes first.

    c1 split in till/money.py     c1 c2: another file, other folder, neither uses the other: no    p1 = c1
    c2 page in web/view.py        c2 c3: the same file: yes                                       p2 = c2, c3
    c3 link in web/view.py        p2 p1: page uses split: yes                                     p2 needs p1

The context decides if it can (`code_relations.py`); otherwise a model is asked. An unreadable answer counts as
"together" and as "not needed": parts that are too large are divided into steps, and parts are in the order of their
places anyway.
"""

from collections.abc import Sequence
from itertools import combinations, permutations

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage, fence_for, frame, section_texts
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import item_name
from clean_room_agent.artifacts.plans import MetaPlan, Part, PlanVerdict, PlanVerdicts
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    joined,
    sourced,
    without_line_end,
)
from clean_room_agent.execute.code_relations import Place, ShownCode, folder
from clean_room_agent.execute.decomposed_plan_prompts import (
    CHANGE_POINTS,
    PART_DEPENDENCY,
    SAME_PART,
    ChangePointsInputs,
    DependencyInputs,
    SamePartInputs,
)
from clean_room_agent.execute.grouping import at_most, groups, needs_of
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import (
    Draft,
    Rejected,
    left_out,
    paths_shown,
    sampling_after,
    shown_evidence,
    unreadable_draft,
)
from clean_room_agent.execute.plan_prompts import ChangePointsAnswer
from clean_room_agent.execute.plan_validation import only_match
from clean_room_agent.execute.prompt_fitting import PromptContents, fit, planner_contents
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING

TOGETHER = "what cannot be read stays in one part"
NOT_NEEDED = "what cannot be read makes nobody wait"
NO_PAIR = SamePartInputs(task=NOTHING, changes=(NOTHING,), first=NOTHING, second=NOTHING, known=())
NO_DEPENDENCY = DependencyInputs(task=NOTHING, drafts=(NOTHING,), one=NOTHING, other=NOTHING)


class ChangePoint(Struct, frozen=True, kw_only=True):
    """A place that the task changes, and how."""

    id: str
    place: Place
    change: str

    @property
    def words(self) -> str:
        """The change in one line."""
        return f"{self.place}: {self.change}" if self.change else str(self.place)


class DecomposedParts:
    """Makes the drafts of one meta-plan; verdicts of one draft are reused for the next."""

    def __init__(
        self,
        models: ModelClient,
        package: ContextPackage,
        evidence: Evidence,
        *,
        pass_id: str,
        max_parts: int,
        max_points: int,
    ) -> None:
        self._models = models
        self._package = package
        self._evidence = shown_evidence(models, evidence)
        self._pass_id = pass_id
        self._max_parts = max_parts
        self._max_points = max_points
        self._shown = ShownCode(package)
        self._same = YesNo(
            models, SAME_PART, pass_id=pass_id, nothing=NO_PAIR, unreadable=True, rule=TOGETHER
        )
        self._first = YesNo(
            models, PART_DEPENDENCY, pass_id=pass_id, nothing=NO_DEPENDENCY, unreadable=False, rule=NOT_NEEDED
        )

    def draft(self, rejected: Rejected) -> Draft[MetaPlan]:
        """The task in parts.

        Raises:
            WindowExceeded: the primary items of the context do not fit.
            ModelError: the server failed.
        """

        def build(carried: PromptContents) -> ChangePointsInputs:
            return ChangePointsInputs(
                context=carried.sections,
                others=carried.others,
                evidence=self._evidence,
                max_points=self._max_points,
                task=self._package.task,
                rejected=carried.rejected,
                faults=rejected.faults,
                paths=paths_shown(self._package),
            )

        carried = planner_contents(self._package, rejected=rejected.text)
        tokens = CHANGE_POINTS.max_answer_tokens
        fitted = fit(self._models, CHANGE_POINTS, build, carried, answer_tokens=tokens)
        sampling = sampling_after(self._models, rejected)
        reply = self._models.ask(CHANGE_POINTS, fitted.inputs, pass_id=self._pass_id, sampling=sampling)
        notes = left_out(fitted.dropped)
        if reply.value is None:
            return unreadable_draft(reply, notes)
        points, corrected = self._points(reply.value)
        together = self._together(points)
        joined = (
            (int(a[1:]) - 1, int(b[1:]) - 1) for a, b in (one.item.split(" ") for one in together if one.yes)
        )
        grouped = groups(len(points), joined)
        fewer = at_most(grouped, self._max_parts)
        if len(fewer) < len(grouped):
            notes += (f"{len(grouped)} parts are too many: the last {len(grouped) - len(fewer) + 1} are one",)
        parts = {f"p{number}": [points[place] for place in group] for number, group in enumerate(fewer, 1)}
        ordered = self._ordered(parts)
        needs, circles = needs_of(tuple(parts), ordered)
        plan = MetaPlan(
            task_summary=reply.value.summary,
            parts=tuple(_part(name, own, needs[name]) for name, own in parts.items()),
            rationale=reply.value.analysis,
        )
        asked = dict.fromkeys(one.call_id for one in (*together, *ordered) if one.call_id is not None)
        return Draft(
            value=plan,
            text=reply.text,
            fault="",
            notes=notes + corrected + circles,
            call_ids=(reply.call_id, *asked),
            verdicts=(*together, *ordered),
            account=PlanVerdicts(
                items=(
                    *((one.id, one.words) for one in points),
                    *((one.id, one.description) for one in plan.parts),
                )
            ),
        )

    def _points(self, answer: ChangePointsAnswer) -> tuple[tuple[ChangePoint, ...], tuple[str, ...]]:
        """The places without duplicates, with unambiguous paths completed."""
        known = {*(item.path for item in self._package.items), *self._package.others}
        found: dict[Place, list[str]] = {}
        notes = []
        for point in answer.points:
            path = point.file if point.file in known else only_match(point.file, known) or point.file
            if path != point.file:
                notes.append(f"{point.file} can only be {path}")
            place = Place(path=path, symbol=point.symbol.strip())
            found.setdefault(place, []).append(point.change.strip())
        points = tuple(
            ChangePoint(id=f"c{number}", place=place, change=" ".join(dict.fromkeys(filter(None, changes))))
            for number, (place, changes) in enumerate(found.items(), 1)
        )
        return points, tuple(dict.fromkeys(notes))

    def _together(self, points: Sequence[ChangePoint]) -> tuple[PlanVerdict, ...]:
        """For each pair of points, whether they belong in the same part."""
        pairs = list(combinations(points, 2))
        known = {(one.id, other.id): self._together_by_code(one, other, points) for one, other in pairs}
        open_pairs = [(one, other) for one, other in pairs if known[one.id, other.id] is None]
        words = tuple(point.words for point in points)
        asked = self._same.ask(
            [(f"{one.id} {other.id}", self._pair_inputs(one, other, words)) for one, other in open_pairs]
        )
        answers = {verdict.item: verdict for verdict in asked}
        return tuple(known[one.id, other.id] or answers[f"{one.id} {other.id}"] for one, other in pairs)

    def _together_by_code(
        self, one: ChangePoint, other: ChangePoint, points: Sequence[ChangePoint]
    ) -> PlanVerdict | None:
        """The verdict on two points, if it needs no model; else None."""
        item = f"{one.id} {other.id}"
        if one.place.path == other.place.path:
            return self._same.decided(item, yes=True, reason="the same file")
        if points.index(other) >= self._max_points:
            last = points[self._max_points - 1]
            reason = f"beyond max_change_points = {self._max_points}: with {last.id}"
            return self._same.decided(item, yes=one is last, reason=reason)
        test = self._shown.tested_together(one.place, other.place)
        if test:
            return self._same.decided(item, yes=True, reason=f"the failing test {test} uses both")
        related = (self._shown.uses(one.place, other.place), self._shown.uses(other.place, one.place))
        if related == (False, False) and folder(one.place.path) != folder(other.place.path):
            return self._same.decided(item, yes=False, reason="other folders, and neither uses the other")
        return None

    def _pair_inputs(
        self, one: ChangePoint, other: ChangePoint, words: tuple[str, ...]
    ) -> tuple[SamePartInputs, ...]:
        return tuple(
            SamePartInputs(
                task=self._package.task,
                changes=words,
                first=first,
                second=second,
                known=_use(self._shown, one.place, other.place),
            )
            for first, second in _with_code(self._shown, (one.words, [one]), (other.words, [other]))
        )

    def _ordered(self, parts: dict[str, list[ChangePoint]]) -> tuple[PlanVerdict, ...]:
        """For each ordered pair of parts, whether the first needs the second to be done before it."""
        pairs = list(permutations(parts, 2))
        known = {(name, other): self._order_by_code(name, other, parts) for name, other in pairs}
        open_pairs = [pair for pair in pairs if known[pair] is None]
        words = tuple(f"{name}: {_words(own)}" for name, own in parts.items())
        asked = self._first.ask(
            [
                (
                    f"{name} {other}",
                    [
                        DependencyInputs(task=self._package.task, drafts=words, one=part, other=second)
                        for part, second in _with_code(
                            self._shown,
                            (f"{name}: {_words(parts[name])}", parts[name]),
                            (f"{other}: {_words(parts[other])}", parts[other]),
                        )
                    ],
                )
                for name, other in open_pairs
            ]
        )
        answers = {verdict.item: verdict for verdict in asked}
        return tuple(known[pair] or answers[f"{pair[0]} {pair[1]}"] for pair in pairs)

    def _order_by_code(
        self, name: str, other: str, parts: dict[str, list[ChangePoint]]
    ) -> PlanVerdict | None:
        item = f"{name} {other}"
        used = use_between(
            self._shown, [one.place for one in parts[name]], [one.place for one in parts[other]]
        )
        if used is None:
            return None
        return self._first.decided(item, yes=used[0], reason=used[1])


def use_between(
    shown: ShownCode, places: Sequence[Place], others: Sequence[Place]
) -> tuple[bool, str] | None:
    """Whether the changes at `places` have to wait for those at `others`, because they use them and not the other way
    round; and why. None if the context does not show it.
    """
    there = {(one, two): shown.uses(one, two) for one in places for two in others}
    back = [shown.uses(two, one) for one in places for two in others]
    used = next((pair for pair, uses in there.items() if uses), None)
    if used and not any(back):
        return True, f"{used[0]} uses {used[1].symbol or used[1].path}"
    if any(back) and not used and None not in there.values():
        return False, "only the other uses what is changed here"
    if None in there.values() or used:
        return None
    return False, "it uses nothing that is changed there"


def change_points_tokens(models: ModelClient, task: str, evidence: Evidence) -> int:
    """Tokens that the prompt and its answer need besides code, paths and an earlier draft."""
    inputs = ChangePointsInputs(
        context=section_texts(()),
        others=(),
        evidence=shown_evidence(models, evidence),
        max_points=1,
        task=task,
        rejected="",
        faults=(),
    )
    return models.measure(CHANGE_POINTS, inputs) + CHANGE_POINTS.max_answer_tokens


def _part(name: str, points: Sequence[ChangePoint], needs: tuple[str, ...]) -> Part:
    return Part(
        id=name,
        description=_words(points),
        affected_files=tuple(dict.fromkeys(point.place.path for point in points)),
        depends_on=needs,
        target_symbols=tuple(dict.fromkeys(point.place.symbol for point in points if point.place.symbol)),
    )


def _words(points: Sequence[ChangePoint]) -> str:
    return "; ".join(point.words for point in points)


def _with_code(
    shown: ShownCode, one: tuple[str, Sequence[ChangePoint]], other: tuple[str, Sequence[ChangePoint]]
) -> tuple[tuple[str, str], ...]:
    """The words of both with their code, and without it."""
    return pair_with_code(
        shown, (one[0], [point.place for point in one[1]]), (other[0], [point.place for point in other[1]])
    )


def pair_with_code(
    shown: ShownCode, one: tuple[str, Sequence[Place]], other: tuple[str, Sequence[Place]]
) -> tuple[tuple[str, str], ...]:
    """The words of both with the beginning of the code at their places, and without it."""
    fence = fence_for(shown.code(place) for place in (*one[1], *other[1]))

    def text(words: str, places: Sequence[Place], others: Sequence[Place]) -> str:
        frames = [
            _framed(place, shown.excerpt(place, others), fence)
            for place in dict.fromkeys(places)
            if shown.code(place)
        ]
        return without_line_end(joined("\n", (words, *frames)))

    return (text(*one, other[1]), text(*other, one[1])), (one[0], other[0])


def _framed(place: Place, excerpt: str, fence: str) -> SourcedText:
    path, symbol = place.path, place.symbol
    text = sourced(excerpt, PromptSource.OUTLINE, path=path, symbol=symbol)
    return frame(f"reference: {item_name(place.path, place.symbol)}", text, fence, path=path, symbol=symbol)


def _use(shown: ShownCode, one: Place, other: Place) -> tuple[str, ...]:
    """Which of the two is known to use the other, in words."""
    pairs = ((one, other), (other, one))
    return tuple(f"{user} uses {used}" for user, used in pairs if shown.uses(user, used))
