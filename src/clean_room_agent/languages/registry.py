"""The languages that are parsed, one a line, and the names of all other text files by suffix."""

from functools import lru_cache
from pathlib import PurePosixPath

from clean_room_agent.languages.base import Language
from clean_room_agent.languages.ecmascript.ecmascript import EcmaScript
from clean_room_agent.languages.go.go import Go
from clean_room_agent.languages.python.python import Python

LANGUAGES: tuple[Language, ...] = (
    Python(),
    EcmaScript(),
    Go(),
)
BY_SUFFIX = {
    suffix: (language, grammar) for language in LANGUAGES for suffix, grammar in language.suffixes.items()
}
BY_GRAMMAR = {grammar: language for language in LANGUAGES for grammar in language.names}
TEXT_LANGUAGES = """
    asciidoc .adoc; batch .bat; c .c .h; clojure .clj; cpp .cc .cpp .cxx .hpp; csharp .cs;
    css .css .less .scss; csv .csv .tsv; cython .pxd .pyx; dart .dart; elixir .ex .exs;
    gradle .gradle; graphql .graphql; haskell .hs; html .htm .html; ini .cfg .conf .ini; java .java;
    json .json .json5 .jsonl; kotlin .kt; lua .lua; markdown .md .mdx; notebook .ipynb; objective-c .m;
    perl .pl; php .php; powershell .ps1; protobuf .proto; r .r; restructuredtext .rst; ruby .rb; rust .rs;
    scala .scala; shell .sh; sql .sql; svelte .svelte; svg .svg; swift .swift; template .j2 .jinja .jinja2;
    tex .tex; text .txt; toml .toml; translation .po; vue .vue; xml .xml; yaml .yaml .yml; zig .zig
"""
"""Language and suffixes of text files that are not parsed."""
TEXT_BY_SUFFIX = {
    suffix: language
    for entry in TEXT_LANGUAGES.split(";")
    for language, *suffixes in [entry.split()]
    for suffix in suffixes
}
TEXT_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "cmakelists.txt": "cmake"}


def language_at(path: str) -> Language | None:
    """The language of the file, by its suffix; None if it is not parsed."""
    found = language_and_grammar(path)
    return None if found is None else found[0]


@lru_cache(maxsize=65_536)
def language_and_grammar(path: str) -> tuple[Language, str] | None:
    """The language of the file and its grammar, by its suffix; None if it is not parsed."""
    return BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def names_beside(path: str) -> tuple[str, ...]:
    """What the index calls the languages whose definitions the file's names may mean: its own, with its dialects."""
    found = language_at(path)
    return () if found is None else tuple(sorted(set(found.names.values())))


def name_of(path: str) -> str:
    """What the index calls the file's language, judging by its path; "text" if that is unknown."""
    found = language_and_grammar(path)
    if found is not None:
        return found[0].names[found[1]]
    name = PurePosixPath(path.lower())
    return TEXT_BY_NAME.get(name.name) or TEXT_BY_SUFFIX.get(name.suffix, "text")
