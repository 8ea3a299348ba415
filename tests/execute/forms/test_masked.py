import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.goals import GoalSource, GoalTest, TracedFunction
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.execute.forms import masked
from clean_room_agent.execute.forms.masks import Mask, masks_by_line
from clean_room_agent.execute.forms.place import SAME, Assignment, Parsed, Place, Refused, place_of
from clean_room_agent.llm.token_estimator import estimate

TEXT = '''\
import os


class Stats:
    """Figures."""

    @staticmethod
    def mean(values, scale=1):
        """Return the mean.

        >>> Stats.mean([1, 3])
        2.0
        """
        total = sum(values)
        if not values:
            return 0
        return total / (len(values) + 1)

    def other(self):
        return os.name
'''
PLACE = Place(path="a.py", name="Stats.mean", first_line=7, last_line=17, lines=(17, 14, 15))
GOAL = GoalTest(
    name="a.py::mean",
    source=GoalSource.DOCUMENTED,
    call="Stats.mean([1, 3])",
    wanted="2.0",
    got="1.3333333333333333",
)
ASSIGNMENT = Assignment(task="The mean is too small.", goals=(GOAL,))
SCRIPT = """\
export class Stats {
  mean(values) {
    const total = values.reduce((a, b) => a + b, 0);
    if (values.length === 1) {
      return 0;
    }
    return total / values.length;
  }
}
"""
SCRIPT_PLACE = Place(path="a.js", name="Stats.mean", first_line=2, last_line=8, lines=(7, 3, 4))


def line_mask(line: int, *, place: Place = PLACE, text: str = TEXT) -> Mask:
    return next(
        mask for mask in all_masks(place=place, text=text) if (mask.kind, mask.first_line) == ("line", line)
    )


def all_masks(*, place: Place = PLACE, text: str = TEXT) -> list[Mask]:
    return [mask for masks in masks_by_line(Parsed(place.path, text), place) for mask in masks]


def shown(telling: str, *, place: Place = PLACE, text: str = TEXT, kind: str = "line") -> tuple[str, str]:
    """Before and behind the first mask of the kind, told in this way."""
    for request in masked.requests(place, text, ASSIGNMENT):
        if (request.telling, request.mask.kind) == (telling, kind):
            return str(request.fill.before), str(request.fill.after)
    raise AssertionError(telling)


def test_a_traced_function_is_a_place_with_its_lines_by_suspiciousness() -> None:
    traced = TracedFunction(
        path="a.py", name="Stats.mean", first_line=7, calls=1, lines=((14, 0.5), (15, 1.0), (17, 1.0))
    )
    assert place_of(traced, TEXT) == Place(
        path="a.py", name="Stats.mean", first_line=7, last_line=17, lines=(17, 15, 14)
    )
    assert (
        place_of(TracedFunction(path="a.py", name="Stats.gone", first_line=7, calls=1, lines=()), TEXT)
        is None
    )


CAUGHT = """\
def number(text):
    try:
        value = int(text, 0)
    except ValueError:
        value = 0
    return value
"""


def test_what_was_caught_arose_in_what_the_handler_guards() -> None:
    lines = ((2, 0.3), (3, 0.3), (4, 0.7), (5, 0.7), (6, 0.3))
    traced = TracedFunction(path="a.py", name="number", first_line=1, calls=1, lines=lines)
    place = place_of(traced, CAUGHT)
    assert place is not None
    assert place.lines == (3, 5, 4, 6, 2)


def test_the_goal_stands_as_a_comment_above_the_body_and_the_docstring_is_left_out() -> None:
    before, after = shown("comment")
    assert before == (
        "class Stats:\n"
        "    @staticmethod\n"
        "    def mean(values, scale=1):\n"
        '        """Return the mean."""\n'
        "        # `Stats.mean([1, 3])` gives 1.3333333333333333, but it should give 2.0\n"
        "        total = sum(values)\n"
        "        if not values:\n"
        "            return 0\n"
        "       "
    )
    assert after == "\n"


def test_arguments_that_are_handed_on_under_their_names_come_last() -> None:
    text = "def f(a, keep):\n    b = a + 1\n    return g(\n        b - 1,\n        keep=keep,\n        keep_b=keep,\n    )\n"
    place = Place(path="a.py", name="f", first_line=1, last_line=7, lines=(5, 6, 4, 3, 2))
    assert [masks[0].first_line for masks in masks_by_line(Parsed("a.py", text), place)] == [6, 4, 3, 2, 5]


