r"""The edit format as a grammar in GBNF, for servers that generate by one.

It has the forms that the coder is asked for and nothing around them: at most `MAX_BLOCKS` blocks, of given files, each
with the forms that its role allows: what would be refused is not generated. A line
of a content is any that begins with no tag of the format, so that each content ends at the first closing tag and
what is generated always parses. (That is why there is no grammar for a step whose code has such lines itself.) The rule
of a line is a trie of the tags' names: at each character one alternative at most goes on, so a grammar's sampler keeps
one state however long a content grows.

    line ::= "\n" | [^<\n] rest | "<" line-1        what begins without "<", or with it ...
    line-1 ::= "\n" | [^/ceidrs\n] rest | "/" line-2 | "s" line-3 | ...        ... and goes on as no tag does
"""

from collections.abc import Iterable, Iterator

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
name ::= "\\"" [^"\\n]{{1,{NAME_CHARS}}} "\\""
rest ::= [^\\n]* "\\n"
"""
EDITED = f"""\
edit ::= "<edit file=\\"" edited "\\">\\n" change{{1,{MAX_CHANGES}}} "</edit>"
change ::= "<search>\\n" line+ "</search>\\n" replacement
rewrite ::= "<edit file=\\"" edited "\\" symbol=" name ">\\n" replacement "</edit>"
replacement ::= "<replacement>\\n" line* "</replacement>\\n"
insert ::= "<insert file=\\"" edited "\\" " ("after" | "before" | "in") "=" name ">\\n" line+ "</insert>"
"""
CREATED = """\
create ::= "<create file=\\"" created "\\">\\n" line* "</create>"
"""
DELETED = """\
delete ::= "<delete file=\\"" deleted "\\"/>"
"""


def edit_grammar(edited: Iterable[str] = (), created: Iterable[str] = (), deleted: Iterable[str] = ()) -> str:
    """A grammar of answers that edit, create and delete only the files of these paths; any, where there are none at all."""
    forms = (
        (("edit", "rewrite", "insert"), EDITED, "edited", _known(edited)),
        (("create",), CREATED, "created", _known(created)),
        (("delete",), DELETED, "deleted", _known(deleted)),
    )
    any_path = "" if any(paths for *_, paths in forms) else f'[^"\\n]{{1,{PATH_CHARS}}}'
    blocks: list[str] = []
    rules: list[str] = []
    for names, rule, kind, paths in forms:
        if path := " | ".join(map(_literal, paths)) or any_path:
            blocks += names
            rules += (rule, f"{kind} ::= {path}\n")
    return FORMS + f"block ::= {' | '.join(blocks)}\n" + "".join((*rules, *_line_rules()))


def _known(paths: Iterable[str]) -> list[str]:
    """Those that can stand between quotation marks."""
    return list(dict.fromkeys(path for path in paths if '"' not in path and path.isprintable()))


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
