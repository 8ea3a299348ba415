"""What a comparison other than for equality expects, in words that read on behind "wanted" and "expected:"

'[default: ""]' in ''                '', wanted to contain '[default: ""]'
5 < 3                                5, wanted to be less than 3
expect([1]).not.toContain(1)         [1], wanted not to contain 1
"""

import re

RELATION = re.compile(r"(?:not )?to (?:be|contain|match|have|include|throw)\b")
UNEQUAL = "not to be"
OPERATORS = {
    "!=": (UNEQUAL, UNEQUAL),
    "is not": (UNEQUAL, UNEQUAL),
    "<": ("to be less than", "to be more than"),
    "<=": ("to be at most", "to be at least"),
    ">": ("to be more than", "to be less than"),
    ">=": ("to be at least", "to be at most"),
    "in": ("to be in", "to contain"),
    "not in": ("not to be in", "not to contain"),
    "matches": ("to match", "to match"),
    "does not match": ("not to match", "not to match"),
    "is None": ("None", ""),
    "is not None": ("not to be None", ""),
}
"""What is expected of the left side, before the right one; and of the right side, before the left one."""
SCRIPT_OPERATORS = {
    "!=": UNEQUAL,
    "!==": UNEQUAL,
    "match": "to match",
    "doesNotMatch": "not to match",
    "contain": "to contain",
    "not match": "not to match",
    "not contain": "not to contain",
}
"""Those of node:assert and chai, and what vitest's words come to; all others that begin with `not` are of inequality."""
MATCHERS = {
    "toBe": "",
    "toEqual": "",
    "toStrictEqual": "",
    "toBeNull": "null",
    "toBeUndefined": "undefined",
    "toBeNaN": "NaN",
    "toBeTruthy": "a true value",
    "toBeFalsy": "a false value",
    "toBeDefined": "to be defined",
    "toBeInstanceOf": "to be an instance of",
    "toBeGreaterThan": "to be more than",
    "toBeGreaterThanOrEqual": "to be at least",
    "toBeLessThan": "to be less than",
    "toBeLessThanOrEqual": "to be at most",
    "toBeCloseTo": "to be close to",
    "toContain": "to contain",
    "toContainEqual": "to contain",
    "toMatch": "to match",
    "toHaveProperty": "to have the property",
    "toThrow": "to throw",
    "toThrowError": "to throw",
}
"""Those of jest that compare one value."""


def is_relation(expected: str) -> bool:
    """Whether what was expected is not a value, but how the actual one relates to another."""
    return RELATION.match(expected) is not None


def of_operator(operator: str, other: str, *, is_right: bool = False) -> str:
    """What a failed comparison in Python expected of its left side, or `is_right`, of its right one; `other` is the other side."""
    words = OPERATORS[operator][is_right] if operator in OPERATORS else operator
    return f"{words} {other}".strip()


def of_script(operator: str, other: str) -> str:
    """What an operator of node:assert or chai expected; any kind of equality adds nothing."""
    words = SCRIPT_OPERATORS.get(operator, UNEQUAL if operator.startswith("not") else "")
    return f"{words} {other}".strip()


def of_matcher(matcher: str, value: str, *, is_negated: bool) -> str | None:
    """What a matcher of jest expected; None for one that is not known."""
    words = MATCHERS.get(matcher)
    if words is None:
        return None
    if is_negated:
        words = f"not {words}" if words.startswith("to ") else f"{UNEQUAL} {words}".rstrip()
    return f"{words} {value}".strip()
