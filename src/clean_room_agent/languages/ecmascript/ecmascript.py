"""JavaScript and TypeScript, with JSX. What reads files is imported when one is read."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clean_room_agent.languages.base import Language, Modules, ReadText
from clean_room_agent.languages.ecmascript.nodes import NODES

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from clean_room_agent.languages.docstrings import DocFormat
    from clean_room_agent.languages.interface import FileNames
    from clean_room_agent.languages.nesting import Nested
    from clean_room_agent.languages.outline import Outliner
    from clean_room_agent.languages.parsed import ParsedFile


class EcmaScript(Language):
    """JavaScript and TypeScript, with JSX."""

    suffixes = {
        **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "javascript"),
        **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
        ".tsx": "tsx",
    }
    names = {"javascript": "javascript", "typescript": "typescript", "tsx": "typescript"}
    explicit_exports = True
    nodes = NODES

    def load(self, grammar: str) -> object:
        if grammar == "javascript":
            import tree_sitter_javascript

            return tree_sitter_javascript.language()
        import tree_sitter_typescript as typescript

        return typescript.language_tsx() if grammar == "tsx" else typescript.language_typescript()

    def query(self, grammar: str) -> str:
        from clean_room_agent.languages.ecmascript import declarations, references

        return declarations.query(grammar) + references.query(grammar)

    def read(
        self, root: "Node", captures: "Mapping[str, Sequence[Node]]", source: bytes, grammar: str
    ) -> "ParsedFile":
        from clean_room_agent.languages.ecmascript import declarations

        return declarations.read(root, captures, source, typed=grammar != "javascript")

    def read_names(
        self, captures: "Mapping[str, Sequence[Node]]", source: bytes, nested: "Nested", parsed: "ParsedFile"
    ) -> "FileNames":
        from clean_room_agent.languages.ecmascript import references

        return references.read_names(captures, source, nested)

    def read_documentation(self, text: str) -> "tuple[DocFormat, str | None]":
        from clean_room_agent.languages.docstrings import read_jsdoc

        return read_jsdoc(text)

    def common_members(self) -> frozenset[str]:
        """Members of built-in objects and of the DOM."""
        from clean_room_agent.languages.ecmascript.references import COMMON_MEMBERS

        return COMMON_MEMBERS

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        from clean_room_agent.languages.ecmascript.specifiers import EcmaScriptModules

        return EcmaScriptModules(paths, read)

    def is_configuration(self, path: str) -> bool:
        """Whether it is a manifest or a configuration of TypeScript."""
        from clean_room_agent.languages.ecmascript.specifiers import is_configuration

        return is_configuration(path)

    def outliner(self) -> "Outliner":
        from clean_room_agent.languages.ecmascript.suites import ScriptOutliner

        return ScriptOutliner(NODES)

    def undefined_names(
        self, before: str, after: str, parse: "Callable[[str], Tree | None]"
    ) -> Mapping[str, int]:
        """By the trees, as far as it is certain."""
        from clean_room_agent.languages.ecmascript.undefined_names import undefined_names

        return undefined_names(parse(before), parse(after))

    def stated_test(self, call: str, wanted: str, error: str) -> str:
        """As Node's own `assert` has it."""
        return (
            f"assert.throws(() => {call}, {error});"
            if error
            else f"assert.deepStrictEqual({call}, {wanted});"
        )

    def stated_examples(self, summary: str, examples: Iterable[tuple[str, str, str]]) -> list[str]:
        """As a JSDoc comment has them."""
        shown = [f" * {call} // => {' '.join(wanted.split())[:200]}" for call, wanted, _ in examples]
        return ["/**", " * @example", *shown, " */"]
