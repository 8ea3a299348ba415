"""What the direct route asks, in rounds: breadth first over the places, short answers before long ones, the likeliest answers
before drawn ones; then the candidates that came nearest are gone on from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.format import unescaped
from clean_room_agent.execute.edits.search_replace import line_of
from clean_room_agent.execute.edits.smaller_changes import smaller_changes
from clean_room_agent.execute.forms import masked, worded
from clean_room_agent.execute.forms.masked import MaskedRequest
from clean_room_agent.execute.forms.masks import Mask
from clean_room_agent.execute.forms.openings import Opening
from clean_room_agent.execute.forms.place import (
    SAME,
    Assignment,
    Parsed,
    Place,
    Refused,
    is_stub,
    shown,
)
from clean_room_agent.execute.forms.worded import FormInputs, FormRequest
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.orchestrator.direct.candidates import Answered, GoalRun, TriedAnswer, choose, size_of
from clean_room_agent.orchestrator.run_config import SolveConfig

MASKED_AT_A_TIME = 4
"""Gaps of one place in one round. The first answers are often right: each that is asked for before they are judged is lost time."""
MASKED_ROUNDS = 3
"""Rounds of gaps of one place before whole definitions are asked for."""
LIKELY = 0.7
"""Of the greatest suspicion: what is below it waits for the others. Of 65 planted faults 59 were in a place with the greatest, and
one was in a place at .71 of it.
"""
WORDED_PLACES = 3
"""Places for which a whole definition is asked for."""
DRAWS_AT_A_TIME = 3
"""Drawn definitions of one place in one round."""
RIVAL_ROUNDS = 1
"""Rounds of gaps that are asked on after one that holds, where that is a large change and only the task's words show that it is
right: a smaller one may be.
"""
SMALL = 2
"""Tokens that a change adds and takes away, up to which there is no smaller one to ask for: one takes the place of another.
"""
MOST_AGAIN = 2
"""Candidates that turn the goal tests green and break something, beside which their gap is asked for again."""
MOST_STEPS = 4
"""Changes that are made one after the other."""
MOST_NEARER = 2
"""Candidates that are gone on from."""
LONG = 40
"""Lines from which on a definition's wrong lines are asked for, not all of it."""


class PlaceQuestion(Struct, frozen=True, kw_only=True):
    """A question about one place, whose answer gives a candidate."""

    item: str
    """Unique within the run."""
    path: str
    symbol: str
    send: Callable[[str], Answered]
    """Asks it for a pass; raises WindowExceeded."""
    write: Callable[[Answered], "str | NoCandidate"]
    """The file's text with the answer in it, or why there is none."""
    base: int = 0
    """The number of the candidate in whose tree it is asked; 0: in the run's head."""
    in_turn: bool = False
    """Whether it is asked after the one before it in its round. What they begin with is most of them, and a server that answers
    in several slots keeps it in one: asked side by side, it would be read in each.
    """
    most_tokens: int = 0
    """Of an answer in words."""
    is_smaller: bool = False
    """Whether it is a part of a change that holds, which may do: it is tried without asking."""


class NoCandidate(Struct, frozen=True):
    """Why an answer gives no candidate."""

    words: str


Rounds = Callable[[Sequence[TriedAnswer]], Iterable[Sequence[PlaceQuestion]]]
"""The rounds of questions, in order of promise, each made when the ones before are judged; it is given all candidates so
far, a list that grows.
"""


class Target(Struct, frozen=True, kw_only=True):
    """A place, in the text of its file."""

    place: Place
    text: str
    suspicion: float = 1.0
    """How much more the failing goal tests run it than those that pass."""


