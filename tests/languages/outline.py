"""What is read from a file, as tables that a person can read: `python -m tests.languages.outline FILE` prints one."""

import sys
from pathlib import Path

from tree_sitter import Query, QueryCursor

from clean_room_agent import syntax
from clean_room_agent.languages.comments import classify
from clean_room_agent.languages.nesting import Nested, nest
from clean_room_agent.languages.parsed import ParsedFile
from clean_room_agent.languages.registry import BY_GRAMMAR


def read(text: str, name: str) -> tuple[ParsedFile, Nested]:
    grammar = syntax.grammar_of(name)
    assert grammar is not None
    source = text.encode()
    root = syntax.parse(source, grammar).root_node
    reader = BY_GRAMMAR[grammar]
    captures = QueryCursor(Query(syntax.language(grammar), reader.query(grammar))).captures(root)
    parsed = reader.read(root, captures, source, grammar)
    return parsed, nest(parsed.definitions)


def table_of(path: Path) -> str:
    """Symbols, documentation, comments and imports of a file."""
    text = path.read_text(encoding="utf-8")
    parsed, nested = read(text, path.name.removesuffix(".txt"))
    lines = ["lines    kind        symbol", ""]
    for one, kind, name in zip(nested.definitions, nested.kinds, nested.names, strict=True):
        lines.append(f"{f'{one.start_line}-{one.end_line}':<8} {kind:<11} {name}")
    lines.append("\nsignatures of more than one line, or not as they begin in their line\n")
    rows = text.split("\n")
    for one, name in zip(nested.definitions, nested.names, strict=True):
        if not rows[one.start_line - 1].strip().startswith(one.signature):
            lines.append(f"{name}: {one.signature!r}")
    lines.append("\ndocumentation\n")
    docs = [("(module)", parsed.module_doc)]
    docs.extend(zip(nested.names, (one.doc for one in nested.definitions), strict=True))
    lines.extend(f"{name}: {doc!r}" for name, doc in docs if doc)
    lines.append("\ncomments\n")
    for comment in parsed.comments:
        kind, gives_reason = classify(comment.text)
        lines.append(f"{comment.line:<4} {kind:<10} {'reason' if gives_reason else '':<7} {comment.text!r}")
    lines.append("\nimports\n")
    for written in parsed.imports:
        line = text.encode()[: written.start].count(b"\n") + 1
        taken = ", ".join(
            name if name == alias else f"{name} as {alias}"
            for name, alias in zip(
                written.names or ("",), written.aliases or written.names or ("",), strict=True
            )
        )
        lines.append(f"{line:<4} {written.kind:<9} {written.target:<24} {taken}".rstrip())
    return "\n".join(line.rstrip() for line in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table_of(Path(sys.argv[1])))
