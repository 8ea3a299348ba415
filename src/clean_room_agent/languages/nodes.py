"""What a language's grammars call the nodes that contexts, edits and candidates look for."""

from collections.abc import Mapping

from msgspec import Struct

NONE: frozenset[str] = frozenset()


class Nodes(Struct, frozen=True, kw_only=True):
    """Types of nodes, by what they are."""

    sequences: frozenset[str] = NONE
    """Their children can be read one at a time: statements, members, elements."""
    statements: frozenset[str] = NONE
    """Their children are statements."""
    statement_lists: frozenset[str] = NONE
    """What a block holds in the place of statements, where grammars put one more node around these."""
    bodies: frozenset[str] = NONE
    """What a statement's head is followed by."""
    blocks: frozenset[str] = NONE
    """Bodies of functions."""
    strings: frozenset[str] = NONE
    imports: frozenset[str] = NONE
    guards: frozenset[str] = NONE
    """A short one at the top level that holds an import exists for that import."""
    definitions: frozenset[str] = NONE
    """What has a name and lines of its own."""
    wrappers: frozenset[str] = NONE
    """They belong to the definition they hold: its decorators, its `export`, its `const`."""
    declarations: frozenset[str] = NONE
    """Those of the wrappers that declare variables."""
    overloads: frozenset[str] = NONE
    """Each is above the definition that it belongs to."""
    classes: frozenset[str] = NONE
    class_bodies: frozenset[str] = NONE
    """In braces."""
    functions: frozenset[str] = NONE
    nameless: frozenset[str] = NONE
    """Functions that have a name only by what they are assigned to."""
    naming: frozenset[str] = NONE
    """What gives a nameless function its name."""
    members: frozenset[str] = NONE
    """Definitions that only a class or an object holds."""
    ends: frozenset[str] = NONE
    """Statements after which no other of the block runs."""
    handlers: frozenset[str] = NONE
    """What catches what their parent's `body` raises."""
    assignments: frozenset[str] = NONE
    """What gives names at the top level, besides definitions."""
    calls: frozenset[str] = NONE
    arguments: frozenset[str] = NONE
    parts: Mapping[str, tuple[str, ...]] = {}
    """Node -> the fields that may be wrong by themselves: a condition, what is assigned."""
    first_parts: frozenset[str] = NONE
    """Nodes whose first child may be."""
    indented: bool = False
    """Whether blocks are told by indentation alone, and a string may document what it begins."""
    comment: str = "//"
    """What begins a comment that goes to the end of its line."""
    requires: bytes = b""
    """The call in a declaration that makes it an import."""