def test_where_a_model_guessed_the_goal_the_words_stand_above_it() -> None:
    guess = replace(GOAL, source=GoalSource.WRITTEN)
    asked = masked.requests(PLACE, TEXT, Assignment(task="Do not round.", goals=(guess,)))
    before = next(str(one.fill.before) for one in asked if one.telling == "comment")
    assert (
        "        # Do not round.\n"
        "        # `Stats.mean([1, 3])` gives 1.3333333333333333, but it should give 2.0\n"
    ) in before


def test_of_a_docstring_the_first_paragraph_stands_above_the_body() -> None:
    text = (
        'def even(values):\n    """Return the values, of which those at even\n    places are sorted.\n\n    More.\n    """\n'
        "    values.sort()\n    return values\n"
    )
    assert '    """Return the values, of which those at even places are sorted."""\n    #' in before_first(
        "a.py", text, "even", 1, 8
    )


def before_first(path: str, text: str, name: str, first: int, last: int) -> str:
    place = Place(path=path, name=name, first_line=first, last_line=last, lines=tuple(range(last, first, -1)))
    return str(next(masked.requests(place, text, ASSIGNMENT)).fill.before)


def test_what_the_file_defines_and_the_definition_uses_stands_above_it_without_bodies() -> None:
    text = (
        "import re\n\nWORD = re.compile(\n    'a+',\n)\nOTHER = 1\nLONG = [" + "1, " * 100 + "]\n\n\n"
        "@cached\ndef near(\n    text: str,\n) -> str:\n    return text.strip()\n\n\n"
        "class Kind:\n    near = 1\n\n\n"
        "def count(text):\n    LONG.append(Kind)\n    return len(WORD.findall(near(text)))\n"
    )
    first = text[: text.index("def count")].count("\n") + 1
    assert before_first("a.py", text, "count", first, first + 2).startswith(
        "WORD = re.compile('a+')\ndef near(text: str) -> str: ...\nclass Kind: ...\ndef count(text):\n"
    )


def test_in_ecmascript_it_is_shown_too() -> None:
    text = (
        "const SIZE = 3;\nexport function near(a, b) {\n  return a;\n}\nclass Kind {\n  go() {}\n}\n"
        "export const other = (a) => a;\nfunction count(text) {\n  return near(text, SIZE) + new Kind();\n}\n"
    )
    assert before_first("a.js", text, "count", 9, 11).startswith(
        "const SIZE = 3;\nfunction near(a, b) { }\nclass Kind { }\nfunction count(text) {\n"
    )


def test_the_goal_is_told_in_several_ways() -> None:
    assert "        # wrong: return total / (len(values) + 1)\n" in shown("wrong")[0]
    assert (
        '        """Return the mean.\n\n        >>> Stats.mean([1, 3])\n        2.0\n        """\n'
        in shown("docstring")[0]
    )
    assert shown("test")[1] == "\n\n\nassert Stats.mean([1, 3]) == 2.0\n"
    assert "        # The mean is too small.\n" in shown("task")[0]


def test_what_the_call_needs_is_told_with_it() -> None:
    goal = replace(ASSIGNMENT.goals[0], setup="a = [1]; b = a")
    told = {
        one.telling: f"{one.fill.before}{one.fill.after}"
        for one in masked.requests(PLACE, TEXT, replace(ASSIGNMENT, goals=(goal,)))
    }
    assert f"# `a = [1]; b = a; {goal.call}` " in told["comment"]
    assert f">>> a = [1]; b = a; {goal.call}\n" in told["docstring"]
    assert f"\na = [1]; b = a\nassert {goal.call} == " in told["test"]


def test_in_ecmascript_the_goal_is_told_in_its_own_comments_and_tests() -> None:
    comment = shown("comment", place=SCRIPT_PLACE, text=SCRIPT)[0]
    assert comment.startswith("export class Stats {\n  mean(values) {\n    // `Stats.mean([1, 3])` gives")
    assert (
        "assert.deepStrictEqual(Stats.mean([1, 3]), 2.0);"
        in shown("test", place=SCRIPT_PLACE, text=SCRIPT)[1]
    )
    assert "     * @example" not in comment
    assert (
        " * @example\n     * Stats.mean([1, 3]) // => 2.0\n"
        in shown("docstring", place=SCRIPT_PLACE, text=SCRIPT)[0]
    )