class Questions:
    """The rounds for some places, the likeliest first."""

    def __init__(
        self,
        models: ModelClient,
        targets: Sequence[Target],
        assignment: Assignment,
        at_base: GoalRun,
        texts: Callable[[str, str], str],
        *,
        fills: Callable[[], bool],
        solve: SolveConfig,
    ) -> None:
        """`texts` gives the text of a file in a candidate's commit; `fills`: whether the model fills gaps, which is asked once,
        and only if there is one; `solve` says in which forms it is asked.
        """
        self._solve = solve
        self._models = models
        self._assignment = assignment
        self._at_base = at_base
        self._targets = targets
        self._texts = texts
        self._fills = cache(fills)
        self._unwritten = {
            (target.place.path, target.place.name)
            for target in targets
            if is_stub(Parsed(target.place.path, target.text), target.place)
        }
        """Stubs at the run's head: what they lack once something stands there is often more of it."""
        self._sweeps: list[_Sweep] = []
        self._told: set[int] = set()
        """Numbers of candidates of which was told what they break."""
        self._is_begun = True
        """Whether what was found may be gone on from: of a stub, other texts are drawn first, since a first one that does nearly all
        is mostly written again when it is shown.
        """

    def rounds(self, candidates: Sequence[TriedAnswer]) -> Iterator[list[PlaceQuestion]]:
        """Each is made when the candidates of the ones before are known. Where one turns more goal tests green than what it was
        made from, all places are asked about again, in its tree: a change of several places is found one after the other. Where
        one settles it, less of its change is tried, and a few more gaps may be asked for; then they end.
        """
        base: TriedAnswer | None = None
        for _ in range(MOST_STEPS):
            better = None
            asked = self._with_what_broke(self._question_rounds(base, candidates), candidates)
            for questions in asked:
                yield questions
                if any(one.settles for one in candidates):
                    yield from self._to_the_smallest(candidates, asked)
                    return
                better = self._best_improvement(base, candidates)
                if better is not None and self._is_begun:
                    break
            if better is None:
                return
            base = better

    def _with_what_broke(
        self, asked: Iterator[list[PlaceQuestion]], candidates: Sequence[TriedAnswer]
    ) -> Iterator[list[PlaceQuestion]]:
        """The rounds; behind one with a candidate that turns the goal tests green and breaks something, or leaves a test of what the
        task names red, its gap once more, with that call told beside the goal, in one way after the other.
        """
        for questions in asked:
            yield questions
            broke = [one for one in candidates if one.counter is not None and one.number not in self._told]
            for one in broke:
                if len(self._told) == MOST_AGAIN or any(other.settles for other in candidates):
                    break
                again = next((found for sweep in self._sweeps if (found := sweep.against(one))), [])
                if again:
                    self._told.add(one.number)
                for question in again:  # long ones, of which the first may do
                    yield [question]
                    if any(other.settles for other in candidates):
                        break

    def _to_the_smallest(
        self, candidates: Sequence[TriedAnswer], more: Iterator[list[PlaceQuestion]]
    ) -> Iterator[list[PlaceQuestion]]:
        """What may do as well as the candidate that is best now, and changes less: parts of its change, and, of `more`, gaps. Nothing,
        where no goal test would tell that a part is not enough.
        """
        if not self._assignment.goals:
            return
        tried: list[TriedAnswer] = []
        for left in range(RIVAL_ROUNDS, -1, -1):
            best = choose(candidates)
            assert best is not None, "one holds"
            if best not in tried:
                tried.append(best)
                yield self._smaller_questions(best)
                best = choose(candidates)
            settled = best is not None and (size_of(best) <= SMALL or self._is_whole(best))
            if not left or settled or any(goal.trust == "proof" for goal in self._assignment.goals):
                return
            gaps = next((questions for questions in more if questions), [])
            if any(question.most_tokens for question in gaps):
                return
            yield gaps

    def _is_whole(self, one: TriedAnswer) -> bool:
        """Whether it is a definition that had to be written."""
        return (one.path, one.symbol) in self._unwritten

    def _smaller_questions(self, held: TriedAnswer) -> list[PlaceQuestion]:
        """What a candidate changes in the run's head, with only some of its parts. No model is asked."""
        place = (held.path, held.symbol)
        target = next((one for one in self._targets if (one.place.path, one.place.name) == place), None)
        if target is None or held.base:
            return []
        texts = smaller_changes(held.path, held.symbol, target.text, held.text)
        return [_part_of(held, number, text) for number, text in enumerate(texts, 1)]

    def _best_improvement(
        self, base: TriedAnswer | None, candidates: Sequence[TriedAnswer]
    ) -> TriedAnswer | None:
        """The candidate with most green goal tests that breaks nothing, the earliest of several, if it has more than `base`; none with
        all of them green.
        """
        least = len((base.goals if base and base.goals else self._at_base).green)
        known = [
            one
            for one in candidates
            if one.goals is not None and len(one.goals.green) > least and not (one.breaks or one.holds)
        ]
        return max(
            known, key=lambda one: (len(one.goals.green) if one.goals else 0, -one.number), default=None
        )

    def _question_rounds(
        self, base: TriedAnswer | None, candidates: Sequence[TriedAnswer]
    ) -> Iterator[list[PlaceQuestion]]:
        targets = self._targets if base is None else self._targets_in(base)
        assignment = self._assignment
        if base is not None and base.goals is not None:
            assignment = left_to_do(assignment, base.goals)
        sweeps = [
            _Sweep(self._models, target, assignment, candidates, self._solve, base=base) for target in targets
        ]
        self._sweeps += sweeps
        unwritten = [sweep for sweep in sweeps if sweep.place in self._unwritten]
        likeliest = sweeps[:WORDED_PLACES]
        least = LIKELY * max((sweep.suspicion for sweep in sweeps), default=0.0)
        for count in (1, DRAWS_AT_A_TIME):  # the first is often right
            self._is_begun = count > 1 or not unwritten
            yield from (sweep.worded(count) for sweep in unwritten)
        if self._solve.forms[:1] != ("masked",):
            yield [question for sweep in likeliest for question in sweep.worded(1)]
        filled = [sweep for sweep in sweeps if not sweep.is_stub and self._fills()]
        yield from self._masked_rounds([sweep for sweep in filled if sweep.suspicion >= least])
        gapped = [sweep for sweep in filled if sweep.is_long]
        yield [question for sweep in likeliest if sweep not in gapped for question in sweep.worded(1)]
        yield from self._nearer_rounds(base, candidates)
        yield from self._masked_rounds([sweep for sweep in filled if sweep.suspicion < least])
        for _ in range(worded.MOST_DRAWS):
            yield from self._masked_rounds(filled)
            yield from (sweep.worded(DRAWS_AT_A_TIME) for sweep in likeliest)

    def _masked_rounds(self, sweeps: Sequence["_Sweep"]) -> Iterator[list[PlaceQuestion]]:
        """`MASKED_ROUNDS` rounds of each place; the next place's first round comes with the second of the one before it."""
        for turn in range(MASKED_ROUNDS + len(sweeps) - 1):
            for rank, sweep in enumerate(sweeps[: turn + 1]):
                if turn - rank < MASKED_ROUNDS:
                    yield sweep.gaps()

    def _targets_in(self, base: TriedAnswer) -> list[Target]:
        """The places in the tree of a candidate."""
        found = []
        for target in self._targets:
            text = self._texts(base.commit, target.place.path)
            place = target.place if text == target.text else _moved_place(target, text)
            if place is not None:
                found.append(replace(target, place=place, text=text))
        return found

    def _nearer_rounds(
        self, base: TriedAnswer | None, candidates: Sequence[TriedAnswer]
    ) -> Iterator[list[PlaceQuestion]]:
        """Going on from candidates that came nearer, the nearest first: what they give is told, and the rest of their place is asked
        about.
        """
        number = 0 if base is None else base.number
        before = self._at_base if base is None or base.goals is None else base.goals
        wanted = {goal.name: goal.wanted for goal in self._assignment.goals}
        near = [
            (one.goals.closeness(wanted), one)
            for one in candidates
            if one.base == number
            and one.goals is not None
            and one.goals.is_nearer(before, wanted)
            and not (one.breaks or one.holds)
        ]
        near.sort(key=lambda pair: -pair[0])
        targets = self._targets if base is None else self._targets_in(base)
        by_name = {(target.place.path, target.place.name): target for target in targets}
        for _, one in near[:MOST_NEARER]:
            target = by_name.get((one.path, one.symbol))
            place = None if target is None else _moved_place(target, one.text)
            if target is None or place is None:
                continue
            if self._fills():
                changed = replace(target, place=place, text=one.text)
                assert one.goals is not None, "those are nearer that gave something"
                left = left_to_do(self._assignment, one.goals)
                sweep = _Sweep(self._models, changed, left, candidates, self._solve, base=one)
                yield from self._masked_rounds([sweep])
            sweep = _Sweep(
                self._models, target, self._assignment, candidates, self._solve, base=base, failed=one
            )
            if not (sweep.is_long and self._fills()):
                yield sweep.worded(1)


