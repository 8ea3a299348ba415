import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel

from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, sourced
from clean_room_agent.llm.answers import (
    YES_OR_NO,
    Choice,
    JsonAnswer,
    OneWord,
    ParseFault,
    TextAnswer,
    TokenChoice,
    quote_lines,
    repair_prompt,
    thinking_only,
)

GOOD = '{"steps": [1, 2], "summary": "s"}'
THREE = OneWord(("change", "read", "skip"))


class Plan(BaseModel):
    summary: str
    steps: tuple[int, ...]


READER = JsonAnswer(Plan)


def choice(token: str, **shares: float) -> TokenChoice:
    return TokenChoice(token=token, top=tuple((word, math.log(share)) for word, share in shares.items()))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
        f"I use {{braces}} first. {GOOD}",
        f"<think>what about {{}}?</think>\n{GOOD}",
        f'{{"summary": "wrong"}} no, rather: {GOOD}',
        f"\ufeff{GOOD}",
    ],
)
def test_an_object_is_found_among_prose_fences_and_thinking(text: str) -> None:
    assert READER.read(text) == Plan(summary="s", steps=(1, 2))


@pytest.mark.parametrize(
    ("text", "kind", "fault"),
    [
        ("", "empty", "the answer is empty"),
        ("<think>hm</think>", "empty", "went into thinking"),
        (f"<think>perhaps {GOOD}", "empty", "went into thinking"),
        ("I cannot do that.", "not_json", "no JSON object"),
        ('{"summary": "s", "steps": [1,', "not_json", "line 1, column"),
        ("[1, 2]", "not_json", "no JSON object"),
        ('{"summary": 5}', "schema", "summary: Input should be a valid string; steps: Field required"),
        ('{"summary": "\\ud800", "steps": []}', "schema", "Invalid JSON"),
        ('{"summary": "s", "steps": [' + "[" * 100_000, "not_json", ""),
        ('{"summary": "s", "steps": [' + "9" * 5000 + "]}", "not_json", ""),
    ],
)
def test_a_broken_object_is_a_typed_fault(text: str, kind: str, fault: str) -> None:
    answer = READER.read(text)
    assert isinstance(answer, ParseFault)
    assert answer.kind == kind
    assert fault in answer.fault


@given(st.text())
def test_any_text_is_an_answer_or_a_fault(text: str) -> None:
    assert isinstance(READER.read(text), Plan | ParseFault)
    assert isinstance(YES_OR_NO.read(text), Choice | ParseFault)


@given(st.text(), st.lists(st.integers()), st.text(alphabet="abc \n`"), st.text(alphabet="abc \n`"))
def test_an_object_survives_any_dress(summary: str, steps: list[int], before: str, after: str) -> None:
    text = json.dumps({"summary": summary, "steps": steps})
    assert READER.read(before + text + after) == Plan(summary=summary, steps=tuple(steps))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("yes", "yes"),
        (" Yes.", "yes"),
        ("**No**", "no"),
        ("NO, because", "no"),
        ("Answer: yes", "yes"),
        ("yes, no doubt", "yes"),
    ],
)
def test_the_word_is_the_verdict_without_probabilities(text: str, word: str) -> None:
    assert YES_OR_NO.read(text) == Choice(word=word)


@pytest.mark.parametrize("text", ["maybe", "either yes or no", "Not sure", "nothing", "42"])
def test_what_is_neither_yes_nor_no_is_no_verdict(text: str) -> None:
    answer = YES_OR_NO.read(text)
    assert isinstance(answer, ParseFault)
    assert answer.kind == "not_a_verdict"


def test_probabilities_give_verdict_and_confidence() -> None:
    tokens = (choice("\n", yes=1.0), choice("Yes", Yes=0.5, No=0.2, yes=0.1, Maybe=0.2))
    verdict = YES_OR_NO.read("\nYes", tokens)
    assert isinstance(verdict, Choice)
    assert verdict.word == "yes"
    assert verdict.confidence == pytest.approx(0.6 / 0.8)


