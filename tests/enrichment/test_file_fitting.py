"""What of a file a prompt shows, as the window shrinks: whole things go, in a stated order, and it is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.enrichment.file_facts import Definition, FileFacts
from clean_room_agent.enrichment.file_fitting import brief, fit
from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentInputs
from clean_room_agent.llm.token_estimator import estimate

SOURCE = '''\
"""Sums of money."""

LIMIT = 3


class Purse:
    """Holds coins."""

    def put(self, coin):
        """Put a coin in.

        It must be round.
        """
        self.coins.append(coin)
        self.count = self.count + 1
        self.weight = self.weight + coin.weight
        self.value = self.value + coin.value
        self.last = coin

    def size(self):
        return 0


def empty(purse):
    purse.coins = []
    return purse
'''


def definition(name: str, kind: str, start: int, end: int, signature: str, doc: str = "") -> Definition:
    return Definition(
        name=name,
        kind=kind,
        depth=name.count("."),
        start_line=start,
        end_line=end,
        signature=signature,
        doc=doc,
    )


DEFINITIONS = (
    definition("LIMIT", "variable", 3, 3, "LIMIT = 3"),
    definition("Purse", "class", 6, 21, "class Purse:", "Holds coins."),
    definition("Purse.put", "method", 9, 18, "def put(self, coin):", "Put a coin in.\n\nIt must be round."),
    definition("Purse.size", "method", 20, 21, "def size(self):"),
    definition("empty", "function", 24, 26, "def empty(purse):"),
)


def facts(
    source: str = SOURCE,
    definitions: tuple[Definition, ...] = DEFINITIONS,
    *,
    unreadable: str = "",
    imports: tuple[str, ...] = ("a.py",),
    imported_by: tuple[str, ...] = ("b.py",),
) -> FileFacts:
    file = FileRow(
        id=1, path="purse.py", language="python", content_hash="h", size_bytes=len(source), parse_error=None
    )
    return FileFacts(
        file=file,
        lines=tuple(source.removesuffix("\n").split("\n")) if source else (),
        unreadable=unreadable,
        definitions=definitions,
        doc="Sums of money." if definitions else "",
        imports=imports,
        imported_by=imported_by,
        commits=("Begin",),
    )


def measure(inputs: EnrichmentInputs) -> int:
    return estimate(ENRICHMENT.render(inputs))


def fitted(max_tokens: int, of: FileFacts | None = None) -> EnrichmentInputs:
    return fit(of or facts(), max_tokens, measure, estimate)


WHOLE = measure(fitted(100_000))
LEAST = measure(fitted(0))


def test_where_it_fits_the_whole_text_is_shown_and_documentation_is_not_said_twice() -> None:
    view = fitted(WHOLE)
    assert (view.text, view.remark) == (SOURCE.removesuffix("\n"), "")
    assert view.outline == (
        "LIMIT = 3",
        "class Purse:",
        "    def put(self, coin):",
        "    def size(self):",
        "def empty(purse):",
    )
    assert (view.lines, view.outline_left_out) == (26, 0)


def test_the_largest_definition_goes_first_whole_and_its_documentation_stands_in_the_outline() -> None:
    view = fitted(WHOLE - 1)
    assert view.remark == "the text of one definition is left out, to fit; where, is marked with ..."
    assert "    ... Purse.put: lines 9-18 left out\n" in view.text
    assert "def put" not in view.text
    assert 'class Purse:\n    """Holds coins."""\n' in view.text
    assert "    def put(self, coin):\n        Put a coin in." in view.outline


def test_a_file_without_definitions_shows_its_first_whole_lines() -> None:
    lines = [f"line {number} of a long page" for number in range(300)]
    view = fitted(900, facts("\n".join(lines), ()))
    shown = view.text.split("\n")
    assert 0 < len(shown) < 300
    assert shown == lines[: len(shown)]
    assert view.remark == f"the first {len(shown)} of 300 lines; the rest does not fit"
    assert measure(view) <= 900


def test_a_single_line_that_does_not_fit_is_not_cut() -> None:
    view = fitted(900, facts("x " * 5000, ()))
    assert (view.text, view.remark) == ("", "it is too long to be shown")


def test_a_class_without_members_can_go_as_a_whole() -> None:
    source = "class Colour:\n" + "    # red\n" * 200 + "\n\ndef mix():\n    return 1\n"
    enum = definition("Colour", "class", 1, 201, "class Colour:")
    mix = definition("mix", "function", 204, 205, "def mix():")
    view = fitted(700, facts(source, (enum, mix)))
    assert view.text == "... Colour: lines 1-201 left out\n\n\ndef mix():\n    return 1"


def test_definitions_on_one_line_go_together() -> None:
    source = "first = second = " + "[1, 2, 3] + " * 400 + "[]\nlast = 1\n"
    pair = tuple(
        definition(name, "variable", 1, 1, source.split("\n", maxsplit=1)[0]) for name in ("first", "second")
    )
    view = fitted(900, facts(source, (*pair, definition("last", "variable", 2, 2, "last = 1"))))
    assert view.text == "... first: lines 1-1 left out\nlast = 1"
    assert view.outline == ("first (variable, lines 1-1)", "second (variable, lines 1-1)", "last = 1")


def test_a_file_that_is_no_text_says_why() -> None:
    view = fitted(5000, facts("", (), unreadable="binary (it holds NUL bytes)"))
    assert (view.text, view.lines) == ("", 0)
    assert view.remark == "it cannot be shown: binary (it holds NUL bytes)"


def test_neighbours_are_counted_beyond_the_first() -> None:
    many = tuple(f"m{number:03}.py" for number in range(50))
    view = fitted(5000, facts(imported_by=many, imports=()))
    assert view.imported_by == many[:20]
    assert (view.imported_by_left_out, view.imports_left_out) == (30, 0)
    assert "(and 30 more)" in ENRICHMENT.render(view)


def test_the_innermost_and_last_definitions_leave_the_outline_first() -> None:
    long = "\n".join("x = 1 + 2 + 3" for _ in range(300))
    wide = tuple(
        definition(name, "method", 30, 31, f"def {name}(one, two, three, four, five, six):")
        for name in (f"Purse.m{number}" for number in range(100))
    )
    view = fitted(900, facts(SOURCE + long, (*DEFINITIONS, *wide)))
    assert view.text == ""
    assert "class Purse:" in view.outline
    assert "def empty(purse):" in view.outline
    assert view.outline_left_out == 105 - len([entry for entry in view.outline if entry != "Sums of money."])
    assert view.outline_left_out > 0
    assert f"(and {view.outline_left_out} more definitions)" in ENRICHMENT.render(view)


def test_the_smallest_view_is_the_path() -> None:
    view = fitted(0)
    assert (view.text, view.outline, view.imports, view.commits) == ("", (), (), ())
    assert view.outline_left_out == len(DEFINITIONS)
    assert view.path == "purse.py"


def test_the_brief_view_has_no_text() -> None:
    view = brief(facts())
    assert (view.text, view.remark) == ("", "it is too long to be shown")
    assert len(view.outline) == len(DEFINITIONS) + 1


@given(st.integers(min_value=LEAST, max_value=WHOLE + 10))
def test_whatever_the_bound_the_request_fits_and_no_line_is_cut(max_tokens: int) -> None:
    view = fitted(max_tokens)
    assert measure(view) <= max_tokens
    lines = set(SOURCE.split("\n"))
    left = [line for line in view.text.split("\n") if line not in lines]
    assert all(line.strip().startswith("... ") for line in left)
    assert bool(left) == ("left out" in view.remark)


@pytest.mark.parametrize("max_tokens", [LEAST, (LEAST + WHOLE) // 2, WHOLE])
def test_the_same_file_and_bound_give_the_same_view(max_tokens: int) -> None:
    assert fitted(max_tokens) == fitted(max_tokens)