def test_an_error_that_should_be_raised_is_told_as_one() -> None:
    goal = GoalTest(name="t", source=GoalSource.STATED, call="f(1)", wanted="raises KeyError: 1", got="None")
    assignment = Assignment(task="x", goals=(goal,))
    told = [request.fill for request in masked.requests(PLACE, TEXT, assignment)]
    assert any("`f(1)` gives None, but it should raise KeyError\n" in fill.before for fill in told)
    assert any("with pytest.raises(KeyError):\n    f(1)\n" in fill.after for fill in told)


def test_an_error_that_is_raised_is_told_as_one() -> None:
    goal = replace(GOAL, got="raises TypeError: no values")
    before = next(masked.requests(PLACE, TEXT, replace(ASSIGNMENT, goals=(goal,)))).fill.before
    assert "# `Stats.mean([1, 3])` raises TypeError: no values, but it should give 2.0\n" in str(before)


def test_each_line_is_asked_for_in_several_ways_the_likeliest_line_first() -> None:
    requests = list(masked.requests(PLACE, TEXT, ASSIGNMENT))
    assert [(one.mask.first_line, one.mask.kind, one.telling) for one in requests[:6]] == [
        (17, "part", "comment"),
        (14, "part", "comment"),
        (15, "part", "comment"),
        (17, "line", "comment"),
        (14, "line", "comment"),
        (15, "line", "comment"),
    ]
    assert [one.telling for one in requests if one.mask == requests[0].mask] == [
        "comment", "wrong", "docstring", "test", "task",
    ]  # fmt: skip
    assert {one.mask.kind for one in requests} == {"line", "part", "gap", "neighbours"}
    assert all((one.fill.sampling.temperature > 0) == (one.draw > 0) for one in requests)
    assert len({one.item for one in requests}) == len(requests)


def test_what_else_there_is_to_ask_of_a_natural_line_waits() -> None:
    natural: set[Mask] = set()
    requests = masked.requests(PLACE, TEXT, ASSIGNMENT, natural=natural)
    first = [next(requests) for _ in range(3)]
    natural.add(first[0].mask)
    assert [next(requests).mask.first_line for _ in range(4)] == [14, 15, 14, 15]
    assert 17 in {next(requests).mask.first_line for _ in range(4)}


def test_without_a_call_the_tasks_words_are_told() -> None:
    assignment = Assignment(task="The mean is too small.")
    assert {one.telling for one in masked.requests(PLACE, TEXT, assignment)} == {"task"}


def test_without_a_call_the_text_of_the_test_stands_in_front_of_all() -> None:
    test = GoalTest(name="t", source=GoalSource.REPOSITORY, code="def test_mean():\n    assert works()\n")
    assignment = Assignment(task="The mean is too small.", goals=(test,))
    first = next(masked.requests(PLACE, TEXT, assignment))
    assert first.fill.before.startswith("def test_mean():\n    assert works()\n\n\nclass Stats:\n")
    assert "# The mean is too small.\n" in first.fill.before
    called = Assignment(task="The mean is too small.", goals=(GOAL, test))
    assert all("works" not in one.fill.shown for one in masked.requests(PLACE, TEXT, called))


def test_every_line_of_a_request_has_its_source() -> None:
    request = next(masked.requests(PLACE, TEXT, ASSIGNMENT))
    spans = request.fill.shown.spans
    lines = request.fill.shown.split("\n")
    told = [
        line
        for span in spans
        if span.source is PromptSource.EVIDENCE
        for line in lines[span.first - 1 : span.last]
    ]
    assert told == ["        # `Stats.mean([1, 3])` gives 1.3333333333333333, but it should give 2.0"]
    source = TEXT.split("\n")
    for span in spans:
        if span.source is PromptSource.FILE and span.number not in {None, 9}:
            assert span.number is not None
            shown_lines = lines[span.first - 1 : span.last]
            there = source[span.number - 1 : span.number - 1 + len(shown_lines)]
            assert shown_lines == there or "<<GAP>>" in shown_lines[0]