def test_all_ways_to_write_a_word_are_added_up() -> None:
    written = {
        "yes": 0.1,
        " Yes": 0.1,
        "YES": 0.1,
        "\u2581yes": 0.1,
        "\u0120Yes": 0.1,
        '"yes': 0.1,
        "no": 0.15,
    }
    first = TokenChoice(token="yes", top=tuple((word, math.log(share)) for word, share in written.items()))
    verdict = YES_OR_NO.read("yes", (first,))
    assert isinstance(verdict, Choice)
    assert verdict.confidence == pytest.approx(0.6 / 0.75)


def test_a_verdict_after_other_words_has_the_probabilities_of_its_own_place() -> None:
    tokens = (choice("**", **{"**": 1.0}), choice("Answer", Answer=0.99), choice(" no", no=0.6, yes=0.2))
    verdict = YES_OR_NO.read("**Answer no", tokens)
    assert isinstance(verdict, Choice)
    assert verdict.word == "no"
    assert verdict.confidence == pytest.approx(0.75)


def test_the_word_decides_where_the_probabilities_are_of_other_things() -> None:
    tokens = (choice("The", The=0.9, Yes=0.02, No=0.01),)
    assert YES_OR_NO.read("The answer: no", tokens) == Choice(word="no")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("change", "change"),
        (" Read.", "read"),
        ("**SKIP**", "skip"),
        ("skip: it does not change", "skip"),
        ("The answer is read", "read"),
        ('{"verdict": "change"}', "change"),
        ("<think>change or read</think>read", "read"),
    ],
)
def test_one_of_three_words_is_read_without_probabilities(text: str, word: str) -> None:
    assert THREE.read(text) == Choice(word=word)


def test_the_likeliest_of_three_words_counts_with_its_share_of_the_three() -> None:
    found = THREE.read("change", (choice("change", change=0.3, Read=0.25, read=0.25, other=0.2),))
    assert isinstance(found, Choice)
    assert found.word == "read"
    assert found.confidence == pytest.approx(0.5 / 0.8)
    assert dict(found.shares) == pytest.approx({"change": 0.3 / 0.8, "read": 0.5 / 0.8, "skip": 0.0})


def test_a_text_that_only_opens_thinking_is_read_in_one_pass() -> None:
    text = "<think>" * 100_000  # a search from each of them to the end would take minutes
    assert isinstance(TextAnswer(str).read(text), ParseFault)
    assert TextAnswer(str).read(f"a{text}") == f"a{text}"


