"""The tests that the text of a Python file has, for files that cannot be loaded: what the runner would find is unknown then."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from clean_room_agent.syntax import grammar_of, tree_of

MAY_SKIP = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
NOT_COLLECTED = re.compile(r"\b__test__\s*=|\bdef __init__\b")
DECLARED = re.compile(r"^\s*(?:it|test|describe|suite|specify|context)\b[.\w]*\(", re.MULTILINE)
DEFINITIONS = frozenset({"function_definition", "class_definition", "decorated_definition"})


def written_tests(path: str, source: bytes, *, unittest: bool) -> dict[str, bool]:
    """Test by name (`path::Class::test`, without parameters) -> whether it runs in any case: nothing in its text, nor
    in that of its class and its module, is about skipping or expected failures. With `unittest`, only what that collects.

    Inherited tests, those in other places than a module or a class of it, and those that the repository's own settings
    name differently are not found. Empty for a file that is not Python or cannot be parsed.
    """
    tree = tree_of(source, path) if grammar_of(path) == "python" else None
    if tree is None:
        return {}
    loose = [_text(node, source) for node in tree.root_node.named_children if node.type not in DEFINITIONS]
    return {
        "::".join((path, *names)): sure and not MAY_SKIP.search("\n".join(loose))
        for names, sure in _tests(tree.root_node, source, unittest=unittest)
    }


def declares_tests(path: str, source: bytes) -> bool:
    """Whether the text has tests, whatever the file is called."""
    if grammar_of(path) == "python":
        return bool(written_tests(path, source, unittest=False))
    return grammar_of(path) is not None and DECLARED.search(source.decode("utf-8", "replace")) is not None


def _tests(root: Node, source: bytes, *, unittest: bool) -> Iterator[tuple[tuple[str, ...], bool]]:
    for node in root.named_children:
        definition = node.child_by_field_name("definition") or node
        name = _text(definition.child_by_field_name("name"), source)
        if definition.type == "function_definition" and not unittest and _is_test(node, definition, source):
            yield (name,), not MAY_SKIP.search(_text(node, source))
        elif definition.type == "class_definition":
            bases = _text(definition.child_by_field_name("superclasses"), source)
            is_case = re.search(r"Case\b", bases) is not None
            if not is_case and (unittest or not name.startswith("Test")):
                continue
            if NOT_COLLECTED.search(_text(definition, source)):
                continue
            yield from (((name, *inner), sure) for inner, sure in _methods(node, definition, source))


def _methods(node: Node, definition: Node, source: bytes) -> Iterator[tuple[tuple[str, ...], bool]]:
    body = definition.child_by_field_name("body")
    members = body.named_children if body is not None else []
    head = source[node.start_byte : definition.start_byte].decode("utf-8", "replace")
    loose = [head, *(_text(one, source) for one in members if one.type not in DEFINITIONS)]
    skips = MAY_SKIP.search("\n".join(loose)) is not None
    for member in members:
        method = member.child_by_field_name("definition") or member
        if method.type != "function_definition":
            continue
        text = _text(member, source)
        name = _text(method.child_by_field_name("name"), source)
        if _is_test(member, method, source):
            yield (name,), not (skips or MAY_SKIP.search(text))
        elif name.startswith(("setUp", "setup")) and MAY_SKIP.search(text):
            skips = True


def _is_test(node: Node, function: Node, source: bytes) -> bool:
    """Whether the name says so, and no decorator makes it a fixture."""
    head = source[node.start_byte : function.start_byte].decode("utf-8", "replace")
    return (
        _text(function.child_by_field_name("name"), source).startswith("test")
        and re.search(r"\bfixture\b", head) is None
    )


def _text(node: Node | None, source: bytes) -> str:
    return "" if node is None else source[node.start_byte : node.end_byte].decode("utf-8", "replace")
