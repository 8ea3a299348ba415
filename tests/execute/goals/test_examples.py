"""Examples in documentation."""

from clean_room_agent.execute.goals.examples import documented_claims, script_claims


def test_examples_with_a_plain_value_are_claims_with_their_setup() -> None:
    doc = (
        "Text.\n\n>>> s = Stack()\n>>> s.push(1)\n>>> s.pop()\n1\n>>> s.pop()\nTraceback (most recent call last):\nIndexError: x\n"
        ">>> f(1)\n[1, ...]\n>>> f(2)  # doctest: +SKIP\n3\n>>> f(3)\n<object>\n"
    )
    claims = documented_claims(doc)
    assert [(one.call, one.values[0].text, one.values[0].kind) for one in claims] == [
        ("s.pop()", "1", "literal"),
        ("s.pop()", "IndexError", "error"),
    ]
    assert claims[0].setup == ("s = Stack()", "s.push(1)")


def test_documentation_that_is_no_session_has_none() -> None:
    assert documented_claims(">>>f(1)\n1") == ()


def test_examples_of_jsdoc_are_claims_with_their_setup() -> None:
    doc = (
        "Splits.\n@param {number} sum - f(9) // 3\n@example\nparts(10, 4); // => [3, 3, 2, 2]\n"
        "console.log(parts(4, 2)) // [2, 2]\nparts(9, 3)\n// -> [3, 3, 3]\nparts(1, 1) // about one\n"
        "@example\nconst all = new Sum(3)\nall.total() // returns 3\n// a remark\n@returns {number[]} f(1) // 2\n"
    )
    claims = script_claims(doc)
    assert [(one.call, one.setup, one.values[0].text) for one in claims] == [
        ("parts(10, 4)", (), "[3, 3, 2, 2]"),
        ("parts(4, 2)", (), "[2, 2]"),
        ("parts(9, 3)", (), "[3, 3, 3]"),
        ("all.total()", ("const all = new Sum(3)",), "3"),
    ]
    assert script_claims("parts(10, 4) // 3") == ()
