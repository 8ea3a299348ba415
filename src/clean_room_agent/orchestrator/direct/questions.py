"""What the direct route asks, in rounds: breadth first over the places, short answers before long ones, the likeliest answers
before drawn ones; then the candidates that came nearest are gone on from.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.execute.forms import function, lines, masked
from clean_room_agent.execute.forms.function import FormRequest
from clean_room_agent.execute.forms.masked import MaskedRequest
from clean_room_agent.execute.forms.masks import Mask
from clean_room_agent.execute.forms.place import SAME, Applied, Assignment, Parsed, Place, Refused, shown
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.direct.candidates import Candidate
from clean_room_agent.orchestrator.direct.goal_runs import GoalRun
from clean_room_agent.orchestrator.direct.route import Answered, Fault, Question

MASKED_AT_A_TIME = 12
"""Gaps of one place in one round: some ten tokens each."""
WORDED_PLACES = 3
"""Places for which a whole definition is asked for."""
DRAWS_AT_A_TIME = 3
"""Drawn definitions of one place in one round."""
MOST_NEARER = 2
"""Candidates that are gone on from."""
LONG = 40
"""Lines from which on a definition's wrong lines are asked for, not all of it."""
STUBS = ("pass", "...", "return", "return None", "raise NotImplementedError", "throw new Error")
"""How the only line of a body begins that has still to be written."""


class Target(Struct, frozen=True, kw_only=True):
    """A place, in the text of its file."""

    place: Place
    text: str


class Questions:
    """The rounds for some places, the likeliest first."""

    def __init__(
        self,
        models: ModelClient,
        targets: Sequence[Target],
        assignment: Assignment,
        at_base: GoalRun,
        *,
        fills: bool,
    ) -> None:
        """`fills`: whether the model fills gaps."""
        self._models = models
        self._assignment = assignment
        self._at_base = at_base
        self._targets = targets
        self._fills = fills

    def rounds(self, candidates: Sequence[Candidate]) -> Iterator[list[Question]]:
        """Each is made when the candidates of the ones before are known."""
        sweeps = [_Sweep(self._models, target, self._assignment, candidates) for target in self._targets]
        worded = sweeps[:WORDED_PLACES]
        filled = [sweep for sweep in sweeps if self._fills and not sweep.is_stub]
        yield from (sweep.worded(1 + DRAWS_AT_A_TIME) for sweep in worded if sweep.is_stub)
        yield from (sweep.gaps() for sweep in filled)
        yield [question for sweep in worded for question in sweep.worded(1)]
        yield from self._nearer(candidates)
        for _ in range(function.MOST_DRAWS):
            yield from (sweep.gaps() for sweep in filled)
            yield from (sweep.worded(DRAWS_AT_A_TIME) for sweep in worded)

    def _nearer(self, candidates: Sequence[Candidate]) -> Iterator[list[Question]]:
        """Going on from the candidates that came nearest: what they give is told, and the rest of their place is asked about."""
        near = [one for one in candidates if one.goals is not None and one.goals.is_nearer(self._at_base)]
        near.sort(key=lambda one: (-len(one.goals.green) if one.goals else 0, one.number))
        by_name = {(target.place.path, target.place.name): target for target in self._targets}
        for one in near[:MOST_NEARER]:
            target = by_name[one.path, one.symbol]
            moved = _moved(target, one.text)
            if moved is None:
                continue
            if self._fills:
                base = f"from {one.number} "
                yield _Sweep(self._models, moved, self._assignment, candidates, base=base).gaps()
            base = f"after {one.number} "
            yield _Sweep(
                self._models, target, self._assignment, candidates, base=base, failed=_told(one)
            ).worded(1)


class _Sweep:
    """The questions about one place, which are taken some at a time."""

    def __init__(
        self,
        models: ModelClient,
        target: Target,
        assignment: Assignment,
        candidates: Sequence[Candidate],
        *,
        base: str = "",
        failed: str = "",
    ) -> None:
        self._models = models
        self._target = target
        self._base = base
        self._candidates = candidates
        self._likeliest: dict[str, Mask] = {}
        """By question: what the likeliest answer was asked for."""
        self._natural: set[Mask] = set()
        place, text = target.place, target.text
        self._form = lines if place.last_line - place.first_line >= LONG else function
        self._gaps: Iterator[MaskedRequest] = masked.requests(place, text, assignment, natural=self._natural)
        self._worded: Iterator[FormRequest] = self._form.requests(place, text, assignment, failed=failed)

    @property
    def is_stub(self) -> bool:
        """Whether the definition has still to be written."""
        visible = shown(Parsed(self._target.place.path, self._target.text), self._target.place)
        body = [] if visible is None else [row.text.strip() for row in visible.body if row.text.strip(" \t}")]
        return len(body) == 1 and body[0].rstrip(";").startswith(STUBS)

    def gaps(self) -> list[Question]:
        """The next ones that a model fills, without those that it would leave as they are for as long as there are others."""
        self._natural.update(
            self._likeliest[one.item]
            for one in self._candidates
            if one.fault == SAME and one.item in self._likeliest
        )
        return [self._gap(request) for request in islice(self._gaps, MASKED_AT_A_TIME)]

    def worded(self, count: int) -> list[Question]:
        """The next ones in words."""
        return [self._in_words(request) for request in islice(self._worded, count)]

    def _gap(self, request: MaskedRequest) -> Question:
        target, item = self._target, self._item(f"masked {request.item}")
        if request.draw == 0:
            self._likeliest[item] = request.mask

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

        def write(answer: Answered) -> str | Fault:
            return _text(masked.apply(target.place, target.text, request.mask, answer.text))

        return self._question(item, send, write)

    def _in_words(self, request: FormRequest) -> Question:
        target = self._target
        item = self._item(f"{request.prompt.name} {request.draw}")

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

        def write(answer: Answered) -> str | Fault:
            read = request.prompt.answer.read(answer.text)
            return _text(self._form.apply(target.place, target.text, read))

        return self._question(item, send, write)

    def _item(self, how: str) -> str:
        return f"{self._base}{self._target.place.path}::{self._target.place.name} {how}"

    def _question(
        self, item: str, send: Callable[[str], Answered], write: Callable[[Answered], str | Fault]
    ) -> Question:
        place = self._target.place
        return Question(item=item, path=place.path, symbol=place.name, send=send, write=write)


def _text(made: Applied | Refused) -> str | Fault:
    return made.text if isinstance(made, Applied) else Fault(made.reason)


def _moved(target: Target, text: str) -> Target | None:
    """The place in another text of its file, in which it may have become longer or shorter; None if that is not clear."""
    place, more = target.place, text.count("\n") - target.text.count("\n")
    if place.last_line + more <= place.first_line:
        return None
    moved = replace(
        place,
        last_line=place.last_line + more,
        lines=place.lines if more == 0 else tuple(range(place.first_line + 1, place.last_line + more + 1)),
    )
    return None if shown(Parsed(place.path, text), moved) is None else Target(place=moved, text=text)


def _told(one: Candidate) -> str:
    """A candidate that failed, and what its goal tests gave."""
    said = "; ".join(what for _, what in one.goals.said) if one.goals else ""
    return f"{one.diff.strip()}\n\nWith this change: {said}"
