"""Detects a docstring's format and parses its parameters, return value and exceptions."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

import docstring_parser
import docstring_parser.epydoc
import docstring_parser.google
import docstring_parser.numpydoc
import docstring_parser.rest

DocFormat = Literal["google", "numpy", "sphinx", "jsdoc", "plain"]
FieldKind = Literal["parameters", "returns", "raises"]

GOOGLE_SECTION = re.compile(
    r"^(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes|Returns?|Yields?|Raises)"
    r":[ \t]*\n",
    re.MULTILINE,
)
NUMPY_SECTION = re.compile(r"^([A-Z][A-Za-z ]{2,30})[ \t]*\n[=-]{3,}[ \t]*$", re.MULTILINE)
NUMPY_TITLES = {
    "parameters": "Parameters",
    "arguments": "Parameters",
    "other parameters": "Other Parameters",
    "attributes": "Attributes",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
}
SPHINX_FIELD = re.compile(
    r"^:(?:param|parameter|arg|argument|key|keyword|attribute|returns?|yields?|raises?|except|exception)\b[^:\n]*:",
    re.MULTILINE,
)
EPYDOC_FIELD = re.compile(r"^@(?:param|return|raise)\b[^:\n]*:", re.MULTILINE)
PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
JSDOC_TAG = re.compile(r"^[ \t]*@(\w+)[ \t]*(.*(?:\n(?![ \t]*@).*)*)", re.MULTILINE)
JSDOC_VALUE = re.compile(r"(?:\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\})?[ \t]*(.*)", re.DOTALL)
JSDOC_NAME = re.compile(
    r"(?:\[[ \t]*([\w$.\[\]]+)[^\]]*\]|(\*?[\w$.]+(?:\[\]\.[\w$.]+)*))?[ \t]*(?:-[ \t]*)?(.*)", re.DOTALL
)
JSDOC_KINDS: Mapping[str, FieldKind] = {
    **dict.fromkeys(("param", "arg", "argument", "property", "prop"), "parameters"),
    **dict.fromkeys(("return", "returns", "yields"), "returns"),
    **dict.fromkeys(("throws", "exception"), "raises"),
}


class DocField(TypedDict):
    """One described parameter, return value or exception; "" where the text says nothing."""

    name: str
    type: str
    description: str


class DocFields(TypedDict):
    """What a docstring describes, each list in the order of the text."""

    parameters: list[DocField]
    returns: list[DocField]
    raises: list[DocField]


def read_docstring(content: str) -> tuple[DocFormat, str | None]:
    """Return the format of a Python docstring and its fields as JSON with sorted keys (None if it has none).

    Epydoc fields count as Sphinx fields. Most docstrings are plain prose; only text that looks like fields is parsed.
    """
    for kind, read in READERS.items():
        fields = read(content)
        if fields is not None and any(fields.values()):
            return kind, _dump_fields(fields)
    return "plain", None


def _parse_numpy(content: str) -> DocFields | None:
    """Parse sections whose titles we know; the library insists on an underline exactly as long as the title."""
    if "---" not in content and "===" not in content:
        return None
    sections = list(NUMPY_SECTION.finditer(content))
    known = []
    for section, after in zip(sections, [*sections[1:], None][: len(sections)], strict=True):
        title = NUMPY_TITLES.get(section[1].strip().lower())
        if title is not None:
            body = content[section.end() : after.start() if after else len(content)].strip("\n")
            known.append(f"{title}\n{'-' * len(title)}\n{body}\n")
    return _parse_fields("\n".join(known), docstring_parser.numpydoc.parse) if known else None


def _parse_sphinx(content: str) -> DocFields | None:
    if ":" in content and SPHINX_FIELD.search(content):
        return _parse_fields(content, docstring_parser.rest.parse)
    is_epydoc = "@" in content and EPYDOC_FIELD.search(content)
    return _parse_fields(content, docstring_parser.epydoc.parse) if is_epydoc else None


def _parse_google(content: str) -> DocFields | None:
    is_google = ":\n" in content and GOOGLE_SECTION.search(content)
    return _parse_fields(content, docstring_parser.google.parse) if is_google else None


READERS: Mapping[DocFormat, Callable[[str], DocFields | None]] = {
    "numpy": _parse_numpy,
    "sphinx": _parse_sphinx,
    "google": _parse_google,
}


def _parse_fields(content: str, parse: Callable[[str], docstring_parser.Docstring]) -> DocFields | None:
    try:
        found = parse(content)
    except Exception:  # noqa: BLE001 - the library's parsers raise of everything on text that only looks like fields
        return None
    fields = _empty_fields()
    for one in found.params:
        for name in one.arg_name.split(","):
            _add_field(fields, "parameters", name, one.type_name, one.description)
    for returned in found.many_returns or filter(None, [found.returns]):
        _add_field(fields, "returns", returned.return_name, returned.type_name, returned.description)
    for raised in found.raises:
        name, _, rest = (raised.type_name or "").partition(":")
        _add_field(fields, "raises", name, "", f"{rest} {raised.description or ''}")
    return fields


def _dump_fields(fields: DocFields) -> str | None:
    return json.dumps(fields, sort_keys=True, ensure_ascii=False) if any(fields.values()) else None


def _empty_fields() -> DocFields:
    return {"parameters": [], "returns": [], "raises": []}


def _add_field(
    fields: DocFields, kind: FieldKind, name: str | None, type_: str | None, description: str | None
) -> None:
    """Append a field, with only the first paragraph of its description: the last field runs to the end of the text."""
    fields[kind].append(
        {
            "name": (name or "").replace("\\", "").strip(),
            "type": (type_ or "").strip(),
            "description": " ".join(PARAGRAPH_END.split((description or "").strip(), 1)[0].split()),
        }
    )


def read_jsdoc(content: str) -> tuple[DocFormat, str | None]:
    """Return the fields of a JSDoc comment likewise."""
    fields = _empty_fields()
    for found in JSDOC_TAG.finditer(content):
        kind = JSDOC_KINDS.get(found[1].lower())
        value = JSDOC_VALUE.match(found[2])
        if kind is None or value is None:
            continue
        named = JSDOC_NAME.match(value[2]) if kind == "parameters" else None
        if named is not None:
            _add_field(fields, kind, named[1] or named[2], value[1], named[3])
        else:
            _add_field(fields, kind, "", value[1], value[2].lstrip("- "))
    return "jsdoc", _dump_fields(fields)
