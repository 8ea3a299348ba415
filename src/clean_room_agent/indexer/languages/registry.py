"""Language readers by tree-sitter grammar, and the names of languages by suffix for all other text files."""

from pathlib import PurePosixPath

from clean_room_agent import syntax
from clean_room_agent.indexer.languages.ecmascript import EcmaScriptReader
from clean_room_agent.indexer.languages.parsed import LanguageReader
from clean_room_agent.indexer.languages.python import PythonReader

READERS: dict[str, LanguageReader] = {
    "python": PythonReader(),
    "javascript": EcmaScriptReader(typed=False),
    "typescript": EcmaScriptReader(typed=True),
    "tsx": EcmaScriptReader(typed=True),
}
LANGUAGES = {"tsx": "typescript"}
"""Grammars that are not called as their language."""
TEXT_BY_SUFFIX = {
    ".adoc": "asciidoc",
    ".bat": "batch",
    ".c": "c",
    ".cc": "cpp",
    ".cfg": "ini",
    ".clj": "clojure",
    ".conf": "ini",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".csv": "csv",
    ".cxx": "cpp",
    ".dart": "dart",
    ".ex": "elixir",
    ".exs": "elixir",
    ".go": "go",
    ".gradle": "gradle",
    ".graphql": "graphql",
    ".h": "c",
    ".hpp": "cpp",
    ".hs": "haskell",
    ".htm": "html",
    ".html": "html",
    ".ini": "ini",
    ".ipynb": "notebook",
    ".java": "java",
    ".jinja": "template",
    ".jinja2": "template",
    ".j2": "template",
    ".json": "json",
    ".json5": "json",
    ".jsonl": "json",
    ".kt": "kotlin",
    ".less": "css",
    ".lua": "lua",
    ".m": "objective-c",
    ".md": "markdown",
    ".mdx": "markdown",
    ".php": "php",
    ".pl": "perl",
    ".po": "translation",
    ".proto": "protobuf",
    ".ps1": "powershell",
    ".pxd": "cython",
    ".pyx": "cython",
    ".r": "r",
    ".rb": "ruby",
    ".rs": "rust",
    ".rst": "restructuredtext",
    ".scala": "scala",
    ".scss": "css",
    ".sh": "shell",
    ".sql": "sql",
    ".svelte": "svelte",
    ".svg": "svg",
    ".swift": "swift",
    ".tex": "tex",
    ".toml": "toml",
    ".tsv": "csv",
    ".txt": "text",
    ".vue": "vue",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zig": "zig",
}
TEXT_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "cmakelists.txt": "cmake"}


def language_of(path: str) -> str:
    """The name of the file's language, judging by its path; "text" if unknown."""
    grammar = syntax.grammar_of(path)
    if grammar is not None:
        return LANGUAGES.get(grammar, grammar)
    name = PurePosixPath(path.lower())
    return TEXT_BY_NAME.get(name.name) or TEXT_BY_SUFFIX.get(name.suffix, "text")
