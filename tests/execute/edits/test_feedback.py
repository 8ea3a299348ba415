import pytest
from inline_snapshot import snapshot
from testing.packages import package, shown_file

from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.feedback import ADVICE, Nearest, describe, nearest, unseen_difference
from clean_room_agent.execute.edits.rules import EditRules

TEXT = "def f(a):\n    b = a + 1\n    return b\n\n\ndef g(a):\n    b = a + 1\n    return b\n"
RULES = EditRules(targets=(TargetFile(path="a.py"),))


def test_feedback_names_block_code_places_and_nearest_text() -> None:
    edits = (
        PatchEdit(kind="edit", file_path="a.py", search="    b = a + 1", replacement="    b = a"),
        PatchEdit(kind="edit", file_path="a.py", search="def g(a):\n    b = a + 2", replacement="def g():"),
        PatchEdit(kind="edit", file_path="a.py", search="def f(a):", replacement="def f(a, c):"),
    )
    result = apply_edits(edits, {"a.py": TEXT}, package(shown_file("a.py", TEXT)), RULES).result
    assert describe(result) == snapshot("""\
Edit 1 (a.py): AMBIGUOUS. The search text stands more than once. Add the lines around it until it stands once.
It matched 2 times, at lines 2, 7.
Edit 2 (a.py): NO_MATCH. The search text does not stand in the file. Copy it from the file, character for character.
Detail: the nearest text begins at line 6 and first differs at line 7, where the search text has '    b = a + 2'
The nearest text that really stands there:
| def g(a):
|     b = a + 1
Without fault: edit 3.
Nothing was applied: the files are as shown. Give all edits again.\
""")


def test_success_needs_no_feedback() -> None:
    edits = (PatchEdit(kind="edit", file_path="a.py", search="def f(a):", replacement="def f(a, c):"),)
    result = apply_edits(edits, {"a.py": TEXT}, package(shown_file("a.py", TEXT)), RULES).result
    assert describe(result) == ""


def test_every_refusal_has_advice() -> None:
    assert set(ADVICE) == {code for code in EditCode if not code.accepted}


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


def test_a_difference_that_nobody_can_see_is_named() -> None:
    edit = PatchEdit(
        kind="edit", file_path="a.py", search="    \u0430 = 1\n    b = 3", replacement="    a = 2"
    )
    text = "def f():\n    a = 1\n    b = 2\n"
    result = apply_edits((edit,), {"a.py": text}, package(shown_file("a.py", text)), RULES).result
    assert describe(result) == snapshot("""\
Edit 1 (a.py): NO_MATCH. The search text does not stand in the file. Copy it from the file, character for character.
Detail: the nearest text begins at line 2 and first differs at line 2, where the search text has '    \u0430 = 1': there, the file has U+0061 (LATIN SMALL LETTER A), and the search text U+0430 (CYRILLIC SMALL LETTER A)
The nearest text that really stands there:
|     a = 1
|     b = 2
Nothing was applied: the files are as shown. Give all edits again.\
""")


@pytest.mark.parametrize(
    ("real", "typed", "named"),
    [
        ("a\tb", "a b", "the file has U+0009 (TAB), and the search text U+0020 (SPACE)"),
        ("a  b", "a b", "the file has U+0020 (SPACE), and the search text U+0062 (LATIN SMALL LETTER B)"),
        ("a(b", "a[b", ""),
        ("it's", "it`s", "the file has U+0027 (APOSTROPHE), and the search text U+0060 (GRAVE ACCENT)"),
        (
            'say("")',
            "say('')",
            "the file has U+0022 (QUOTATION MARK), and the search text U+0027 (APOSTROPHE)",
        ),
        ("x1", "xl", "the file has U+0031 (DIGIT ONE), and the search text U+006C (LATIN SMALL LETTER L)"),
        (
            "a|b",
            "aIb",
            "the file has U+007C (VERTICAL LINE), and the search text U+0049 (LATIN CAPITAL LETTER I)",
        ),
        ("0x", "Ox", "the file has U+0030 (DIGIT ZERO), and the search text U+004F (LATIN CAPITAL LETTER O)"),
        ("it's", "its", ""),
        ("a1", "aO", ""),
    ],
)
def test_a_difference_that_is_hard_to_see_is_named(real: str, typed: str, named: str) -> None:
    near = Nearest(line=1, text=real, differing_line=1, expected=typed)
    assert unseen_difference(near).removeprefix(": there, ") == named
