from benchmarks.real.goals import Found, enclosing, page

TEXT = """
import re

class Parser:
    def parse(self, text):
        def part(at):
            return text[at]
        return part(0)
"""


def test_a_line_is_in_its_innermost_definition() -> None:
    assert [enclosing(TEXT, line) for line in (2, 4, 5, 7, 8)] == [
        "",
        "Parser",
        "Parser.parse",
        "Parser.parse.part",
        "Parser.parse",
    ]


def test_tables_count_tasks() -> None:
    found = [
        Found(task="a", sources=("stated", "stated"), wrong=(), places=4, rank=1),
        Found(task="b", sources=("stated", "documented"), wrong=("f(1)",), places=9, rank=0),
        Found(task="c", sources=(), wrong=(), places=0, rank=0),
    ]
    text = page(found)
    assert "3 tasks, of which 2 get a goal test (67 %)." in text
    assert "| from stated | 2 |" in text
    assert "| any | 2 | 1 |" in text
    assert "| first | 1 |" in text
    assert text.endswith("- b: wrong: f(1)")
