r"""The edit format as a grammar in GBNF, for servers that generate by one.

It has the forms that the coder is asked for and nothing around them: at most `MAX_BLOCKS` blocks, of given files, each
with the forms that its role allows and the definitions that are known in it: what would be refused is not generated. A line
of a content is any that begins with no tag of the format, so that each content ends at the first closing tag and
what is generated always parses. (That is why there is no grammar for a step whose code has such lines itself.) The rule
of a line is a trie of the tags' names: at each character one alternative at most goes on, so a grammar's sampler keeps
one state however long a content grows.

    line ::= "\n" | [^<\n] rest | "<" line-1        what begins without "<", or with it ...
    line-1 ::= "\n" | [^/ceidrs\n] rest | "/" line-2 | "s" line-3 | ...        ... and goes on as no tag does
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

MAX_BLOCKS = 16
MAX_CHANGES = 8
"""Pairs of search and replacement in one block."""
NAME_CHARS = 120
PATH_CHARS = 240
CONTENTS = ("search", "replacement")
BLOCKS = ("edit", "insert", "create", "delete")
TAGS = (*CONTENTS, *BLOCKS, *(f"/{name}" for name in (*CONTENTS, *BLOCKS)))
"""What no line of a content begins with, after its "<"."""
FORMS = f"""\
root ::= block ("\\n" block){{0,{MAX_BLOCKS - 1}}} "\\n"?
rest ::= [^\\n]* "\\n"
"""
REPLACEMENT = """\
replacement ::= "<replacement>\\n" line* "</replacement>\\n"
"""
EDIT = f"""\
edit ::= "<edit file=\\"" edited "\\">\\n" change{{1,{MAX_CHANGES}}} "</edit>"
change ::= "<search>\\n" line+ "</search>\\n" replacement
{REPLACEMENT}"""
NAMED = """\
rewrite ::= "<edit file=\\"" rewritten "\\">\\n" replacement "</edit>"
insert ::= "<insert file=\\"" inserted "\\">\\n" line+ "</insert>"
side ::= "after" | "before" | "in"
"""
CREATE = """\
create ::= "<create file=\\"" created "\\">\\n" line* "</create>"
"""
DELETE = """\
delete ::= "<delete file=\\"" deleted "\\"/>"
"""
ANY_PATH = f'[^"\\n]{{1,{PATH_CHARS}}}'
ANY_NAME = f'[^"\\n]{{1,{NAME_CHARS}}}'
MAX_NAMES = 300
"""Of one file."""


class Editable(Struct, frozen=True, kw_only=True):
    """A file that an answer may edit."""

    path: str
    names: tuple[str, ...] | None = None
    """Qualified names of the definitions that an edit may name in it; None for any."""


ANY_FILE = Editable(path="")


def edit_grammar(
    edited: Iterable[Editable] = (), created: Iterable[str] = (), deleted: Iterable[str] = ()
) -> str:
    """A grammar of answers that edit, create and delete only these files; any, where there are none at all."""
    files = [one for one in edited if _can_be_quoted(one.path)]
    new = list(filter(_can_be_quoted, created))
    gone = list(filter(_can_be_quoted, deleted))
    if not (files or new or gone):
        files, new, gone = [ANY_FILE], [""], [""]
    named = [one for one in files if one.names is None or one.names]
    rules = {
        "edited": _either(_path(one.path) for one in files),
        "rewritten": _either(f'{_path(one.path)} "\\" symbol=\\"" {_names(one)}' for one in named),
        "inserted": _either(f'{_path(one.path)} "\\" " side "=\\"" {_names(one)}' for one in named),
        "created": _either(map(_path, new)),
        "deleted": _either(map(_path, gone)),
    }
    forms: tuple[tuple[str, tuple[str, ...], str], ...] = (
        ("edited", ("edit",), EDIT),
        ("rewritten", ("rewrite", "insert"), NAMED),
        ("created", ("create",), CREATE),
        ("deleted", ("delete",), DELETE),
    )
    blocks = _either(block for rule, names, _ in forms if rules[rule] for block in names)
    texts = "".join(text for rule, _, text in forms if rules[rule])
    written = "".join(f"{name} ::= {way}\n" for name, way in rules.items() if way)
    return f"{FORMS}block ::= {blocks}\n{texts}{written}{''.join(_line_rules())}"


def _either(ways: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(ways))


def _can_be_quoted(text: str) -> bool:
    return '"' not in text and text.isprintable()


def _path(path: str) -> str:
    return _literal(path) if path else ANY_PATH


def _names(file: Editable) -> str:
    known = [name for name in file.names or () if _can_be_quoted(name)]
    return f"({_either(map(_literal, known))})" if 0 < len(known) <= MAX_NAMES else ANY_NAME


def _line_rules() -> Iterator[str]:
    """The rules of a line, one for each beginning of a tag."""
    begun = sorted({tag[:end] for tag in TAGS for end in range(len(tag))})
    names = {beginning: f"line-{number}" for number, beginning in enumerate(begun, 1)}
    yield f'line ::= "\\n" | [^<\\n] rest | "<" {names[""]}\n'
    for beginning, name in names.items():
        following = sorted(
            {tag[len(beginning)] for tag in TAGS if tag.startswith(beginning) and tag != beginning}
        )
        ways = ['"\\n"', f"[^{''.join(following)}\\n] rest"]
        for character in following:
            longer = beginning + character
            # Behind a whole name, what ends it would make it a tag.
            ways.append(
                f'"{character}" {names[longer]}'
                if longer in names
                else f'"{character}" ("\\n" | [^ \\t/>\\n] rest)'
            )
        yield f"{name} ::= {' | '.join(ways)}\n"


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