def test_a_gap_is_asked_for_again_told_what_its_answer_broke() -> None:
    first = next(masked.requests(PLACE, TEXT, ASSIGNMENT))
    kept = replace(GOAL, name="u", call="Stats.mean([])", wanted="0", got="")
    again = list(masked.same_gap_requests(PLACE, TEXT, replace(ASSIGNMENT, goals=(GOAL, kept)), first))
    assert [(one.mask, one.telling) for one in again] == [
        (first.mask, telling) for telling in ("comment", "wrong", "docstring")
    ]
    told = "        # `Stats.mean([1, 3])` gives 1.3333333333333333, but it should give 2.0\n"
    assert f"{told}        # `Stats.mean([])` should give 0\n" in again[0].fill.shown


def test_an_answer_takes_the_place_of_the_mask() -> None:
    done = masked.apply(PLACE, TEXT, line_mask(17), "        return total / len(values)")
    assert done == TEXT.replace("(len(values) + 1)", "len(values)")


@pytest.mark.parametrize(
    "answer",
    [
        " return total / len(values)",
        "return total / len(values)",
        "        return total / len(values)",
        "  return total / len(values)",
        "                return total / len(values)",
        " # correct: return total / len(values)",
    ],
)
def test_the_indentation_that_a_line_was_given_is_not_written_twice(answer: str) -> None:
    done = masked.apply(PLACE, TEXT, line_mask(17), answer)
    assert done == TEXT.replace("(len(values) + 1)", "len(values)")


@pytest.mark.parametrize(
    "answer", [" total / len(values)", "total / len(values)", " return total / len(values)"]
)
def test_a_part_is_read_whatever_is_around_it(answer: str) -> None:
    request = next(masked.requests(PLACE, TEXT, ASSIGNMENT))
    assert request.fill.before.endswith("\n        return")
    done = masked.apply(PLACE, TEXT, request.mask, answer)
    assert isinstance(done, str)
    assert done == TEXT.replace("(len(values) + 1)", "len(values)")


@pytest.mark.parametrize(
    "answer",
    [
        " len(values) == 0",
        " len(values) == 0:",
        " len(values) == 0:  # nothing to add",
        " if len(values) == 0",
        "if len(values) == 0:",
    ],
)
def test_what_stands_around_a_part_is_not_written_twice(answer: str) -> None:
    condition = next(mask for mask in all_masks() if (mask.kind, mask.first_line) == ("part", 15))
    done = masked.apply(PLACE, TEXT, condition, answer)
    assert done == TEXT.replace("not values", "len(values) == 0")


@pytest.mark.parametrize(
    ("answer", "argument"),
    [
        ("p, whole=False) for p in parts])", "p, whole=False"),
        ("p, end=')') for p in parts])", "p, end=')'"),
        ("p, whole=(1, 2)[0])", "p, whole=(1, 2)[0]"),
    ],
)
def test_a_part_in_brackets_ends_where_they_close(answer: str, argument: str) -> None:
    text = "def path(parts):\n    return '/'.join([quoted(p)\n                     for p in parts])\n"
    place = Place(path="a.py", name="path", first_line=1, last_line=3, lines=(2,))
    inner = next(
        mask
        for mask in all_masks(place=place, text=text)
        if mask.kind == "part" and text[mask.start : mask.end] == "p"
    )
    assert masked.apply(place, text, inner, answer) == text.replace("quoted(p)", f"quoted({argument})")


def test_a_whole_statement_for_its_first_line_takes_the_place_of_all_its_lines() -> None:
    text = "def path(parts):\n    return '/'.join([quoted(p)\n                     for p in parts])\n"
    place = Place(path="a.py", name="path", first_line=1, last_line=3, lines=(2,))
    answer = " return '/'.join([quoted(p, True) for p in parts])"
    done = masked.apply(place, text, line_mask(2, place=place, text=text), answer)
    assert done == f"def path(parts):\n   {answer}\n"
    begun = masked.apply(place, text, line_mask(2, place=place, text=text), " return '/'.join([quoted(p + p)")
    assert begun == text.replace("(p)", "(p + p)")


def test_what_stands_there_is_no_candidate_whatever_its_blanks_and_comments() -> None:
    for answer in (
        "        return total / (len(values) + 1)",
        "        return total/(len(values)+1)  # right",
    ):
        refused = masked.apply(PLACE, TEXT, line_mask(17), answer)
        assert isinstance(refused, Refused)
        assert refused.reason == SAME