class _Sweep:
    """The questions about one place, which are taken some at a time."""

    def __init__(
        self,
        models: ModelClient,
        target: Target,
        assignment: Assignment,
        candidates: Sequence[TriedAnswer],
        solve: SolveConfig,
        *,
        base: TriedAnswer | None = None,
        failed: TriedAnswer | None = None,
    ) -> None:
        """`base`: the candidate in whose tree the place is; `failed`: one that is shown."""
        self._models = models
        self._target = target
        self.suspicion = target.suspicion
        self.place = (target.place.path, target.place.name)
        self._base = 0 if base is None else base.number
        self._name = (f"from {base.number} " if base else "") + (f"after {failed.number} " if failed else "")
        self._candidates = candidates
        self._asked: dict[str, MaskedRequest] = {}
        """By question."""
        self._natural: set[Mask] = set()
        self._opened: list[Opening] = []
        self._assignment = assignment
        place, text = target.place, target.text
        self._in_turn = solve.gaps == "in-turn"
        self._gaps: Iterator[MaskedRequest] = masked.requests(
            place, text, assignment, natural=self._natural, opened=self._opened
        )
        self.is_long = place.last_line - place.first_line >= LONG
        """Answers in words are then long and seldom usable: gaps come first."""
        # Of a stub, nothing but all of it can be asked for, however seldom the model mends a definition so.
        prompt = worded.FUNCTION if self.is_stub else worded_form(solve, long=self.is_long)
        self._worded: Iterator[FormRequest] = iter(())
        if prompt is not None:
            self._worded = worded.requests(
                prompt,
                place,
                text,
                assignment,
                draws=solve.draws,
                temperature=solve.draw_temperature,
                length=solve.answer_length,
                failed=_shown_failure(failed) if failed else "",
            )

    @property
    def is_stub(self) -> bool:
        """Whether the definition has still to be written."""
        return is_stub(Parsed(self._target.place.path, self._target.text), self._target.place)

    def gaps(self) -> list[PlaceQuestion]:
        """The next ones that a model fills: first what is inside the blocks that it opened, and last what it would leave as it is."""
        self._opened.clear()
        for one in self._candidates:
            request = self._asked.get(one.item)
            if request is None:
                continue
            if one.fault == SAME and request.draw == 0:
                self._natural.add(request.mask)
            opening = masked.opened_by(self._target.place, self._target.text, request, one.answer.text)
            self._opened += [] if opening is None else [opening]
        return [self.gap(request) for request in islice(self._gaps, MASKED_AT_A_TIME)]

    def against(self, one: TriedAnswer) -> list[PlaceQuestion]:
        """The gap that a candidate fills, told what breaks with it; none if it fills no gap of this place."""
        request = self._asked.get(one.item)
        if request is None or one.counter is None:
            return []
        goals = (*self._assignment.goals[:1], replace(one.counter, got=""))
        told = replace(self._assignment, goals=goals)
        asked = masked.same_gap_requests(self._target.place, self._target.text, told, request)
        return [self.gap(each, f" against {one.number}") for each in asked]

    def worded(self, count: int) -> list[PlaceQuestion]:
        """The next ones in words."""
        return [self._in_words(request) for request in islice(self._worded, count)]

    def gap(self, request: MaskedRequest, more: str = "") -> PlaceQuestion:
        """The question that sends it; `more` is put to its name."""
        target, item = self._target, self._item_name(f"masked {request.item}{more}")
        self._asked[item] = request

        def send(pass_id: str) -> Answered:
            reply = self._models.fill(request.fill, pass_id=pass_id, item=item)
            return Answered(
                text=reply.text,
                call_id=reply.call_id,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                latency_ms=reply.latency_ms,
                likelihood=reply.mean_logprob,
                fault="" if reply.whole else f"it did not end: {reply.finish}",
            )

        def write(answer: Answered) -> str | NoCandidate:
            return _text_or_reason(
                masked.apply(target.place, target.text, request.mask, answer.text, request.opening)
            )

        return replace(self._build_question(item, send, write), in_turn=self._in_turn)

    def _in_words(self, request: FormRequest) -> PlaceQuestion:
        target = self._target
        item = self._item_name(f"{request.prompt.name} {request.draw}")

        def send(pass_id: str) -> Answered:
            reply = self._models.ask(
                request.prompt,
                request.inputs,
                pass_id=pass_id,
                item=item,
                sampling=request.sampling,
                repair=False,
                max_answer_tokens=request.max_answer_tokens,
            )
            return Answered(
                text=reply.text,
                call_id=reply.call_id,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                latency_ms=reply.latency_ms,
                fault="" if reply.bad is None else reply.bad.fault,
            )

        def write(answer: Answered) -> str | NoCandidate:
            plain = unescaped(answer.text, target.text)
            read, reread = map(request.prompt.answer.read, (answer.text, plain))
            if isinstance(read, ParseFault):
                return NoCandidate(read.fault)
            made = worded.apply(target.place, target.text, read)
            if isinstance(made, Refused) and plain != answer.text and not isinstance(reread, ParseFault):
                again = worded.apply(target.place, target.text, reread)
                made = made if isinstance(again, Refused) else again
            return _text_or_reason(made)

        question = self._build_question(item, send, write)
        in_turn = self._in_turn and request.draw > 0  # their prompts are the same
        return replace(question, most_tokens=request.max_answer_tokens, in_turn=in_turn)

    def _item_name(self, how: str) -> str:
        return f"{self._name}{self._target.place.path}::{self._target.place.name} {how}"

    def _build_question(
        self, item: str, send: Callable[[str], Answered], write: Callable[[Answered], str | NoCandidate]
    ) -> PlaceQuestion:
        place = self._target.place
        return PlaceQuestion(
            item=item, path=place.path, symbol=place.name, send=send, write=write, base=self._base
        )


