"""Fill-in-the-middle: a request for the text between two given ones, and the made-up gaps that show whether a model can
do it.
"""

from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.artifacts.prompt_sources import SourcedText, compose, plain_text
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.transport import Gap, RawAnswer, Sampling

FILL_NAME = "fill"
"""The call type under which the record keeps what was filled in."""
FILL_PROBE_NAME = "fill_probe"
"""The call type of the made-up gaps."""
GAP_MARK = "<<GAP>>"
"""Stands for the gap in the recorded prompt."""
LEAST_RIGHT = 3
"""Of the made-up gaps."""
PROBE_TOKENS = 16


class FillRequest(Struct, frozen=True, kw_only=True):
    """The text between `before` and `after` is asked for. The model sees nothing else."""

    before: SourcedText
    after: SourcedText
    stop: tuple[str, ...] = ("\n",)
    """The answer ends before the first of these."""
    max_tokens: int = 48
    sampling: Sampling = Sampling()
    wants_logprobs: bool = False
    """Whether the reply should have `mean_logprob`."""

    @property
    def shown(self) -> SourcedText:
        """The request as one text, which the record keeps."""
        return compose((self.before, GAP_MARK, self.after))

    @property
    def gap(self) -> Gap:
        """The request as a transport sends it. Something is behind every gap: without that, servers take it for a chat."""
        after = plain_text(self.after) or "\n"
        return Gap(before=plain_text(self.before), after=after, stop=self.stop)

    def up_to_stop(self, text: str) -> tuple[str, bool]:
        """What is before the first stop, and whether there is one: not every server ends there."""
        ends = [at for at in (text.find(stop) for stop in self.stop) if at >= 0]
        return text[: min(ends, default=len(text))], bool(ends)


class FillReply(Struct, frozen=True, kw_only=True):
    """What a model filled in. Figures are those of the last call."""

    text: str
    """Without the stop; as it was written, white space included."""
    finish: str
    """`stop`, or why the text is not whole: `length`, `repeated`."""
    call_id: int
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int
    mean_logprob: float | None = None
    """Mean natural-log probability of its tokens; None where it was not asked for, or the server does not tell."""

    @property
    def whole(self) -> bool:
        """Whether the text ended by itself."""
        return self.finish == "stop"


class MadeUpGap(NamedTuple):
    """A gap that has one right answer, which stands in the text around it."""

    name: str
    before: str
    after: str
    right: tuple[str, ...]

    @property
    def request(self) -> FillRequest:
        """The gap as it is asked about."""
        return FillRequest(
            before=SourcedText(self.before), after=SourcedText(self.after), max_tokens=PROBE_TOKENS
        )

    def is_right(self, text: str) -> bool:
        """Whether the text, apart from white space and a comment, is the answer."""
        return "".join(text.partition("  #")[0].split()) in {"".join(answer.split()) for answer in self.right}


MADE_UP_GAPS = (
    MadeUpGap(
        "sum",
        "def quokka_total(quokka_weights):\n    total = 0\n    for weight in quokka_weights:\n",
        "\n    return total\n",
        ("total += weight", "total = total + weight"),
    ),
    MadeUpGap(
        "swap",
        'def swap_pair(pair):\n    """Return the pair in reverse order."""\n    left, right = pair\n    return ',
        "\n\n\nassert swap_pair((1, 2)) == (2, 1)\n",
        ("right, left", "(right, left)"),
    ),
    MadeUpGap(
        "start",
        "def total_price(prices):\n",
        "\n    for price in prices:\n        running_total += price\n    return running_total\n",
        ("running_total = 0", "running_total = 0.0", "running_total = float(0)", "running_total: float = 0"),
    ),
    MadeUpGap(
        "name",
        "def longest(quokka_names):\n",
        "\n    for name in quokka_names:\n        if len(name) > len(best):\n            best = name\n    return best\n",
        ('best = ""', "best = ''", 'best: str = ""', "best = str()", "best = quokka_names[0]"),
    ),
)
"""Two of these can be told only by the text behind them: who does not read that, or does not stop before it, answers too few."""


def mean_logprob(answer: RawAnswer) -> float | None:
    """The mean natural-log probability of the answer's tokens; None where that of one is not known."""
    known = [own_logprob(token) for token in answer.tokens]
    told = [value for value in known if value is not None]
    return sum(told) / len(told) if told and len(told) == len(known) else None


def own_logprob(choice: TokenChoice) -> float | None:
    """The natural-log probability of the token itself; None where it is not among the likely ones."""
    return dict(choice.top).get(choice.token)