def test_an_answer_that_cannot_be_right_is_refused_before_anything_runs() -> None:
    reasons = {
        "        return total / lenght(values)": "nothing defines lenght",
        "        return total / (len(values)": "the file no longer parses",
        "def mean():": "",
    }
    for answer, reason in reasons.items():
        refused = masked.apply(PLACE, TEXT, line_mask(17), answer)
        assert isinstance(refused, Refused)
        assert reason in refused.reason
        assert refused.reason != SAME


def test_a_gap_gets_a_line_of_its_own_and_nothing_makes_nothing() -> None:
    gap = next(mask for mask in all_masks() if mask.kind == "gap" and mask.first_line == 17)
    done = masked.apply(PLACE, TEXT, gap, "        scale = 2")
    assert isinstance(done, str)
    assert done == TEXT.replace("        return total /", "        scale = 2\n        return total /")
    assert masked.apply(PLACE, TEXT, gap, "  ") == Refused(reason="the answer adds nothing")


@pytest.mark.parametrize("answer", ["        total = sum(values)", "if not values:"])
def test_a_gap_that_is_filled_with_the_line_beside_it_is_no_candidate(answer: str) -> None:
    gap = next(mask for mask in all_masks() if (mask.kind, mask.first_line) == ("gap", 15))
    assert isinstance(masked.apply(PLACE, TEXT, gap, answer), Refused)


def test_an_empty_answer_takes_the_line_out() -> None:
    text = TEXT.replace("        if not", "        total = 0\n        if not")
    place = Place(path="a.py", name="Stats.mean", first_line=7, last_line=18, lines=(15,))
    done = masked.apply(place, text, line_mask(15, place=place, text=text), "")
    assert done == TEXT


def test_windows_line_ends_stay() -> None:
    text = TEXT.replace("\n", "\r\n")
    request = next(masked.requests(PLACE, text, ASSIGNMENT))
    assert "\r" not in request.fill.shown
    done = masked.apply(PLACE, text, request.mask, " total / len(values)")
    assert done == text.replace("(len(values) + 1)", "len(values)")


def test_masks_are_parts_of_lines_whole_statements_and_neighbours() -> None:
    text = "def f(a, b):\n    c = g(\n        a,\n        b,\n    )\n    if a > b and c:\n        return c\n    return max(a, b)\n"
    place = Place(path="a.py", name="f", first_line=1, last_line=8, lines=(2, 6, 8))
    masks = all_masks(place=place, text=text)
    told = {
        kind: [text[one.start : one.end] for one in masks if one.kind == kind]
        for kind in ("statement", "part")
    }
    assert told["statement"] == ["    c = g(\n        a,\n        b,\n    )"]
    assert told["part"] == ["a > b and c", "max(a, b)", "a, b", "a", "b"]
    neighbours = {(one.first_line, one.last_line) for one in masks if one.kind == "neighbours"}
    assert {(5, 6), (6, 7), (7, 8), (6, 8), (5, 8)} <= neighbours
    assert {one.last_line - one.first_line for one in masks if one.kind == "neighbours"} == {1, 2, 3}


def test_lines_that_import_come_last() -> None:
    text = TEXT.replace("        total = sum", "        import math\n\n        total = math.fsum")
    place = Place(path="a.py", name="Stats.mean", first_line=7, last_line=19, lines=(14, 19, 16))
    assert [masks[0].first_line for masks in masks_by_line(Parsed("a.py", text), place)] == [19, 16, 14]


def test_all_arguments_together_are_a_mask_since_they_may_be_exchanged() -> None:
    text = "def text(value):\n    return str('ascii', value)\n"
    place = Place(path="a.py", name="text", first_line=1, last_line=2, lines=(2,))
    parts = [mask for mask in all_masks(place=place, text=text) if mask.kind == "part"]
    assert [text[mask.start : mask.end] for mask in parts] == [
        "str('ascii', value)",
        "'ascii', value",
        "'ascii'",
        "value",
    ]
    assert masked.apply(place, text, parts[1], "value, 'ascii')") == text.replace(
        "'ascii', value", "value, 'ascii'"
    )