def left_to_do(assignment: Assignment, ran: GoalRun) -> Assignment:
    """What is asked for in the tree of a candidate: the goal tests that fail there, with what they give there."""
    said = dict(ran.said)
    left = [replace(goal, got=said[goal.name]) for goal in assignment.goals if goal.name in said]
    return replace(assignment, goals=tuple(left), observed="") if left else assignment


def worded_form(solve: SolveConfig, *, long: bool) -> Prompt[FormInputs, Any] | None:
    """In which form a definition is asked about in words; None if that is not wanted."""
    forms = [form for form in solve.forms if form != "masked"]
    if not forms:
        return None
    lines = forms[0] == "lines" or (long and "lines" in forms)
    return worded.LINES if lines else worded.FUNCTION


def gaps_of(
    models: ModelClient, target: Target, assignment: Assignment, solve: SolveConfig
) -> list[PlaceQuestion]:
    """The first gaps that are asked for in one place."""
    return _Sweep(models, target, assignment, (), solve).gaps()


def in_words(
    models: ModelClient, target: Target, assignment: Assignment, solve: SolveConfig
) -> list[PlaceQuestion]:
    """All that is asked about one place in words."""
    return _Sweep(models, target, assignment, (), solve).worded(solve.draws)


def likeliest(
    models: ModelClient, target: Target, assignment: Assignment, solve: SolveConfig
) -> Iterator[tuple[PlaceQuestion, Mask | None]]:
    """What is asked about one place for likeliest answers: gaps, each with its mask, if gaps are wanted, and then the definition
    in words.
    """
    sweep = _Sweep(models, target, assignment, (), solve)
    requests = masked.requests(target.place, target.text, assignment) if "masked" in solve.forms else ()
    for request in requests:
        if request.draw == 0:
            yield sweep.gap(request), request.mask
    for question in sweep.worded(1):
        yield question, None


