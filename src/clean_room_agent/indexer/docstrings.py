"""The format of a docstring, and the parameters, return value and exceptions that it describes."""

import json
import re
from typing import Literal, TypedDict

DocFormat = Literal["google", "numpy", "sphinx", "jsdoc", "plain"]

GOOGLE_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes|Returns?|Yields?|Raises)"
    r":[ \t]*$",
    re.MULTILINE,
)
GOOGLE_ITEM = re.compile(r"(\*{0,2}[\w.]+)[ \t]*(?:\(([^)\n]*)\))?:[ \t]*(.*)")
NUMPY_SECTION = re.compile(r"^([A-Z][A-Za-z ]{2,30})[ \t]*\n[=-]{3,}[ \t]*$", re.MULTILINE)
SPHINX_FIELD = re.compile(r"^[ \t]*:(\w+)(?:[ \t]+([^:\n]*))?:[ \t]*(.*(?:\n(?![ \t]*:\w).+)*)", re.MULTILINE)
JSDOC_TAG = re.compile(r"^[ \t]*@(\w+)[ \t]*(.*(?:\n(?![ \t]*@).*)*)", re.MULTILINE)
JSDOC_VALUE = re.compile(r"(?:\{([^}]*)\})?[ \t]*(.*)", re.DOTALL)
JSDOC_NAME = re.compile(r"(\[[^\]]*\]|[\w$.]+)?[ \t]*(?:-[ \t]*)?(.*)", re.DOTALL)

GOOGLE_KINDS = {
    "return": "returns",
    "returns": "returns",
    "yield": "returns",
    "yields": "returns",
    "raises": "raises",
}
NUMPY_KINDS = {
    "parameters": "parameters",
    "other parameters": "parameters",
    "attributes": "parameters",
    "returns": "returns",
    "yields": "returns",
    "raises": "raises",
}
SPHINX_KINDS = {
    **dict.fromkeys(
        ("param", "parameter", "arg", "argument", "key", "keyword", "var", "ivar", "cvar"), "parameters"
    ),
    **dict.fromkeys(("return", "returns", "yield", "yields"), "returns"),
    **dict.fromkeys(("raise", "raises", "except", "exception"), "raises"),
}
JSDOC_KINDS = {
    **dict.fromkeys(("param", "arg", "argument", "property", "prop"), "parameters"),
    **dict.fromkeys(("return", "returns", "yields"), "returns"),
    **dict.fromkeys(("throws", "exception"), "raises"),
}


class DocField(TypedDict):
    """One described thing; what the text does not say is ""."""

    name: str
    type: str
    description: str


class DocFields(TypedDict):
    """What a docstring describes, each list in the order of the text."""

    parameters: list[DocField]
    returns: list[DocField]
    raises: list[DocField]


def read_docstring(content: str, *, is_jsdoc: bool) -> tuple[DocFormat, str | None]:
    """The format, and the described fields as JSON text (keys sorted); None where nothing is described."""
    if is_jsdoc:
        return "jsdoc", _dump(_jsdoc(content))
    if NUMPY_SECTION.search(content):
        fields = _numpy(content)
        if any(fields.values()):
            return "numpy", _dump(fields)
    sphinx = _sphinx(content)
    if any(sphinx.values()):
        return "sphinx", _dump(sphinx)
    google = _google(content)
    if any(google.values()):
        return "google", _dump(google)
    return "plain", None


def _dump(fields: DocFields) -> str | None:
    return json.dumps(fields, sort_keys=True, ensure_ascii=False) if any(fields.values()) else None


def _empty() -> DocFields:
    return {"parameters": [], "returns": [], "raises": []}


def _add(fields: DocFields, kind: str, *, name: str = "", type_: str = "", description: str = "") -> None:
    field: DocField = {
        "name": name.strip(),
        "type": type_.strip(),
        "description": " ".join(description.split()),
    }
    if kind == "parameters":
        fields["parameters"].append(field)
    elif kind == "returns":
        fields["returns"].append(field)
    else:
        fields["raises"].append(field)


def _google(content: str) -> DocFields:
    fields = _empty()
    sections = list(GOOGLE_SECTION.finditer(content))
    for section in sections:
        kind = GOOGLE_KINDS.get(section.group(1).lower(), "parameters")
        body = _indented(content[section.end() :])
        if kind == "returns":
            type_, colon, description = body.partition(":")
            simple = bool(colon) and "\n" not in type_ and len(type_.split()) <= 3
            if body.strip():
                _add(fields, kind, type_=type_ if simple else "", description=description if simple else body)
            continue
        for block in _blocks(body):
            item = GOOGLE_ITEM.match(block)
            if item:
                rest = item.group(3) + block[item.end() :]
                _add(fields, kind, name=item.group(1), type_=item.group(2) or "", description=rest)
    return fields


def _numpy(content: str) -> DocFields:
    fields = _empty()
    sections = list(NUMPY_SECTION.finditer(content))
    for section, after in zip(sections, [*sections[1:], None], strict=True):
        kind = NUMPY_KINDS.get(section.group(1).strip().lower())
        if kind is None:
            continue
        body = content[section.end() : after.start() if after else len(content)].strip("\n")
        for block in _blocks(body):
            head, _, description = block.partition("\n")
            name, _, type_ = head.partition(":")
            if kind == "returns" and not type_:
                name, type_ = "", name
            _add(fields, kind, name=name, type_=type_, description=description)
    return fields


def _sphinx(content: str) -> DocFields:
    fields = _empty()
    types: dict[str, str] = {}
    for found in SPHINX_FIELD.finditer(content):
        tag, argument, description = found.group(1), (found.group(2) or "").strip(), found.group(3)
        if tag == "type":
            types[argument] = " ".join(description.split())
        elif tag == "rtype":
            types[""] = " ".join(description.split())
        elif tag in SPHINX_KINDS:
            type_, _, name = argument.rpartition(" ")
            _add(fields, SPHINX_KINDS[tag], name=name, type_=type_, description=description)
    for field in fields["parameters"]:
        field["type"] = field["type"] or types.get(field["name"], "")
    if "" in types and not fields["returns"]:
        _add(fields, "returns", type_=types[""])
    for field in fields["returns"]:
        field["type"] = field["type"] or types.get("", "")
    return fields


def _jsdoc(content: str) -> DocFields:
    fields = _empty()
    for found in JSDOC_TAG.finditer(content):
        kind = JSDOC_KINDS.get(found.group(1).lower())
        value = JSDOC_VALUE.match(found.group(2))
        if kind is None or value is None:
            continue
        type_, rest = value.group(1) or "", value.group(2)
        if kind == "parameters":
            named = JSDOC_NAME.match(rest)
            name = named.group(1) if named and named.group(1) else ""
            _add(
                fields, kind, name=name.strip("[]"), type_=type_, description=named.group(2) if named else ""
            )
        else:
            _add(fields, kind, type_=type_, description=rest.lstrip("- "))
    return fields


def _indented(text: str) -> str:
    """The lines up to the first that is not indented, without the common indentation."""
    lines: list[str] = []
    for line in text.split("\n")[1:]:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        lines.append(line)
    width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[width:] for line in lines).strip("\n")


def _blocks(body: str) -> list[str]:
    """The items of a section: each a line at its left edge with the indented lines after it."""
    blocks: list[str] = []
    for line in body.split("\n"):
        if line.strip() and not line.startswith((" ", "\t")):
            blocks.append(line)
        elif blocks:
            blocks[-1] += "\n" + line
    return blocks
