"""ModelAccess once more: a fresh prompt that shows what was wrong with an answer."""

from clean_room_agent.llm.answers import BadAnswer

QUOTED_CHARS = 1500
"""At most so much of the faulty answer is shown, in whole lines."""


def repair_prompt(original: str, answer: str, bad: BadAnswer, *, max_tokens: int) -> str:
    """The original prompt, unchanged so that a server's prefix cache holds it, then the faulty answer and its fault."""
    parts = [original, "", "# An earlier answer to this could not be used", ""]
    # What repeats itself or copies is not shown again: it is what the model takes up most easily.
    quoted = "" if bad.kind in {"parroted", "repeated"} else quote_lines(answer)
    if quoted:
        parts += ["The answer was:", "", quoted, ""]
    if bad.kind in {"truncated", "repeated"}:
        parts.append(
            f"What was wrong: {bad.fault}. Answer again, complete and shorter: at most {max_tokens} tokens."
        )
    else:
        parts.append(
            f"What was wrong: {bad.fault}. Answer again, in the form asked for above and without this fault."
        )
    return "\n".join(parts)


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
