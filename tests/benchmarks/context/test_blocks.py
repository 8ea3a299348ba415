"""What is read of a prompt's text: code by the files' lines, whatever the layout."""

import subprocess
from pathlib import Path

import pytest
from benchmarks.context.attention import PromptReader
from benchmarks.context.blocks import Reading, read_blocks
from benchmarks.context.failures import Failure
from benchmarks.context.figures import prompt_figures, visible
from benchmarks.context.goals import find_goals
from benchmarks.context.names import Names
from benchmarks.context.needs import Needs
from benchmarks.context.snapshot import Snapshot
from testing.servers.ollama_script import count_tokens

from clean_room_agent.training.gold_edits import GoldFile

MONEY = '''\
"""Money."""

from shop.rounding import half_up

CENTS = 100


def to_cents(amount):
    """The amount as cents."""
    whole = half_up(amount * CENTS)
    return int(whole)


def unrelated(first, second):
    for each in range(first):
        second = second + each
    return second
'''
ROUNDING = '''\
def half_up(number, digits=0):
    """Round half away from zero."""
    shift = 10**digits
    return int(number * shift + 0.5) / shift
'''
USER = "from shop.money import to_cents\n\nprint(to_cents(12.5))\n"
TEST = """\
from shop.money import to_cents


def example():
    return 0.285


def test_rounds_up():
    assert to_cents(example()) == 29


def test_other():
    assert to_cents(1) == 100
"""
GOAL = "tests/test_money.py::test_rounds_up"
FAILED = Failure(id=GOAL, error="assert 28 == 29", got="28", expected="29", line=9)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    files = {
        "shop/money.py": MONEY,
        "shop/rounding.py": ROUNDING,
        "shop/user.py": USER,
        "tests/test_money.py": TEST,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    subprocess.run(("git", "init", "-q"), cwd=tmp_path, check=True)
    return Snapshot(tmp_path)


@pytest.fixture
def needs(snapshot: Snapshot) -> Needs:
    names = Names(snapshot)
    gold = GoldFile(path="shop/money.py", before=MONEY, after=MONEY.replace("int(whole)", "round(whole)"))
    return Needs((gold,), find_goals((GOAL,), snapshot, names), snapshot, names)


def lines(text: str, first: int, last: int) -> str:
    return "\n".join(text.split("\n")[first - 1 : last])


def spans(reading: Reading) -> list[tuple[str, int, int]]:
    return [(block.path, block.first, block.last) for block in reading.blocks]


CODE = lines(MONEY, 8, 11)


@pytest.mark.parametrize(
    "shown",
    [
        f"===== symbol: shop/money.py :: to_cents (lines 8-11)\n{CODE}\n===== end",
        f"### shop/money.py\n```python\n{CODE}\n```",
        "shop/money.py\n" + "\n".join(f"    {line}" for line in CODE.split("\n")),
        "In shop/money.py:\n" + "\n".join(f"{n:>4} | {line}" for n, line in enumerate(CODE.split("\n"), 8)),
        "In shop/money.py:\n" + "\n".join(f"> {line}" for line in CODE.split("\n")),
    ],
)
def test_code_is_found_by_its_lines_in_any_frame(shown: str, snapshot: Snapshot) -> None:
    assert spans(read_blocks(f"# Do it\n\n{shown}\n\nWrite the edits.", snapshot)) == [
        ("shop/money.py", 8, 11)
    ]


def test_a_line_that_is_told_by_its_place_is_that_line(snapshot: Snapshot) -> None:
    reading = read_blocks("Callers:\n- shop/user.py:3: print(to_cents(12.5))\n", snapshot)
    assert spans(reading) == [("shop/user.py", 3, 3)]


def test_a_signature_is_found_without_its_colon(snapshot: Snapshot) -> None:
    assert spans(read_blocks("shop/rounding.py: signature\ndef half_up(number, digits=0)\n", snapshot)) == [
        ("shop/rounding.py", 1, 1)
    ]


def test_code_of_a_file_that_is_not_named_and_words_are_no_code(snapshot: Snapshot) -> None:
    assert not read_blocks(f"{CODE}\n\nRound half away from zero.", snapshot).blocks


def test_the_changed_function_what_it_uses_callers_and_goal_tests_are_needed(needs: Needs) -> None:
    assert [(place.name, place.first, place.last) for place in needs.changed] == [("to_cents", 8, 11)]
    assert sorted(needs.used) == ["shop/money.py :: CENTS", "shop/rounding.py :: half_up"]
    assert needs.lines("shop/rounding.py") == {1, 2}
    assert needs.lines("shop/user.py") == {1, 3}
    assert {4, 5, 8, 9} <= needs.lines("tests/test_money.py")
    assert not {15, 16, 17} & needs.lines("shop/money.py")


def test_a_full_prompt_has_all_its_figures(needs: Needs) -> None:
    prompt = (
        f"shop/money.py\n{lines(MONEY, 3, 11)}\n\nshop/rounding.py\n{lines(ROUNDING, 1, 2)}\n\n"
        f"tests/test_money.py\n{lines(TEST, 4, 9)}\n\n"
        "test_rounds_up fails at line 9\nexpected: 29\ngot: 28\n"
    )
    found = prompt_figures(read_blocks(prompt, needs.snapshot), needs, {GOAL: FAILED})
    assert (found.changed, found.sources, found.failing_lines, found.words) == ((1, 1),) * 4
    assert found.unexplained == ()
    assert found.needed_tokens == found.code_tokens > 0


def test_what_a_prompt_lacks_is_missing_in_its_figures(needs: Needs) -> None:
    prompt = (
        f"shop/money.py\n{lines(MONEY, 8, 10)}\n\n{lines(MONEY, 14, 17)}\n\nIt should be 29, and is 28.\n"
    )
    found = prompt_figures(read_blocks(prompt, needs.snapshot), needs, {GOAL: FAILED})
    assert (found.changed, found.sources, found.failing_lines, found.words) == ((0, 1),) * 4
    assert found.unexplained == ("shop/money.py :: CENTS", "shop/rounding.py :: half_up")
    assert found.code_tokens - found.needed_tokens == count_tokens(lines(MONEY, 14, 17).replace("\n", " "))


def test_a_name_that_is_said_not_to_be_shown_is_explained(needs: Needs) -> None:
    reading = read_blocks("Not shown: half_up, CENTS\n", needs.snapshot)
    assert prompt_figures(reading, needs, {}).unexplained == ()


def test_the_words_of_the_task_are_no_words_of_a_test(needs: Needs) -> None:
    prompt = "## Task\ntest_rounds_up: assert 28 == 29\n"
    read = prompt_figures(read_blocks(prompt, needs.snapshot), needs, {GOAL: FAILED})
    ours = prompt_figures(
        read_blocks(prompt, needs.snapshot, "test_rounds_up: assert 28 == 29"), needs, {GOAL: FAILED}
    )
    assert (read.words, ours.words) == ((1, 1), (0, 1))


@pytest.mark.parametrize(
    ("value", "text", "there"),
    [
        ("'a b\\nc'", "got:\n  a b\n  c", True),
        ("[ 'a', 'b' ]", 'Received: Array [\n  "a",\n  "b",\n]', True),
        ("<Thing at 0x7f01>", "<Thing at 0x…>", True),
        ("28", "12845", False),
        ("[]", "got: [ ]", True),
        ("x " * 30 + "different " + "y " * 30, "x " * 30 + "... " + "y " * 30, True),
        ("x " * 30 + "different " + "y " * 30, "x " * 30, False),
        ("{ name: 'a', …(3) }", "{ name: 'a', b: 1 }", True),
    ],
)
def test_a_value_is_there_however_it_is_printed(value: str, text: str, *, there: bool) -> None:
    assert visible(value, text) is there


def test_an_items_own_code_is_more_than_its_signature(needs: Needs) -> None:
    reader = PromptReader(needs, {}, "")
    signature = "shop/money.py :: to_cents | def to_cents(amount):"
    assert not reader.shows_code(signature, "shop/money.py", "to_cents")
    assert reader.shows_code(f"shop/money.py\n{CODE}\n", "shop/money.py", "to_cents")
    assert not reader.shows_code(f"shop/money.py\n{CODE}\n", "shop/money.py", "unrelated")
    assert reader.shows_code(f"shop/money.py\n{CODE}\n", "shop/money.py", "")


def test_neighbours_are_functions_that_are_shown_and_not_to_be_changed(needs: Needs) -> None:
    reader = PromptReader(needs, {}, "")
    assert reader.neighbours(f"shop/money.py\n{MONEY}", "shop/money.py") == [lines(MONEY, 14, 17)]
    assert reader.neighbours(f"shop/money.py\n{CODE}", "shop/money.py") == []
