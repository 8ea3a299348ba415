"""Symbols as we read them, against Python's `ast`, the TypeScript compiler, and universal-ctags.

    python -m benchmarks.symbols --repository NAME=FOLDER [--repository ...] --work FOLDER

from the repository's root. Compared are functions, classes, methods, interfaces, type aliases and enums, each with its
first and last line. The work folder gets the TypeScript compiler where it does not hold one (`npm install`).
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.results import table, write_section
from benchmarks.symbols.compare import Comparison, Difference, Reason, compare
from benchmarks.symbols.peers import Named, Thing, by_ast, by_ctags, by_typescript
from benchmarks.symbols.reasons import CTAGS, SYNTAX
from clean_room_agent import syntax
from clean_room_agent.git.repository import list_files
from clean_room_agent.indexer.extract import FileFacts, extract

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Symbols against ctags, ast and the TypeScript compiler"
TARGET = 99.5
ONLY_OURS = (
    "Named by us only, beside those of other lines: functions that an assignment (`this.on = () => …`) or an object's key "
    "binds, which for the compiler are expressions; and what ctags misses."
)
COMPARED = frozenset({"function", "class", "method", "interface", "type_alias", "enum"})


def main() -> None:
    """Compare, print, write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repository", action="append", default=[], metavar="NAME=FOLDER", required=True)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the TypeScript compiler")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    parser.add_argument("--show", type=int, default=0, help="print so many unexplained differences a peer")
    options = parser.parse_args()
    found: list[tuple[str, str, Comparison, Sequence[Reason]]] = []
    for repository in options.repository:
        name, _, folder = repository.partition("=")
        for peer, compared, reasons in _compare(Path(folder), options.work):
            found.append((name, peer, compared, reasons))
            for one in compared.explained(reasons).get("", [])[: options.show]:
                print(name, peer, one)
            for path, thing in compared.only_ours[: options.show]:
                print(name, peer, "only ours", path, thing)
    body = section(found)
    print(body)
    if not options.dry_run:
        write_section(RESULTS, TITLE, body)


def _compare(top: Path, work: Path) -> Iterator[tuple[str, Comparison, Sequence[Reason]]]:
    paths = [path for path in list_files(top) if syntax.grammar_of(path) is not None]
    python = [path for path in paths if syntax.grammar_of(path) == "python"]
    script = [path for path in paths if syntax.grammar_of(path) != "python"]
    if len(python) >= len(script):
        ours, judge, peer = our_symbols(top, python), by_ast(top, python), "ast"
        second = by_ctags(top, python)
    else:
        ours, judge, peer = our_symbols(top, script), by_typescript(top, script, work), "TypeScript"
        second = by_ctags(top, script)
    read = {path: things for path, things in second.items() if path in judge}

    def lines(path: str) -> list[str]:
        return (top / path).read_text(encoding="utf-8", errors="replace").splitlines()

    yield peer, compare(ours, judge, lines=lines), SYNTAX
    yield "ctags", compare(ours, read, lines=lines, judge=judge), CTAGS


def our_symbols(top: Path, paths: Sequence[str]) -> Named:
    """What the index would hold of the kinds that are compared."""
    named: Named = {}
    for path in paths:
        facts = extract(top, path, max_bytes=syntax.MAX_PARSED_BYTES)
        if isinstance(facts, FileFacts):
            named[path] = [
                Thing(one.name, one.kind, one.start_line, one.end_line)
                for one in facts.symbols
                if one.kind in COMPARED
            ]
    return named


def section(found: Sequence[tuple[str, str, Comparison, Sequence[Reason]]]) -> str:
    """The section's text: agreement, then each kind of difference with an example and its reason."""
    rows, differences = [], []
    whys: dict[str, str] = {}
    for name, peer, compared, reasons in found:
        explained = compared.explained(reasons)
        subtracted = sum(len(explained.get(one.title, [])) for one in reasons if one.is_subtracted)
        share = compared.share(reasons)
        rows.append(
            (
                name,
                peer,
                f"{compared.named:,}",
                f"{subtracted:,}",
                f"{compared.agreed:,}",
                f"{share:.2f} %" if share >= TARGET else f"**{share:.2f} %**",
                f"{len(compared.only_ours):,}",
            )
        )
        for reason in reasons:
            if some := explained.get(reason.title):
                whys[reason.title] = reason.why
                left = "yes" if reason.is_subtracted else "no"
                differences.append((name, peer, reason.title, _example(some[0]), left, f"{len(some):,}"))
        if some := explained.get(""):
            differences.append((name, peer, "**unexplained**", _example(some[0]), "no", f"{len(some):,}"))
    head = ("repository", "peer", "named by the peer", "left out", "agreed", "agreement", "named by us only")
    intro = (
        "A symbol agrees that has the same name, kind, first line (decorators included) and last line; ctags says "
        "nothing of decorators, so its line must lie within ours and its last line be the same. "
        f"Left out are the differences that the second table says are. Target: {TARGET} %."
    )
    lines = [
        intro,
        "",
        table(head, rows),
        "",
        table(("repository", "peer", "difference", "example", "left out", "count"), differences),
        "",
        ONLY_OURS,
        "",
        *(f"- **{title}**: {why}" for title, why in whys.items()),
    ]
    return "\n".join(lines)


def _example(one: Difference) -> str:
    lines = f"{one.theirs.start}-{one.theirs.end}" if one.theirs.end else f"{one.theirs.start}"
    ours = "" if one.ours is None else f", ours {one.ours.kind} {one.ours.start}-{one.ours.end}"
    return f"`{one.path}` {one.theirs.kind} `{one.theirs.name}` {lines}{ours}"


if __name__ == "__main__":
    main()
