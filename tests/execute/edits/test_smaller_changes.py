import pytest

from clean_room_agent.execute.edits.smaller_changes import MOST_PARTS, smaller_changes


def text(line: str) -> str:
    return f"def args(a, n):\n    {line}\n"


def lines(before: str, after: str) -> list[str]:
    found = smaller_changes("a.py", "args", text(before), text(after))
    return [one.split("\n")[1].strip() for one in found]


def test_each_part_of_a_line_written_anew_is_tried_alone_the_shortest_first() -> None:
    before, after = "return (a,) if n == 10 else (repr(a), a)", "return (str(a), n)"
    found = lines(before, after)
    assert "return (a,) if n == 10 else (repr(a), n)" in found
    assert "return (str(a), a)" in found
    assert before not in found
    assert after not in found
    assert found.index("return (a,) if n == 10 else (repr(a), n)") < 2


def test_of_a_change_with_one_part_there_is_no_smaller_one() -> None:
    assert lines("return a - n", "return a + n") == []


def test_what_does_not_parse_or_names_the_unknown_is_left_out() -> None:
    assert lines("return a", "return (x := n) + x") == []
    assert "return n +  1" not in lines("return a", "return [n for n in a]")


@pytest.mark.parametrize("after", ["", "return 1\n    return 2"])
def test_a_change_of_more_or_fewer_lines_is_left_as_it_is(after: str) -> None:
    assert smaller_changes("a.py", "args", text("return 0"), text(after)) == []
    assert smaller_changes("a.py", "args", text("return 0"), text("return 0") + "\n") == []


def test_so_many_parts_are_no_change_of_parts() -> None:
    many = MOST_PARTS + 1
    before = "return [" + ", ".join(["a"] * many) + "]"
    after = "return [" + ", ".join(["n"] * many) + "]"
    assert lines(before, after) == []
