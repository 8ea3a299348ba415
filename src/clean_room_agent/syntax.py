"""tree-sitter parsers by language: the one place that loads grammars."""

from functools import cache
from pathlib import PurePosixPath

from tree_sitter import Language, Parser, Tree

SUFFIXES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
}
MAX_PARSED_BYTES = 1_000_000
"""A parse cannot be aborted and memory grows with it: larger files are text only."""


def grammar_of(path: str) -> str | None:
    """The grammar for a path by its suffix: python, javascript, typescript, tsx; None where there is none."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())


@cache
def language(grammar: str) -> Language:
    """The loaded grammar."""
    if grammar == "python":
        import tree_sitter_python as module  # noqa: PLC0415 - a grammar is loaded when a file needs it

        return Language(module.language())
    if grammar == "javascript":
        import tree_sitter_javascript as module_js  # noqa: PLC0415

        return Language(module_js.language())
    import tree_sitter_typescript as module_ts  # noqa: PLC0415

    return Language(module_ts.language_tsx() if grammar == "tsx" else module_ts.language_typescript())


def parse(source: bytes, grammar: str) -> Tree:
    """The syntax tree of `source`; it may hold error nodes."""
    return Parser(language(grammar)).parse(source)


def parses_cleanly(source: bytes, path: str) -> bool | None:
    """Whether the file has no syntax error; None where no grammar fits or it is too large to ask."""
    grammar = grammar_of(path)
    if grammar is None or len(source) > MAX_PARSED_BYTES:
        return None
    return not parse(source, grammar).root_node.has_error
