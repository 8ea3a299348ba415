import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.artifacts.goals import GoalSource, GoalTest
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.execute.forms.place import SAME, Assignment, Place, Refused
from clean_room_agent.execute.forms.worded import (
    FUNCTION,
    LINES,
    apply,
    code_blocks,
    gold,
    read_blocks,
    requests,
)
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.token_estimator import estimate

TEXT = '''\
import os


def helper(value):
    return value


class Stats:
    """Figures."""

    @staticmethod
    @helper
    def mean(values, scale=1):
        """Return the mean.

        >>> Stats.mean([1, 3])
        2.0
        """
        total = helper(sum(values))
        return total / (len(values) + 1)

    def other(self):
        return os.name
'''
PLACE = Place(path="a.py", name="Stats.mean", first_line=11, last_line=20, lines=(20, 19))
RIGHT = TEXT.replace("(len(values) + 1)", "len(values)")
GOAL = GoalTest(name="t", source=GoalSource.DOCUMENTED, call="Stats.mean([1, 3])", wanted="2.0", got="1.33")
ASSIGNMENT = Assignment(task="The mean is too small.", goals=(GOAL,), observed="total = 4")
METHOD = '''\
    @staticmethod
    @helper
    def mean(values, scale=1):
        """Return the mean."""
        total = helper(sum(values))
        return total / len(values)
'''
SCRIPT = """\
import { sum } from "./sum.js";

export class Stats {
  mean(values) {
    return sum(values) / (values.length + 1);
  }
}

export function top(values) {
  return values[1];
}
"""
IN_CLASS = Place(path="a.js", name="Stats.mean", first_line=4, last_line=6, lines=(5,))
AT_TOP = Place(path="a.js", name="top", first_line=9, last_line=11, lines=(10,))


def fenced(code: str) -> str:
    return f"```python\n{code}```\n"


def undented(code: str) -> str:
    return "".join(line[4:] if line.strip() else line for line in code.splitlines(keepends=True))


