"""Python, with its stubs. What reads files is imported when one is read: most commands only ask for suffixes and nodes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clean_room_agent.languages.base import Language, Modules, ReadText
from clean_room_agent.languages.nodes import Nodes

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from clean_room_agent.languages.docstrings import DocFormat
    from clean_room_agent.languages.interface import FileNames
    from clean_room_agent.languages.mutation import Mutation
    from clean_room_agent.languages.nesting import Nested
    from clean_room_agent.languages.outline import Outliner
    from clean_room_agent.languages.parsed import ParsedFile

NODES = Nodes(
    sequences=frozenset({"module", "block", "list", "tuple", "set", "dictionary", "argument_list"}),
    statements=frozenset({"module", "block"}),
    bodies=frozenset({"block"}),
    blocks=frozenset({"block"}),
    strings=frozenset({"string", "concatenated_string"}),
    imports=frozenset({"import_statement", "import_from_statement", "future_import_statement"}),
    guards=frozenset({"if_statement", "try_statement"}),
    definitions=frozenset({"function_definition", "class_definition"}),
    wrappers=frozenset({"decorated_definition"}),
    classes=frozenset({"class_definition"}),
    functions=frozenset({"function_definition"}),
    ends=frozenset({"return_statement", "raise_statement"}),
    assignments=frozenset({"assignment"}),
    calls=frozenset({"call"}),
    arguments=frozenset({"argument_list", "tuple"}),
    parts={
        "if_statement": ("condition",),
        "elif_clause": ("condition",),
        "while_statement": ("condition",),
        "for_statement": ("right",),
        "assignment": ("right",),
        "augmented_assignment": ("right",),
    },
    handlers=frozenset({"except_clause", "except_group_clause"}),
    first_parts=frozenset({"return_statement", "yield", "raise_statement", "await", "assert_statement"}),
    indented=True,
    comment="#",
)


class Python(Language):
    """Python, with its stubs."""

    suffixes = {".py": "python", ".pyi": "python"}
    names = {"python": "python"}
    nodes = NODES

    def load(self, grammar: str) -> object:
        import tree_sitter_python

        return tree_sitter_python.language()

    def query(self, grammar: str) -> str:
        from clean_room_agent.languages.python import definitions, references

        return definitions.QUERY + references.QUERY

    def read(
        self, root: "Node", captures: "Mapping[str, Sequence[Node]]", source: bytes, grammar: str
    ) -> "ParsedFile":
        from clean_room_agent.languages.python import definitions

        return definitions.read(root, captures, source)

    def read_names(
        self, captures: "Mapping[str, Sequence[Node]]", source: bytes, nested: "Nested", parsed: "ParsedFile"
    ) -> "FileNames":
        from clean_room_agent.languages.python import references

        return references.read_names(captures, source, nested, parsed.imports)

    def read_documentation(self, text: str) -> "tuple[DocFormat, str | None]":
        from clean_room_agent.languages.docstrings import read_docstring

        return read_docstring(text)

    def common_members(self) -> frozenset[str]:
        """Attributes of built-in types."""
        from clean_room_agent.languages.python.references import COMMON_MEMBERS

        return COMMON_MEMBERS

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        from clean_room_agent.languages.python.modules import PythonModules

        return PythonModules(paths)

    def outliner(self) -> "Outliner":
        from clean_room_agent.languages.python.fixtures import PythonOutliner

        return PythonOutliner(NODES)

    def undefined_names(
        self, before: str, after: str, parse: "Callable[[str], Tree | None]"
    ) -> Mapping[str, int]:
        """By the symbol tables of the running Python."""
        from clean_room_agent.languages.python.own_compiler import undefined_names

        known, now = undefined_names(before), undefined_names(after)
        return {} if known is None or now is None else {one: now[one] for one in now if one not in known}

    def syntax_error(self, before: str, after: str) -> tuple[int, str] | None:
        """By the running Python, unless the text may be newer."""
        from clean_room_agent.languages.python.own_compiler import may_be_newer, syntax_error

        if syntax_error(before) is not None:
            return None
        error = syntax_error(after)
        if error is not None and may_be_newer(after, error):
            return None
        return (1, "") if error is None else (error.lineno or 1, error.msg)

    def stated_test(self, call: str, wanted: str, error: str) -> str:
        """As pytest reads it."""
        return f"with pytest.raises({error}):\n    {call}" if error else f"assert {call} == {wanted}"

    def stated_examples(self, summary: str, examples: Iterable[tuple[str, str, str]]) -> list[str]:
        """As doctest reads them."""
        lines = [f'"""{summary}', ""] if summary else ['"""']
        for call, wanted, error in examples:
            raised = ["Traceback (most recent call last):", f"{error}: ..."]
            lines += [f">>> {call}", *(raised if error else wanted.splitlines()[:6])]
        return [*lines, '"""']

    def mutations(self, text: str) -> "list[Mutation]":
        """Comparisons, numbers, statements, names, arguments and keys; none of a file that does not parse."""
        from clean_room_agent.languages.python.mutations import mutations

        try:
            return mutations(text)
        except SyntaxError:
            return []
