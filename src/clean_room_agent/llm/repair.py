"""Asking once more: a fresh prompt that shows what was wrong with an answer."""

from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, sourced
from clean_room_agent.llm.answers import BadAnswer

REPAIR_HEADING = "# An earlier answer to this could not be used"
QUOTED_CHARS = 1500
"""At most so much of the faulty answer is shown, in whole lines."""


def repair_prompt(original: SourcedText, answer: str, bad: BadAnswer, *, max_tokens: int) -> SourcedText:
    """The original prompt, unchanged so that a server's prefix cache holds it, then the faulty answer and its fault."""
    # What repeats itself or copies is not shown again: it is what the model takes up most easily.
    quoted = "" if bad.kind in {"copied", "repeated"} else quote_lines(answer)
    shown = ("The answer was:\n\n", sourced(quoted, PromptSource.REFUSED), "\n\n") if quoted else ()
    wish = "in the form asked for above and without this fault"
    if bad.kind in {"truncated", "repeated"}:
        wish = f"complete and shorter: at most {max_tokens} tokens"
    fault = sourced(f"What was wrong: {bad.fault}. Answer again, {wish}.", PromptSource.REFUSED)
    return compose((original, f"\n\n{REPAIR_HEADING}\n\n", *shown, fault))


def quote_lines(text: str, *, limit: int = QUOTED_CHARS) -> str:
    """The first whole lines of the text that fit `limit`, each after `> `; says how many lines are left out."""
    lines = text.strip().splitlines()
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 3
        if used > limit:
            break
        kept.append(f"> {line}")
    left = len(lines) - len(kept)
    if left:
        kept.append(f"({left} more {'line' if left == 1 else 'lines'} left out)")
    return "\n".join(kept)
