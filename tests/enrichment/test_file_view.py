from msgspec.structs import replace

from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.enrichment.file_view import KnownFile, fit
from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentInputs


def symbol(number: int, name: str, first: int, last: int, kind: str = "function") -> SymbolRow:
    return SymbolRow(
        id=number, file_id=1, name=name.rpartition(".")[2], qualified_name=name, kind=kind, start_line=first,
        end_line=last, signature=f"def {name.rpartition('.')[2]}():", parent_symbol_id=None,
    )  # fmt: skip


FACTS = KnownFile(
    file=FileRow(id=1, path="till.py", language="python", content_hash="", size_bytes=9, parse_error=None),
    lines=(
        "def add():",
        "    '''Adds.",
        "",
        "    Slowly.'''",
        "",
        "class Cart:",
        "    def total():",
        "        pass",
    ),
    unreadable="",
    symbols=(symbol(1, "add", 1, 4), symbol(2, "Cart", 6, 8, "class"), symbol(3, "Cart.total", 7, 8)),
    docs={None: "A till.", 1: "Adds.\n\nSlowly."},
    imports=(),
    imported_by=tuple(f"m{number:02}.py" for number in range(25)),
    commits=("Begin",),
)


def measure(inputs: EnrichmentInputs) -> int:
    return len(ENRICHMENT.render(inputs))


def view(most: int, facts: KnownFile = FACTS) -> EnrichmentInputs:
    return fit(facts, most, measure)


def test_what_fits_is_shown_whole() -> None:
    whole = view(1 << 20)
    assert whole.text.split("\n") == list(FACTS.lines)
    assert whole.outline == ("def add():", "def Cart():", "    def total():")
    assert (len(whole.imported_by), whole.imported_by_left_out, whole.remark) == (20, 5, "")


def test_what_does_not_fit_is_an_outline_with_first_paragraphs() -> None:
    short = view(measure(view(1 << 20)) - 1)
    assert short.text == ""
    assert short.outline == ("A till.", "def add():\n    Adds.", "def Cart():", "    def total():")
    assert short.remark == "it is too long to be shown"


def test_of_a_longer_outline_the_outermost_definitions_stay() -> None:
    methods = tuple(symbol(number, f"Cart.total_{number}", 7, 8) for number in range(3, 30))
    facts = replace(FACTS, docs={}, symbols=(*FACTS.symbols[:2], *methods))
    few = view(measure(view(0, facts)) + 30, facts)
    assert few.outline == ("def add():", "def Cart():")
    assert few.outline_left_out == len(methods)
    assert view(0, facts).outline == ()


def test_of_a_text_without_definitions_the_first_lines_are_shown() -> None:
    facts = replace(FACTS, symbols=(), docs={}, lines=tuple(f"line {number}" for number in range(100)))
    short = view(measure(view(1 << 20, facts)) - 1, facts)
    assert short.text.startswith("line 0\nline 1\n")
    assert short.remark.startswith("the first 9")


def test_a_file_that_is_no_text_says_why() -> None:
    assert view(1 << 20, replace(FACTS, lines=(), unreadable="binary")).remark == "it cannot be shown: binary"
