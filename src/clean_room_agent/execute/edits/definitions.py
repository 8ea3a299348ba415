"""What a file's syntax says of an edit: where its definitions stand, and where it stops being readable."""

from clean_room_agent.execute.edits.scopes import SymbolSpan
from clean_room_agent.syntax import MAX_PARSED_BYTES, ParseGivenUp, grammar_of, parse, parses_cleanly

NAMED = frozenset(
    {
        "function_definition",
        "class_definition",
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "enum_declaration",
        "type_alias_declaration",
        "method_definition",
        "variable_declarator",
        "public_field_definition",
        "field_definition",
    }
)
WRAPPERS = frozenset(
    {"decorated_definition", "export_statement", "lexical_declaration", "variable_declaration"}
)
"""Nodes that belong to the definition they hold: its decorators, its `export`, its `const`."""
AFTER_DEFINITION = " \t\r;,"


def definition_spans(path: str, text: str) -> tuple[SymbolSpan, ...]:
    """Each definition that has its lines to itself, by qualified name (`Class.method`), in order of place.

    Empty where no grammar fits the file, or it is too much to parse. A name may occur more than once (overloads, conditional definitions).
    """
    grammar = grammar_of(path)
    source = _encoded(text)
    if grammar is None or len(source) > MAX_PARSED_BYTES:
        return ()
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found = []
    try:
        root = parse(source, grammar).root_node
    except ParseGivenUp:
        return ()
    stack = [(root, root, "")]
    while stack:
        node, outer, prefix = stack.pop()
        inside = prefix
        name_node = node.child_by_field_name("name") if node.type in NAMED else None
        if name_node is not None and name_node.text is not None:
            inside = f"{prefix}.{name_node.text.decode('utf-8', 'replace')}".removeprefix(".")
            first, last = outer.start_point.row, outer.end_point.row
            before = _column(lines[first], outer.start_point.column, head=True)
            after = _column(lines[last], outer.end_point.column, head=False)
            if not before.strip() and not after.strip(AFTER_DEFINITION):
                found.append(
                    SymbolSpan(symbol=inside, start=starts[first], end=starts[last] + len(lines[last]))
                )
        stack.extend(
            (child, outer if node.type in WRAPPERS else child, inside)
            for child in reversed(node.named_children)
        )
    return tuple(sorted(found, key=lambda span: (span.start, -span.end, span.symbol)))


def syntax_fault(path: str, before: str, after: str) -> str:
    """Where `after` stops being readable, in words, if `before` could be read and `after` cannot; else ""."""
    source = _encoded(after)
    if parses_cleanly(_encoded(before), path) is not True or parses_cleanly(source, path) is not False:
        return ""
    grammar = grammar_of(path)
    assert grammar is not None
    node = parse(source, grammar).root_node
    while True:
        bad = next((child for child in node.children if child.has_error or child.is_missing), None)
        if bad is None:
            break
        node = bad
        if node.is_error or node.is_missing:
            break
    row = node.start_point.row
    line = after.split("\n")[row].strip()
    return f"the file no longer parses; the first syntax error is at line {row + 1}: {line[:200]}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _column(line: str, column: int, *, head: bool) -> str:
    """The line before or behind a column counted in bytes."""
    data = line.encode("utf-8", "replace")
    return (data[:column] if head else data[column:]).decode("utf-8", "replace")
