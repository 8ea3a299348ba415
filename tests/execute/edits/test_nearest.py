from clean_room_agent.execute.edits.nearest import nearest

TEXT = "def f(a):\n    b = a + 1\n    return b\n\n\ndef g(a):\n    b = a + 1\n    return b\n"


def test_the_nearest_text_is_the_run_that_shares_most_lines() -> None:
    near = nearest(TEXT, "def g(a):\n    b = a + 2\n    return b")
    assert near is not None
    assert (near.line, near.differing_line, near.expected) == (6, 7, "    b = a + 2")
    assert near.text == "def g(a):\n    b = a + 1\n    return b"


def test_a_line_with_a_slip_is_near() -> None:
    near = nearest(TEXT, "  retrun b")
    assert near is not None
    assert near.line == 3


def test_nothing_is_near_what_is_wholly_different() -> None:
    assert nearest(TEXT, "SELECT * FROM users;") is None
    assert nearest("", "x") is None


def test_a_large_file_is_compared_quickly() -> None:
    text = "".join(f"    value_{number} = compute({number % 7})\n" for number in range(20_000))
    near = nearest(text, "\n".join(f"    value_{number} = compute(9)" for number in range(500, 530)))
    assert near is not None