THOUGHTS = {
    "qwen": ("<think>", "</think>"),
    "mistral": ("[THINK]", "[/THINK]"),
    "gemma": ("<|channel>thought\n", "<channel|>"),
    "cohere": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "granite": ("Here is my thought process:\n", "\nHere is my response:\n"),
    "medgemma": ("<unused94>thought\n", "<unused95>"),
    "gpt-oss, marks taken out": ("analysis", "assistantfinal"),
    "a blank in the mark": ("<think>", "</ think >"),
    "a name of its own": ("<scratchpad>", "</scratchpad>"),
    "another": ("<longcat_think>", "</longcat_think>"),
    "bars": ("<|think|>", "<|/think|>"),
    "bars, and a slash before them": ("<|thinking|>", "</|thinking|>"),
    "begin and end": ("<|begin_of_thinking|>", "<|end_of_thinking|>"),
    "start and end": ("<|think_start|>", "<|think_end|>"),
    "brackets": ("[REASONING]", "[/REASONING]"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "gpt-oss, a form": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    "gpt-oss, no channel": ("<|channel|>commentary<|message|>", "<|end|><|start|>assistant<|message|>"),
}


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("name", THOUGHTS)
def test_only_what_follows_the_thoughts_is_read(name: str, opened: bool) -> None:
    opening, closing = THOUGHTS[name] if opened else ("", THOUGHTS[name][1])
    draft = '{"summary": "draft", "steps": []}'
    plan = READER.read(f"{opening}Maybe {draft}? No.{closing}{GOOD}<|return|>")
    assert plan == READER.read(GOOD)
    thought = f"{opening}Okay, no, wait.{closing}"
    assert YES_OR_NO.read(f"{thought}Yes") == Choice(word="yes")
    likely = tuple(TokenChoice(token=token, top=((token, -0.1),)) for token in (thought, "Yes"))
    weighed = YES_OR_NO.read(f"{thought}Yes", likely)
    assert isinstance(weighed, Choice)
    assert weighed.word == "yes"
    assert weighed.confidence == pytest.approx(1)
    unsure = tuple(TokenChoice(token=token, top=((token, -0.1),)) for token in ("no", "Yes"))
    assert YES_OR_NO.read(f"{thought}Yes", unsure) == Choice(word="yes")


NEVER_CLOSED = ("<think>", "<|think|>", "[THINK]", "<reasoning>", "<|channel|>analysis<|message|>")


@pytest.mark.parametrize("opening", NEVER_CLOSED)
def test_an_answer_at_the_end_of_a_thought_that_is_never_closed_is_read(opening: str) -> None:
    reader: TextAnswer[str] = TextAnswer(lambda text: text)
    thought = f"{opening}\nThe `a` of {{x}} is wrong.\n"
    edit = '<edit file="a.py">\n<search>\n{"a": 1}\n</search>\n<replacement>\n```\n</replacement>\n</edit>'
    for answer in ("```python\na = {}\n```", edit, f'{edit}\n\n<delete file="b.py"/>', GOOD):
        assert reader.read(f"{thought}{answer}\n<|im_end|>") == answer
    assert READER.read(f"{thought}```json\n{GOOD}\n```\n") == READER.read(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        "Let me see.",
        f"{GOOD} or so",
        f"Perhaps\n{GOOD}\nNo, rather\n{GOOD}",
        "It begins\n```python\na = 1\n",
        "```python\na = 1\n```\nis wrong, so\n```python\na = 2\n```",
    ],
)
@pytest.mark.parametrize("opening", NEVER_CLOSED)
def test_what_may_be_a_draft_in_a_thought_that_is_never_closed_is_no_answer(opening: str, text: str) -> None:
    assert READER.read(f"{opening}\n{text}") == ParseFault(kind="empty", fault=thinking_only(None))


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "cut at </think>", "steps": []}',
        'MARK = "</think>"\n',
        "CUT = re.compile(r'<think>.*?'\n'</think>')\n",
        "Done: `</think>` is removed.\n",
        "```python\nMARK = re.compile(\n    </think>\n)\n```\n",
        '<edit file="a.html">\n<search>\n<b>\n</search>\n<replacement>\n</think>\n</replacement>\n</edit>\n',
    ],
)
def test_a_mark_that_an_answer_quotes_is_text(text: str) -> None:
    assert TextAnswer(str).read(text) == text
    assert TextAnswer(str).read(f"Hm.\n</think>{text}") == text


def test_free_text_reaches_its_function_without_thinking_and_otherwise_unchanged() -> None:
    reader: TextAnswer[str] = TextAnswer(lambda text: text)
    assert reader.read("<think>hm</think>\n  a\n") == "\n  a\n"
    assert reader.read("  a <think>\n") == "  a <think>\n"


@pytest.mark.parametrize("piece", ["{", '{"a":', "{}"])
def test_an_answer_of_many_braces_is_read_in_no_time(piece: str) -> None:
    started = time.process_time()
    READER.read(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 2


def test_a_repair_begins_with_the_original_prompt_and_shows_answer_and_fault() -> None:
    bad = ParseFault(kind="schema", fault="steps: Field required")
    assert repair_prompt(SourcedText("# Plan\n\nDo it."), '{"a": 1}\n# Plan', bad, max_tokens=9) == snapshot("""\
# Plan

Do it.

# An earlier answer to this could not be used

The answer was:

> {"a": 1}
> # Plan

What was wrong: steps: Field required. Answer again, in the form asked for above and without this fault.\
""")


def test_a_long_answer_is_quoted_in_whole_lines() -> None:
    assert quote_lines("a\nbb\nccc", limit=9) == "> a\n> bb\n(1 more line left out)"
    assert quote_lines("x" * 50, limit=9) == "(1 more line left out)"


def test_what_was_asked_keeps_its_sources_and_the_rest_is_about_the_refused_answer() -> None:
    asked = sourced("Do it.", PromptSource.TASK)
    text = repair_prompt(asked, "no\nway", ParseFault(kind="schema", fault="f"), max_tokens=9)
    lines = text.split("\n")
    assert [(span.source, lines[span.first - 1 : span.last]) for span in text.spans] == [
        (PromptSource.TASK, ["Do it."]),
        (PromptSource.REFUSED, ["> no", "> way"]),
        (PromptSource.REFUSED, [lines[-1]]),
    ]