BODY = "total = helper(sum(values))\nreturn total / len(values)\n"
ANSWERS = {
    "as it was asked for": fenced(METHOD),
    "prose around it": f"The bug is here.\n\n{fenced(METHOD)}\nNow it works.",
    "no fence": METHOD,
    "prose and no fence": f"Here is the code:\n\n{METHOD}",
    "a fence that is not closed": f"```python\n{METHOD}",
    "at the top level": fenced(undented(METHOD)),
    "without decorators": fenced(METHOD.partition("@helper\n")[2]),
    "with one of the decorators": fenced(METHOD.replace("    @helper\n", "")),
    "without docstring": fenced(METHOD.replace('        """Return the mean."""\n', "")),
    "with another docstring": fenced(METHOD.replace("Return the mean.", "Return it.")),
    "with blank lines around the docstring": fenced(
        METHOD.replace('        """Return the mean."""\n', '\n        """Return the mean."""\n\n')
    ),
    "with an import above": fenced("import os\nimport math\n\n\n" + undented(METHOD)),
    "with another definition": fenced("def helper(value):\n    return value\n\n\n" + undented(METHOD)),
    "in its class": fenced(f"class Stats:\n{METHOD}"),
    "in its class with the other methods": fenced(
        f'class Stats:\n    """Figures."""\n\n{METHOD}\n    def other(self):\n        return 1\n'
    ),
    "a body without its head": fenced(BODY),
    "an indented body": fenced("".join(f"        {line}\n" for line in BODY.splitlines())),
    "the same twice": fenced(METHOD) + "\nAnd again:\n" + fenced(METHOD),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_small_models_do_to_a_definition_is_repaired(name: str) -> None:
    done = apply(PLACE, TEXT, ANSWERS[name])
    assert isinstance(done, str), done
    assert done == RIGHT


REFUSED = {
    "nothing": ("", "does not define Stats.mean"),
    "prose": ("I cannot see a bug in this code.", "does not define Stats.mean"),
    "another name": (fenced(METHOD.replace("mean", "average")), "does not define Stats.mean"),
    "two versions": (
        fenced(METHOD) + fenced(METHOD.replace("len(values)", "max(len(values), 1)")),
        "2 times, each differently",
    ),
    "an unknown name": (
        fenced(METHOD.replace("len(values)", "count(values)")),
        "nothing defines count",
    ),
    "a syntax error": (fenced(METHOD.replace("len(values)", "len(values")), ""),
    "cut off": ("```python\n" + METHOD.partition("sum(")[0] + "sum(", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_one_reading_is_refused_with_the_reason(name: str) -> None:
    answer, reason = REFUSED[name]
    refused = apply(PLACE, TEXT, answer)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert refused.reason != SAME


def test_the_same_code_is_no_candidate() -> None:
    answer = fenced(METHOD.replace("len(values)", "(len(values) + 1)"))
    refused = apply(PLACE, TEXT, answer)
    assert isinstance(refused, Refused)
    assert refused.reason == SAME


def test_an_import_or_a_helper_that_the_answer_needs_comes_along() -> None:
    code = "import math\n\n\ndef half(value):\n    return value / 2\n\n\n"
    answer = fenced(code + undented(METHOD).replace("total / len", "math.floor(half(total)) / len"))
    done = apply(PLACE, TEXT, answer)
    assert isinstance(done, str)
    assert done.startswith("import os\nimport math\n\n\ndef helper")
    assert "\n\n\ndef half(value):\n    return value / 2\n\n\nclass Stats:" in done


def test_the_lines_of_a_string_keep_their_blanks() -> None:
    text = "class A:\n    def f(self):\n        x = 1\n        return x\n"
    place = Place(path="a.py", name="A.f", first_line=2, last_line=4, lines=(3,))
    answer = fenced('def f(self):\n    x = """a\n  b\n"""\n    return x\n')
    done = apply(place, text, answer)
    assert isinstance(done, str)
    assert done == 'class A:\n    def f(self):\n        x = """a\n  b\n"""\n        return x\n'


def test_other_definitions_stay_as_they_are() -> None:
    done = apply(PLACE, TEXT, ANSWERS["in its class with the other methods"])
    assert isinstance(done, str)
    assert "return os.name" in done


@pytest.mark.parametrize(
    "answer",
    [
        "```js\n  mean(values) {\n    return sum(values) / values.length;\n  }\n```",
        "```js\nmean(values) {\n  return sum(values) / values.length;\n}\n```",
        "```js\nexport class Stats {\n  mean(values) {\n    return sum(values) / values.length;\n  }\n}\n```",
        "```js\nreturn sum(values) / values.length;\n```",
        "```js\nmean(values) {\n  const divided = (total) => total / values.length;\n  return divided(sum(values));\n}\n```",
    ],
)
def test_a_method_of_ecmascript_is_read_as_tolerantly(answer: str) -> None:
    done = apply(IN_CLASS, SCRIPT, answer)
    assert isinstance(done, str), done
    inside = "sum(values) / (values.length + 1);"
    assert done in {
        SCRIPT.replace(inside, "sum(values) / values.length;"),
        SCRIPT.replace(
            f"return {inside}",
            "const divided = (total) => total / values.length;\n    return divided(sum(values));",
        ),
    }


def test_an_export_that_was_dropped_is_put_back() -> None:
    done = apply(AT_TOP, SCRIPT, "```js\nfunction top(values) {\n  return values[0];\n}\n```")
    assert isinstance(done, str)
    assert done == SCRIPT.replace("values[1]", "values[0]")
    refused = apply(AT_TOP, SCRIPT, "```js\nfunction top(values) {\n  return vals[0];\n}\n```")
    assert isinstance(refused, Refused)
    assert refused.reason.startswith("nothing defines vals (line 10)")


def test_the_body_of_an_arrow_function_is_a_body() -> None:
    text = "export const add = (a: number, b: number): number => {\n  const total = a - b;\n  return total;\n};\n"
    place = Place(path="a.ts", name="add", first_line=1, last_line=4, lines=(2, 3))
    done = apply(place, text, "```ts\nconst total = a + b;\nreturn total;\n```")
    assert done == text.replace("a - b", "a + b")


def test_windows_line_ends_stay() -> None:
    done = apply(PLACE, TEXT.replace("\n", "\r\n"), ANSWERS["at the top level"])
    assert isinstance(done, str)
    assert done == RIGHT.replace("\n", "\r\n")


def test_the_prompt_shows_the_goal_the_code_and_what_it_calls() -> None:
    request = next(requests(FUNCTION, PLACE, TEXT, ASSIGNMENT))
    told = FUNCTION.render(request.inputs)
    assert "`Stats.mean([1, 3])` gives 1.33, but it should give 2.0" in told
    assert told.endswith(
        "`Stats.mean([1, 3])` gives 1.33, but it should give 2.0.\nWrite the changed code whole."
    )
    assert "total = 4" in told
    assert "## What the code to change uses\ndef helper(value):\n" in told
    assert (
        'class Stats:\n    @staticmethod\n    @helper\n    def mean(values, scale=1):\n        """Return the mean."""\n'
        in told
    )
    assert ">>>" not in told
    assert "```python\n    def mean(values, scale=1):" in told
    lines_shown = {span.number for span in told.spans if span.source is PromptSource.FILE}
    assert {8, 11, 19} <= lines_shown


def test_a_long_prompt_leaves_out_what_matters_least_and_a_long_definition_is_not_asked_for() -> None:
    wide = Assignment(task="x", observed="value = 1\n" * 900)
    request = next(requests(FUNCTION, PLACE, TEXT, wide))
    assert request.inputs.observed == ""
    assert request.inputs.related == ""
    assert estimate(FUNCTION.render(request.inputs)) <= 1500
    long = TEXT.replace("        total =", "        values = sorted(values)\n" * 400 + "        total =")
    place = Place(path="a.py", name="Stats.mean", first_line=11, last_line=420, lines=(420,))
    assert list(requests(FUNCTION, place, long, ASSIGNMENT)) == []


def test_a_test_that_makes_no_single_call_is_told_by_its_error_at_the_end() -> None:
    goal = GoalTest(name="t", source=GoalSource.REPOSITORY, got="AttributeError: no attribute 'reset'\nmore")
    (request,) = requests(FUNCTION, PLACE, TEXT, Assignment(task="x", goals=(goal,)), draws=1)
    assert request.inputs.now == "The tests fail now with: AttributeError: no attribute 'reset'"


STUB = "def later(value):\n    pass\n"
LATER = Place(path="b.py", name="later", first_line=1, last_line=2, lines=(2,))


def test_what_has_still_to_be_written_is_as_long_as_it_has_to_be() -> None:
    (stub,) = requests(FUNCTION, LATER, STUB, ASSIGNMENT, draws=1)
    assert stub.max_answer_tokens == FUNCTION.max_answer_tokens
    (written,) = requests(FUNCTION, PLACE, TEXT, ASSIGNMENT, draws=1)
    assert written.max_answer_tokens < FUNCTION.max_answer_tokens / 2


def test_long_instructions_are_shown_with_what_has_still_to_be_written() -> None:
    long = Assignment(task="Say what it does at length. " * 300)
    (stub,) = requests(FUNCTION, LATER, STUB, long, draws=1)
    assert long.task.strip() in FUNCTION.render(stub.inputs)
    assert list(requests(FUNCTION, PLACE, TEXT, long)) == []


def test_many_calls_are_told_in_a_line_each_and_few_tests_with_their_text() -> None:
    calls = tuple(replace(GOAL, name=f"t{number}", call=f"f({number})") for number in range(12))
    texts = tuple(replace(GOAL, name=f"u{number}", call="", code="def u(): ...") for number in range(5))
    (request,) = requests(FUNCTION, PLACE, TEXT, Assignment(task="x", goals=(*texts, *calls)), draws=1)
    told = request.inputs.evidence
    assert (told.count("def u()"), told.count("gives 1.33")) == (3, 7)


def test_the_first_draw_is_the_likeliest_answer() -> None:
    draws = list(requests(FUNCTION, PLACE, TEXT, ASSIGNMENT, draws=3))
    assert [draw.sampling.temperature > 0 for draw in draws] == [False, True, True]
    assert len({draw.sampling.seed for draw in draws}) == 3


def test_a_question_is_asked_and_read_like_any_other() -> None:
    request = next(requests(FUNCTION, PLACE, TEXT, ASSIGNMENT))
    reply = model_client(ScriptedTransport([ANSWERS["prose around it"]]), MemorySink()).ask(
        request.prompt, request.inputs, pass_id="t:p", sampling=request.sampling, repair=False
    )
    assert isinstance(reply.value, str)
    done = apply(PLACE, TEXT, reply.value)
    assert isinstance(done, str)
    assert done == RIGHT


LINES_ANSWER = "BEFORE:\n```python\nreturn total / (len(values) + 1)\n```\nAFTER:\n```python\nreturn total / len(values)\n```"


def blocks(answer: str) -> tuple[str, str]:
    read = read_blocks(answer)
    assert not isinstance(read, ParseFault)
    return read


@pytest.mark.parametrize(
    "answer",
    [
        LINES_ANSWER,
        LINES_ANSWER.replace("\nreturn", "\n        return"),
        LINES_ANSWER.replace("\nreturn", "\n    return"),
        "The mistake is a wrong divisor.\n" + LINES_ANSWER,
        "```python\n# BEFORE\nreturn total / (len(values) + 1)\n# AFTER\nreturn total / len(values)\n```",
        "BEFORE:\n        return total / (len(values) + 1)\nAFTER:\n        return total / len(values)",
    ],
)
def test_wrong_lines_are_replaced_whatever_their_indentation(answer: str) -> None:
    done = apply(PLACE, TEXT, blocks(answer))
    assert isinstance(done, str), done
    assert done == RIGHT


@pytest.mark.parametrize("head", ["    @staticmethod\n    @helper\n", ""])
def test_the_whole_definition_may_stand_for_its_lines(head: str) -> None:
    """Small models copy all of a short function, with the docstring that they are shown."""
    after = head + METHOD.partition("@helper\n")[2]
    before = after.replace("len(values)", "(len(values) + 1)")
    assert apply(PLACE, TEXT, (before, after)) == RIGHT
    assert apply(PLACE, TEXT, (before, before)) == Refused(reason=SAME)
    only = "        return total / len(values)"
    for left, new in ((before, only), (before.rpartition("        return")[0], after)):
        assert apply(PLACE, TEXT, (left, new)) == Refused(
            reason="the lines that should be replaced are not in Stats.mean"
        )


def test_lines_that_are_not_there_once_are_refused() -> None:
    assert apply(PLACE, TEXT, ("return 1", "return 2")) == Refused(
        reason="the lines that should be replaced are not in Stats.mean"
    )
    text = TEXT.replace("        return total", "        total = helper(sum(values))\n        return total")
    twice = Place(path="a.py", name="Stats.mean", first_line=11, last_line=21, lines=(20,))
    assert apply(twice, text, ("total = helper(sum(values))", "total = 0")) == Refused(
        reason="the lines that should be replaced are 2 times in Stats.mean"
    )
    assert apply(PLACE, TEXT, ("Return the mean.", "x")) == Refused(
        reason="the lines that should be replaced are not in Stats.mean"
    )


def test_lines_with_a_block_keep_its_steps() -> None:
    after = "if not values:\n    return 0\nreturn total / len(values)"
    done = apply(PLACE, TEXT, ("return total / (len(values) + 1)", after))
    assert isinstance(done, str)
    assert "        if not values:\n            return 0\n        return total / len(values)\n" in done


def test_an_answer_without_blocks_is_unreadable() -> None:
    assert isinstance(read_blocks("I cannot say."), ParseFault)
    assert code_blocks("a\n```\nb\n```\nc\n~~~js\nd") == ["b", "d"]


def test_a_file_in_tabs_stays_in_tabs() -> None:
    text = TEXT.replace("    ", "\t")
    right = RIGHT.replace("    ", "\t")
    for answer in (
        ANSWERS["at the top level"],
        ANSWERS["a body without its head"],
        fenced(METHOD.replace("    ", "\t")),
    ):
        done = apply(PLACE, text, answer)
        assert isinstance(done, str), done
        assert done == right
    after = "if not values:\n    return 0\nreturn total / len(values)"
    for lead in ("", "        "):
        lines = "\n".join(lead + line for line in after.split("\n"))
        done = apply(PLACE, text, (f"{lead}return total / (len(values) + 1)", lines))
        assert isinstance(done, str), done
        assert "\t\tif not values:\n\t\t\treturn 0\n\t\treturn total / len(values)\n" in done


def test_an_answer_with_windows_line_ends_is_read() -> None:
    done = apply(PLACE, TEXT, ANSWERS["as it was asked for"].replace("\n", "\r\n"))
    assert done == RIGHT


def test_of_two_versions_the_one_that_stands_there_is_not_meant() -> None:
    old = METHOD.replace("len(values)", "(len(values) + 1)")
    done = apply(PLACE, TEXT, f"This is wrong:\n{fenced(old)}\nThis is right:\n{fenced(METHOD)}")
    assert isinstance(done, str)
    assert done == RIGHT


def test_a_property_and_its_setter_are_told_apart_by_their_decorators() -> None:
    text = (
        "class A:\n    @property\n    def x(self):\n        return self._x\n\n"
        "    @x.setter\n    def x(self, value):\n        self._x = value\n"
    )
    place = Place(path="a.py", name="A.x", first_line=6, last_line=8, lines=(8,))
    done = apply(place, text, fenced(text.replace("= value", "= int(value)")))
    assert isinstance(done, str)
    assert done == text.replace("= value", "= int(value)")


def test_a_body_with_a_function_in_it_is_a_body() -> None:
    body = "def half(value):\n    return value / 2\n\ntotal = half(sum(values))\nreturn total / len(values)\n"
    done = apply(PLACE, TEXT, fenced(body))
    assert isinstance(done, str)
    assert (
        "        def half(value):\n            return value / 2\n\n        total = half(sum(values))\n"
        in done
    )


def test_of_a_definition_too_long_for_the_prompt_the_likeliest_lines_are_asked_for() -> None:
    rows = "".join(f"        values = list(reversed(values))  # {number}\n" for number in range(400))
    long = TEXT.replace("        total =", f"{rows}        total =")
    place = Place(path="a.py", name="Stats.mean", first_line=11, last_line=420, lines=(420, 19))
    request = next(requests(LINES, place, long, ASSIGNMENT))
    told = request.prompt.render(request.inputs)
    assert estimate(told) <= 1500
    assert "    def mean(values, scale=1):\n        values = list" in told
    assert (
        "  # 399\n        total = helper(sum(values))\n        return total / (len(values) + 1)\n```" in told
    )
    assert "  # 1\n" not in told
    done = apply(place, long, ("return total / (len(values) + 1)", "return total / len(values)"))
    assert isinstance(done, str)
    assert done == long.replace("(len(values) + 1)", "len(values)")


@pytest.mark.parametrize(
    ("place", "right", "wrong"),
    [
        (PLACE, RIGHT, TEXT),
        (replace(PLACE, last_line=19), TEXT, TEXT.replace("        total = helper(sum(values))\n", "")),
        (IN_CLASS, SCRIPT.replace("(values.length + 1)", "values.length"), SCRIPT),
        (PLACE, RIGHT.replace("total / ", "'```', total / "), TEXT),
    ],
)
def test_the_right_definition_restores_the_file(place: Place, right: str, wrong: str) -> None:
    answer = gold(place, right)
    assert answer is not None
    assert apply(place, wrong, answer) == right
    assert gold(replace(place, first_line=1), right) is None
