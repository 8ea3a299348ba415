from inline_snapshot import snapshot

from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, sourced
from clean_room_agent.llm.answers import BadAnswer
from clean_room_agent.llm.repair import quote_lines, repair_prompt


def test_a_repair_begins_with_the_original_prompt_and_shows_answer_and_fault() -> None:
    bad = BadAnswer(kind="schema", fault="steps: Field required")
    assert repair_prompt(SourcedText("# Plan\n\nDo it."), '{"a": 1}\n# Plan', bad, max_tokens=9) == snapshot("""\
# Plan

Do it.

# An earlier answer to this could not be used

The answer was:

> {"a": 1}
> # Plan

What was wrong: steps: Field required. Answer again, in the form asked for above and without this fault.\
""")


def test_a_cut_answer_is_asked_for_again_shorter() -> None:
    bad = BadAnswer(kind="truncated", fault="the answer was cut off after 9 tokens")
    assert "shorter: at most 9 tokens." in repair_prompt(SourcedText("p"), "x", bad, max_tokens=9)


def test_an_empty_answer_is_not_quoted() -> None:
    assert ">" not in repair_prompt(SourcedText("p"), " ", BadAnswer(kind="empty", fault="f"), max_tokens=9)


def test_a_long_answer_is_quoted_in_whole_lines() -> None:
    assert quote_lines("a\nbb\nccc", limit=9) == "> a\n> bb\n(1 more line left out)"
    assert quote_lines("x" * 50, limit=9) == "(1 more line left out)"


def test_what_was_asked_keeps_its_sources_and_the_rest_is_about_the_refused_answer() -> None:
    asked = sourced("Do it.", PromptSource.TASK)
    text = repair_prompt(asked, "no\nway", BadAnswer(kind="schema", fault="f"), max_tokens=9)
    lines = text.split("\n")
    assert [(span.source, lines[span.first - 1 : span.last]) for span in text.spans] == [
        (PromptSource.TASK, ["Do it."]),
        (PromptSource.REFUSED, ["> no", "> way"]),
        (PromptSource.REFUSED, [lines[-1]]),
    ]