def test_the_masks_of_ecmascript_are_the_same() -> None:
    masks = all_masks(place=SCRIPT_PLACE, text=SCRIPT)
    parts = [SCRIPT[one.start : one.end] for one in masks if one.kind == "part"]
    assert "values.length === 1" in parts
    assert "total / values.length" in parts
    done = masked.apply(
        SCRIPT_PLACE,
        SCRIPT,
        next(m for m in masks if SCRIPT[m.start : m.end] == "values.length === 1"),
        "values.length === 0",
    )
    assert done == SCRIPT.replace("=== 1", "=== 0")


def test_a_definition_on_one_line_has_no_masks() -> None:
    place = Place(path="a.py", name="f", first_line=1, last_line=1, lines=(1,))
    assert list(masked.requests(place, "def f(): return 1\n", ASSIGNMENT)) == []


def test_text_that_is_not_utf_8_stays_as_it_is() -> None:
    text = TEXT.replace('"""Figures."""', '"""Figures \udce9."""')
    request = next(masked.requests(PLACE, text, ASSIGNMENT))
    done = masked.apply(PLACE, text, request.mask, " total / len(values)")
    assert done == text.replace("(len(values) + 1)", "len(values)")


def test_of_a_long_definition_what_is_near_is_shown() -> None:
    rows = "".join(f"        total += values[{number}] * scale\n" for number in range(400))
    text = TEXT.replace("        if not", f"{rows}        if not")
    place = Place(path="a.py", name="Stats.mean", first_line=7, last_line=417, lines=(200,))
    request = next(masked.requests(place, text, ASSIGNMENT))
    told = request.fill.shown
    assert "values[184] * scale\n        total +=<<GAP>>\n        total += values[186]" in told
    assert estimate(told) <= 400
    wide = next(one for one in masked.requests(place, text, ASSIGNMENT) if one.telling == "wrong")
    assert wide.fill.shown.count("total +=") > 2 * told.count("total +=")
    assert estimate(wide.fill.shown) <= 1500
    assert estimate(wide.fill.after) <= 500


def test_of_a_long_definition_what_explains_the_lines_near_is_shown_too() -> None:
    filler = "            print(values)\n" * 60
    text = TEXT.replace(
        "        total = sum(values)\n",
        "        factor = 2\n        other = 3\n        for value in values:\n"
        f"            unit = value\n{filler}            total = unit * factor\n",
    )
    line = text.split("\n").index("            total = unit * factor") + 1
    place = Place(path="a.py", name="Stats.mean", first_line=7, last_line=line + 3, lines=(line,))
    told = next(masked.requests(place, text, ASSIGNMENT)).fill.shown
    assert (
        "        factor = 2\n        for value in values:\n            unit = value\n            print"
        in told
    )
    assert told.count("print") < 60


@pytest.mark.parametrize(
    ("place", "text", "right"),
    [
        (PLACE, TEXT, TEXT.replace("(len(values) + 1)", "len(values)")),
        (PLACE, TEXT.replace("len(values) + 1", "len(values)"), TEXT),
        (PLACE, TEXT.replace("if not values", "if values"), TEXT),
        (SCRIPT_PLACE, SCRIPT.replace("=== 1", "!== 1"), SCRIPT),
        (PLACE, TEXT.replace("        total = sum(values)\n", ""), TEXT),
    ],
)
def test_the_right_text_of_a_gap_restores_the_file(place: Place, text: str, right: str) -> None:
    golds = {mask: masked.gold(place.path, text, mask, right) for mask in all_masks(place=place, text=text)}
    known = {mask: gold for mask, gold in golds.items() if gold is not None}
    assert 0 < len(known) < len(golds)
    for mask, gold in known.items():
        assert masked.apply(place, text, mask, gold) == right


def test_the_right_text_begins_behind_what_is_shown() -> None:
    right = TEXT.replace("(len(values) + 1)", "len(values)")
    request = next(masked.requests(PLACE, TEXT, ASSIGNMENT))
    assert str(request.fill.before).endswith("        return")
    assert masked.gold("a.py", TEXT, request.mask, right) == " total / len(values)"
    assert masked.gold("a.py", TEXT, line_mask(17), right) == " return total / len(values)"
    assert masked.gold("a.py", TEXT, line_mask(14), right) is None