def _text_or_reason(made: str | Refused) -> str | NoCandidate:
    return NoCandidate(made.reason) if isinstance(made, Refused) else made


def _moved_place(target: Target, text: str) -> Place | None:
    """The place in another text of its file; None if it is not there, or more than once."""
    place = target.place
    found = [one for one in definitions(place.path, text) if one.symbol == place.name]
    if len(found) != 1:
        return None
    first, last = line_of(text, found[0].start), line_of(text, found[0].end)
    more = first - place.first_line
    same = last - first == place.last_line - place.first_line
    lines = tuple(line + more for line in place.lines) if same else tuple(range(last, first, -1))
    moved = replace(place, first_line=first, last_line=last, lines=lines)
    return None if shown(Parsed(place.path, text), moved) is None else moved


def _part_of(held: TriedAnswer, number: int, text: str) -> PlaceQuestion:
    """A part of the candidate's change as a question that the candidate's call has answered."""

    def send(pass_id: str) -> Answered:
        del pass_id
        return Answered(text="", call_id=held.answer.call_id, likelihood=held.answer.likelihood)

    def write(answer: Answered) -> str:
        del answer
        return text

    return PlaceQuestion(
        item=f"part {number} of {held.number}",
        path=held.path,
        symbol=held.symbol,
        send=send,
        write=write,
        is_smaller=True,
    )


def _shown_failure(one: TriedAnswer) -> str:
    """A candidate that failed, and what its goal tests gave."""
    said = "; ".join(what for _, what in one.goals.said) if one.goals else ""
    return f"{one.diff.strip()}\n\nWith this change: {said}"
