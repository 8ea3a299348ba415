"""Go. What reads files is imported when one is read."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from clean_room_agent.languages.base import Language, Modules, ReadText
from clean_room_agent.languages.nodes import Nodes

if TYPE_CHECKING:
    from tree_sitter import Node

    from clean_room_agent.languages.interface import FileNames
    from clean_room_agent.languages.nesting import Nested
    from clean_room_agent.languages.outline import Outliner
    from clean_room_agent.languages.parsed import ParsedFile


STANDARD_NAMES = "Close Error Len Less Lock Next Read Reset Run Scan String Swap Unlock Write"
STANDARD_METHODS = frozenset(STANDARD_NAMES.split())

NODES = Nodes(
    sequences=frozenset(
        {"source_file", "statement_list", "argument_list", "literal_value", "field_declaration_list"}
        | {"interface_type", "import_spec_list", "var_spec_list", "const_declaration", "type_declaration"}
    ),
    statements=frozenset({"source_file", "statement_list"}),
    statement_lists=frozenset({"statement_list"}),
    bodies=frozenset({"block"}),
    blocks=frozenset({"block"}),
    strings=frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"}),
    imports=frozenset({"import_declaration"}),
    definitions=frozenset(
        {"function_declaration", "method_declaration", "type_spec", "type_alias", "const_spec", "var_spec"}
    ),
    wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
    functions=frozenset({"function_declaration", "method_declaration", "func_literal"}),
    nameless=frozenset({"func_literal"}),
    members=frozenset({"method_declaration"}),
    ends=frozenset({"return_statement"}),
    calls=frozenset({"call_expression"}),
    arguments=frozenset({"argument_list"}),
    parts={
        "if_statement": ("condition",),
        "for_clause": ("condition",),
        "range_clause": ("right",),
        "assignment_statement": ("right",),
        "short_var_declaration": ("right",),
        "var_spec": ("value",),
    },
    first_parts=frozenset({"return_statement"}),
)


class Go(Language):
    """Go."""

    suffixes = {".go": "go"}
    names = {"go": "go"}
    nodes = NODES
    own_package = "."

    def load(self, grammar: str) -> object:
        import tree_sitter_go

        return tree_sitter_go.language()

    def query(self, grammar: str) -> str:
        from clean_room_agent.languages.go import declarations

        return declarations.QUERY

    def read(
        self, root: "Node", captures: "Mapping[str, Sequence[Node]]", source: bytes, grammar: str
    ) -> "ParsedFile":
        from clean_room_agent.languages.go import declarations

        return declarations.read(captures, source)

    def read_names(
        self, captures: "Mapping[str, Sequence[Node]]", source: bytes, nested: "Nested", parsed: "ParsedFile"
    ) -> "FileNames":
        from clean_room_agent.languages.go import uses

        return uses.read_names(captures["file"][0], source, nested, parsed)

    def common_members(self) -> frozenset[str]:
        """Methods of interfaces of the standard library."""
        return STANDARD_METHODS

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        from clean_room_agent.languages.go.packages import GoPackages

        return GoPackages(paths, read)

    def is_configuration(self, path: str) -> bool:
        """Whether it names a module."""
        return path.rpartition("/")[2] == "go.mod"

    def owner(self, definition: "Node") -> str:
        """The type of a method's receiver."""
        from clean_room_agent.languages.go.declarations import receiver_of

        return receiver_of(definition)

    def outliner(self) -> "Outliner":
        from clean_room_agent.languages.go.outline import GoOutliner

        return GoOutliner(NODES)
