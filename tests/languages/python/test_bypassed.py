"""What of a function has no effect any more after a change."""

import pytest

from clean_room_agent.languages.python.bypassed import bypassed

BEFORE = """
def put(inner, key, func, default=None):
    if key in inner:
        value = func(inner[key])
    else:
        value = func(default)
    inner[key] = value
    return inner
"""
LAST = "    return inner\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    if key in inner:\n", "    return inner\n    if key in inner:\n", "a part of put is never reached"),
        ("    if key in inner:\n", "    raise KeyError(key)\n    if key in inner:\n", "a part of put is never reached"),
        (LAST, f"    with inner:\n    {LAST}{LAST}", "a part of put is never reached"),
        (LAST, f"    if key:\n    {LAST}    else:\n        raise KeyError\n{LAST}", "a part of put is never reached"),
        ("func(default)", "func(None)", "put no longer uses default"),
        ("    if key in inner:\n", "    if not key:\n        return inner\n    if key in inner:\n", ""),
        ("func(default)", "default", ""),
        (LAST, "    return dict(inner)\n", ""),
        ("def put(inner, key, func, default=None)", "def put(inner, key, func)", ""),
    ],
)  # fmt: skip
def test_what_a_change_bypasses_is_told(old: str, new: str, words: str) -> None:
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    assert bypassed("put", BEFORE, after) == words


def test_what_had_no_effect_before_may_stay_so() -> None:
    unreached = BEFORE.replace("    inner[key] = value\n", "    return inner\n    inner[key] = value\n")
    assert (
        bypassed("put", unreached, unreached.replace("func(default)", "func()"))
        == "put no longer uses default"
    )
    assert bypassed("put", unreached, unreached.replace("return inner\n", "return None\n", 1)) == ""


def test_methods_and_functions_in_functions_are_found_by_their_qualified_names() -> None:
    before = "class A:\n    if True:\n        def f(self, x):\n            def g(y):\n                return y\n            return g(x)\n"
    after = before.replace("return y", "return 1")
    assert bypassed("A.f.g", before, after) == "g no longer uses y"
    assert bypassed("A.f", before, after) == ""
    assert bypassed("A.h", before, after) == ""
    assert bypassed("A", before, after) == ""


@pytest.mark.parametrize("text", ["def put(", "x = '\0'", "(" * 9999])
def test_text_that_cannot_be_parsed_says_nothing(text: str) -> None:
    assert bypassed("put", BEFORE, text) == ""
