"""An `index.scip`, as scip-python or scip-typescript writes it, as the answers that `compare.py` takes.

Only the few fields that matter are read: Index.documents = 2; Document.relative_path = 1, occurrences = 2;
Occurrence.range = 1, symbol = 2, symbol_roles = 3.
"""

import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.references.compare import Answer

DEFINITION = 1
TYPESCRIPT = "scip-typescript "
LAST = re.compile(r"`?([^`/#.()\[\]:!]+)`?(\(\S*\)\.|[#./:!\])])$")
ROOTS = re.compile(r"^(?:src|lib)\.")
KINDS = {"#": "class", "/": "module", ":": "module", ")": "param", "]": "param", ".": "statement"}


class Occurrence(NamedTuple):
    """One name in a document."""

    line: int
    """1-based."""
    column: int
    """0-based, in characters."""
    symbol: str
    is_definition: bool


def read_answers(index: Path, root: Path) -> list[tuple[str, list[Answer]]]:
    """What the index says of each name in each document; names that it does not trace are not there.

    A symbol that it places in a module of its own documents and defines nowhere is no answer: of `request: Request`
    in one module it makes `request` in the module of `Request`.
    """
    documents = dict(sorted(read_index(index.read_bytes())))
    defined: dict[str, tuple[str, int, str, str]] = {}
    for path, occurrences in documents.items():
        for one in occurrences:
            if one.is_definition and not one.symbol.startswith("local "):
                defined.setdefault(key(one.symbol), (path, one.line, *named(one.symbol)))
    modules = {module_of(symbol) for symbol in defined}
    return [(path, list(_answers(root / path, found, defined, modules))) for path, found in documents.items()]


def _answers(
    file: Path,
    occurrences: list[Occurrence],
    defined: Mapping[str, tuple[str, int, str, str]],
    modules: Container[str],
) -> Iterator[Answer]:
    lines = file.read_text(encoding="utf-8").split("\n")
    for one in occurrences:
        if one.is_definition or one.symbol.startswith("local "):
            continue
        name, kind = named(one.symbol)
        is_attribute = lines[one.line - 1][: one.column].rstrip().endswith(".")
        symbol = key(one.symbol)
        if symbol in defined:
            yield one.line, name, is_attribute, [defined[symbol]]
        else:
            yield one.line, name, is_attribute, [] if module_of(symbol) in modules else [("", 0, name, kind)]


def key(symbol: str) -> str:
    """The symbol without package and version, and without the folder that the package's sources stand in.

    scip-python calls one module `src.flask.app` where it stands and `flask.app` where another imports it. In
    JavaScript and TypeScript the package stays: those of a workspace have files of the same names.
    """
    if symbol.startswith(TYPESCRIPT):
        _, _, package, _, inside = symbol.split(" ", 4)
        return f"{package}:{inside.replace('`', '')}"
    return ROOTS.sub("", symbol.split(" ", 4)[-1].replace("`", ""), count=1)


def module_of(symbol: str) -> str:
    """The module in a symbol's key; of JavaScript and TypeScript the package."""
    return symbol.partition(":")[0] if ":" in symbol else symbol.partition("/")[0]


def named(symbol: str) -> tuple[str, str]:
    """The last name of a symbol and what it stands for: class, function, statement, param or module."""
    found = LAST.search(symbol)
    if found is None:
        return "", "module"
    if found[2] == "." and symbol.startswith(TYPESCRIPT):
        return found[1], "function"  # or a variable: what is local to a function has no such symbol
    return found[1], "function" if found[2].startswith("(") and found[2].endswith(".") else KINDS[
        found[2][-1]
    ]


def read_index(data: bytes) -> Iterator[tuple[str, list[Occurrence]]]:
    """Path and occurrences of each document."""
    for number, value in fields(data):
        if number == 2 and isinstance(value, bytes):
            path, occurrences = "", []
            for inner, content in fields(value):
                if inner == 1 and isinstance(content, bytes):
                    path = content.decode()
                elif inner == 2 and isinstance(content, bytes):
                    occurrences.append(_occurrence(content))
            yield path, occurrences


def _occurrence(data: bytes) -> Occurrence:
    place, symbol, roles = [0, 0], "", 0
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            place = list(varints(value))
        elif number == 2 and isinstance(value, bytes):
            symbol = value.decode()
        elif number == 3 and isinstance(value, int):
            roles = value
    return Occurrence(place[0] + 1, place[1], symbol, bool(roles & DEFINITION))


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protobuf message; numbers of fixed width are left out."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
        elif kind == 2:
            size, place = _varint(data, place)
            yield key >> 3, data[place : place + size]
            place += size
        else:
            place += 8 if kind == 1 else 4


def varints(data: bytes) -> Iterator[int]:
    """The numbers of a packed field."""
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
