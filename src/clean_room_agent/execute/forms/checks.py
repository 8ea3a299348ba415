"""What is wrong with a changed file as far as can be told without running it."""

import builtins
import re
import symtable
import warnings
from collections.abc import Iterator

from tree_sitter import Node

from clean_room_agent.execute.edits.definitions import definitions, syntax_fault
from clean_room_agent.execute.forms.place import Place, is_python, node_text, walk
from clean_room_agent.syntax import tree_of

BUILTINS = frozenset(dir(builtins)) | {
    "__file__", "__name__", "__doc__", "__path__", "__spec__", "__loader__", "__package__", "__annotations__",
    "__builtins__", "__class__", "__debug__", "__module__", "__qualname__", "__dict__", "WindowsError",
}  # fmt: skip
DECLARING = frozenset(
    {
        "variable_declarator", "function_declaration", "generator_function_declaration", "class_declaration",
        "abstract_class_declaration", "function_expression", "function", "class", "interface_declaration",
        "type_alias_declaration", "enum_declaration", "formal_parameters", "arrow_function", "catch_clause",
        "import_clause", "import_specifier", "namespace_import", "required_parameter", "optional_parameter",
        "type_parameter", "labeled_statement", "for_in_statement", "internal_module", "module",
    }
)  # fmt: skip
"""Nodes of ECMAScript whose identifiers, the values apart, are names that they declare."""
VALUES = frozenset({"value", "body", "right", "initializer", "type", "return_type", "parameters"})
KNOWN_GLOBALS = frozenset(
    {
        "undefined", "NaN", "Infinity", "globalThis", "Object", "Function", "Boolean", "Symbol", "Error",
        "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError", "Number",
        "BigInt", "Math", "Date", "String", "RegExp", "Array", "Int8Array", "Uint8Array", "Uint8ClampedArray",
        "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array",
        "BigUint64Array", "Map", "Set", "WeakMap", "WeakSet", "WeakRef", "ArrayBuffer", "SharedArrayBuffer", "Atomics",
        "DataView", "JSON", "Promise", "Reflect", "Proxy", "Intl", "eval", "isFinite", "isNaN", "parseFloat",
        "parseInt", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape",
        "arguments", "console", "process", "Buffer", "require", "module", "exports", "__dirname", "__filename",
        "global", "window", "document", "self", "navigator", "location", "fetch", "URL", "URLSearchParams",
        "setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate",
        "queueMicrotask", "structuredClone", "performance", "crypto", "TextEncoder", "TextDecoder", "AbortController",
        "AbortSignal", "Event", "EventTarget", "Blob", "File", "FormData", "Headers", "Request", "Response", "atob",
        "btoa", "Iterator", "FinalizationRegistry",
    }
)  # fmt: skip
"""Names that ECMAScript, browsers and node define."""


def static_fault(place: Place, before: str, after: str) -> str:
    """The first thing wrong with `after` that was not with `before`, in words; "" if nothing is.

    It parses; it defines what it defined outside of the place, and the place itself; no name is undefined that was not.
    """
    fault = syntax_fault(place.path, before, after) or _compile_fault(place.path, before, after)
    if fault:
        return fault
    lost = lost_definitions(place, before, after)
    if lost:
        return f"it no longer defines {lost[0]}"
    missing = undefined_names(place.path, after) - undefined_names(place.path, before)
    return f"nothing defines the name {min(missing)}" if missing else ""


def lost_definitions(place: Place, before: str, after: str) -> list[str]:
    """Names that `before` defines and `after` does not, those inside the place left out."""
    kept = {one.symbol for one in definitions(place.path, after)}
    inside = f"{place.name}."
    named = dict.fromkeys(one.symbol for one in definitions(place.path, before))
    return [name for name in named if name not in kept and not name.startswith(inside)]


def is_same_code(path: str, before: str, after: str) -> bool:
    """Whether two texts differ in nothing but comments, docstrings and white space between tokens."""
    return before == after or _tokens(path, before) == _tokens(path, after)


def undefined_names(path: str, text: str) -> frozenset[str]:
    """Names that are read in the file and that nothing in it, nor the language, defines.

    Empty where that cannot be told: no grammar, a syntax error, names imported all at once.
    """
    return _undefined_python(text) if is_python(path) else _undefined_ecmascript(path, text)


def _compile_fault(path: str, before: str, after: str) -> str:
    """Why Python cannot compile `after`, if it could compile `before`; "" for no reason."""
    if not is_python(path):
        return ""
    error = _compile_error(after)
    if error is None or _compile_error(before) is not None:
        return ""
    return f"the file cannot be compiled: {error.msg} in line {error.lineno or 0}"


def _compile_error(text: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or type(error).__name__)
    return None


def _undefined_python(text: str) -> frozenset[str]:
    if re.search(r"^\s*from\s+\S+\s+import\s+\*", text, re.MULTILINE):
        return frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(text, "<file>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    defined = {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    read: set[str] = set()
    waiting = [top]
    while waiting:
        table = waiting.pop()
        waiting.extend(table.get_children())
        for symbol in table.get_symbols():
            if symbol.is_declared_global() and (symbol.is_assigned() or symbol.is_imported()):
                defined.add(symbol.get_name())
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                read.add(symbol.get_name())
    return frozenset(read - defined - BUILTINS)


def _undefined_ecmascript(path: str, text: str) -> frozenset[str]:
    """Whatever the scope: names that are read somewhere and declared nowhere."""
    tree = tree_of(text.encode("utf-8", "replace"), path)
    if tree is None or tree.root_node.has_error:
        return frozenset()
    declared: set[str] = set()
    read: set[str] = set()
    for node in walk(tree.root_node):
        if node.type in DECLARING:
            declared.update(_declared(node))
        if node.type in {"identifier", "shorthand_property_identifier"}:
            read.add(node_text(node))
    return frozenset(read - declared - KNOWN_GLOBALS)


def _declared(node: Node) -> Iterator[str]:
    """The names that a declaration gives, those in patterns included."""
    waiting = [
        child
        for number, child in enumerate(node.children)
        if node.field_name_for_child(number) not in VALUES or node.type == "import_clause"
    ]
    parameter = node.child_by_field_name("parameter")
    while waiting:
        inner = waiting.pop()
        if inner.type in {"identifier", "shorthand_property_identifier_pattern", "type_identifier"}:
            yield node_text(inner)
        elif inner.type in {
            "object_pattern",
            "array_pattern",
            "rest_pattern",
            "pair_pattern",
            "named_imports",
        } or (inner.type in {"assignment_pattern", "object_assignment_pattern"}):
            waiting.extend(
                child
                for number, child in enumerate(inner.children)
                if inner.field_name_for_child(number) not in {"right", "key"}
            )
    if parameter is not None and parameter.type == "identifier":
        yield node_text(parameter)


def _tokens(path: str, text: str) -> list[str]:
    """What the language reads of the text: its tokens, and where blocks begin and end."""
    tree = tree_of(text.encode("utf-8", "replace"), path)
    if tree is None:
        return text.split()
    found: list[str] = []
    waiting: list[Node | str] = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            found.append(node)
        elif node.type == "comment" or _is_bare_string(node):
            continue
        elif not node.children or node.type in {"string", "template_string"}:
            found.append(node_text(node))
        elif node.type == "block":
            waiting.extend(("block ends", *reversed(node.children), "block begins"))
        else:
            waiting.extend(reversed(node.children))
    return found


def _is_bare_string(node: Node) -> bool:
    inside = node.named_children
    return node.type == "expression_statement" and len(inside) == 1 and inside[0].type == "string"
