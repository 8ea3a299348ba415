"""One prompt, no agent: the file, or the functions around the task's words, and the corrected functions back.

The plainest use of a model, with what its makers advise: a short system text, code in fences, temperature 0 for the one
answer, 0.8 where several are drawn.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent.languages.python.mutations import Functions

SYSTEM = "You are an expert Python programmer."
FIX = "Answer with the corrected or new function, whole, in one ```python block."
WRITE = "Answer with the whole file in one ```python block. Use the standard library only."
FENCE = re.compile(r"^[ \t]*```(?:python|py)?[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w{2,}")
CHARS_PER_TOKEN = 3.0
"""Rather too few: a prompt that is too long is refused."""
TESTS = re.compile(
    r"(^|/)(tests?|testing|docs?|examples?|bench\w*)(/|\.py$)|(^|/)(test_\w+|\w+_test|conftest|setup)\.py$"
)


class Shown(Struct, frozen=True, kw_only=True):
    """Code of one file that a prompt shows."""

    path: str
    text: str
    score: float
    """How much of the task's words it has."""


def prompt_for(tree: Path, words: str, files: tuple[str, ...], room: int) -> tuple[str, list[Shown]]:
    """The prompt, and what it shows, best first; the code is at most `room` tokens long."""
    if files:
        parts = [Shown(path=path, text=(tree / path).read_text(encoding="utf-8"), score=1) for path in files]
    else:
        parts = list(around(tree, words, int(room * CHARS_PER_TOKEN)))
    code = "\n".join(f"{part.path}\n```python\n{part.text.rstrip()}\n```\n" for part in parts)
    asked = WRITE if files else FIX
    return f"{code}\n{words}\n\n{asked}", parts


def around(tree: Path, words: str, room: int) -> Iterator[Shown]:
    """The file of the function that fits the words best, if it is short enough; else functions, best first, while they fit
    into `room` characters.
    """
    found = sorted(functions(tree, words), key=lambda shown: (-shown.score, shown.path, shown.text))
    best = found[0].path
    text = (tree / best).read_text(encoding="utf-8")
    if len(text) <= room // 4:
        yield Shown(path=best, text=text, score=found[0].score)
        return
    for shown in found[:4]:
        if len(shown.text) <= room:
            room -= len(shown.text)
            yield shown


def functions(tree: Path, words: str) -> Iterator[Shown]:
    """All functions and methods outside of tests, scored: one that the words name comes before those that share words."""
    named = set(WORD.findall(words))
    plain = {word.lower() for word in named}
    for path in sorted(tree.rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        if TESTS.search(name):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Functions):
                code = "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
                shared = len(plain & {word.lower() for word in WORD.findall(code)})
                yield Shown(
                    path=name, text=code, score=100 * (node.name in named) + shared + 1000 * (name in words)
                )


def code_of(answer: str) -> str:
    """The answer's code blocks, one after the other."""
    return "\n".join(_dedented(match) for match in FENCE.findall(answer))


def _dedented(code: str) -> str:
    lines = code.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines) + "\n"


def applied(text: str, code: str, shown: str = "", words: str = "") -> str | None:
    """The file with the code's functions and classes in the place of its own of the same names; None if that cannot be, or
    changes nothing. Code that has all top-level definitions of the file is the new file. A method may come without its class;
    if several have its name, it is the one that was `shown`. Definitions that are new come to the end of the file, if others
    are replaced or the words ask for one of them.
    """
    try:
        old, new = ast.parse(text), ast.parse(code)
    except SyntaxError:
        return None
    given = {node.name: node for node in new.body if isinstance(node, Functions | ast.ClassDef)}
    own = {node.name for node in old.body if isinstance(node, Functions | ast.ClassDef)}
    if own and own <= given.keys():
        return code if code.strip() != text.strip() else None
    lines = text.splitlines(keepends=True)
    new_names = given.keys() - {
        node.name for node in ast.walk(old) if isinstance(node, Functions | ast.ClassDef)
    }
    for node in sorted(_definitions(old, lines, shown), key=lambda node: -node.lineno):
        if node.name in given:
            body = given.pop(node.name)
            lines[_first_line(node) - 1 : node.end_lineno] = _indented(code, body, node.col_offset)
    replaced = "".join(lines) != text
    if new_names and (replaced or any(f"def {name}(" in words for name in new_names)):
        imports = [ast.unparse(node) for node in new.body if isinstance(node, ast.Import | ast.ImportFrom)]
        lines += ["\n\n", *(f"{line}\n" for line in imports if line not in text)]
        for name, node in given.items():
            lines += ["\n", *_indented(code, node, 0)] if name in new_names else []
    changed = "".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed if changed != text else None


def _definitions(tree: ast.Module, lines: list[str], shown: str) -> Iterator[Functions | ast.ClassDef]:
    """Of the top level and of classes, those whose name is theirs alone, and the one that was shown."""
    top = [node for node in tree.body if isinstance(node, Functions | ast.ClassDef)]
    owners = [node for node in top if isinstance(node, ast.ClassDef)]
    found = [*top, *(node for owner in owners for node in owner.body if isinstance(node, Functions))]
    names = [node.name for node in found]
    for node in found:
        source = "".join(lines[_first_line(node) - 1 : node.end_lineno]).rstrip("\n")
        if names.count(node.name) == 1 or source == shown:
            yield node


def _first_line(node: Functions | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _indented(code: str, node: Functions | ast.ClassDef, margin: int) -> list[str]:
    lines = code.splitlines()[_first_line(node) - 1 : node.end_lineno]
    return [f"{' ' * margin}{line}\n" if line.strip() else "\n" for line in lines]
