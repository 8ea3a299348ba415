"""What a commit's goal tests say before its change, by a run of our own whose values are whole.

The program's own account of its baseline is not asked: it may be what is wrong.
"""

import ast
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec.structs import asdict, replace

from benchmarks.commits.checkouts import git, put_base, report_path, run_tests
from benchmarks.commits.commit_list import CommitEntry, CommitList, Runner
from benchmarks.commits.runner_reports import ava_place
from benchmarks.context.goals import Goal

WHOLE = {"pytest": ("-vvvv", "--tb=short")}
"""Options with which a runner's report holds values in full, also where the command asks for a quiet one."""
DIFF_OF_NODE = "+ actual - expected"
AVA_BLOCK = re.compile(r"^not ok \d+ - (.*)\n  ---\n((?:    .*\n)*)", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[\d;]*m")
EVIDENCE = re.compile(r"^E\b *(.*)$")
FRAME = re.compile(r"^(\S+?):(\d+): (?:in |\w)", re.MULTILINE)
SCRIPT_FRAME = re.compile(r"\(?(?:file://)?(/[^\s():]+):(\d+):\d+\)?")
ASSERTION = re.compile(r"^(?:AssertionError: )?assert |^AssertionError: ")
OPERATORS = (" == ", " != ", " is not ", " not in ", " is ", " in ", " <= ", " >= ", " < ", " > ")
COMPARED_BELOW = re.compile(r"^assert .+", re.MULTILINE)
"""Below the message that an assertion was given, pytest says what it compared."""
LABELLED = re.compile(
    r"^ *(?:Expected regex|Regex): (?P<expected>.+)\n *(?:Actual message|Input): (?P<got>.+)$", re.MULTILINE
)
"""How `pytest.raises(match=...)` says what it wanted and got."""
SENTENCE = re.compile(r"^(?:Error: )?expected (?P<expected>.+), got (?P<got>.+)$")
"""As supertest says it."""
SCRIPT_COMPARED = re.compile(
    r"^AssertionError: expected (?P<got>.+?) to (?:\w+ )*?(?:be|equal|deeply equal|strictly equal|match) (?P<expected>.+?)(?: //.*)?$"
)


class Failure(Struct, frozen=True, kw_only=True):
    """What one test said. Values are as the runner wrote them; both are "" where nothing was compared."""

    id: str
    error: str
    """The first line of what went wrong."""
    got: str = ""
    expected: str = ""
    line: int = 0
    """Of the test's own file, where it went wrong; 0 where that is not told."""


def failures_of(work: Path, listed: CommitList, entry: CommitEntry, top: Path) -> Mapping[str, Failure]:
    """By test, or by file where a file's tests could not even be collected. Run once, and kept in the work folder.

    `top` is the commit's own clone, whose objects are used.
    """
    kept = work / "context" / f"{entry.id}.failures.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        found = _run(work, listed, entry, top)
        kept.write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
    return {one["id"]: Failure(**one) for one in json.loads(kept.read_text(encoding="utf-8"))}


def failure_of(goal: Goal, failures: Mapping[str, Failure]) -> tuple[Failure, ...]:
    """What the goal's tests said, or its file."""
    own = tuple(failures[identity] for identity in goal.ids if identity in failures)
    return own or tuple(failures[key] for key in (goal.path,) if key in failures)


def _run(work: Path, listed: CommitList, entry: CommitEntry, top: Path) -> list[Failure]:
    tree = top.parent / "base"
    shutil.rmtree(tree, ignore_errors=True)
    git(top.parent, "clone", "--quiet", "--shared", "--no-checkout", str(top), str(tree))
    (tree / ".git" / "info" / "exclude").write_text("node_modules\n", encoding="utf-8")
    put_base(tree, entry)
    runner = listed.repositories[entry.repository].runner
    run_tests(
        work, tree, listed, entry.model_copy(update={"command": (*entry.command, *WHOLE.get(runner, ()))})
    )
    report = report_path(work, entry)
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    found = {one.id: one for one in READERS[runner](text, tree)} if text else {}
    shutil.rmtree(tree)
    return [found[key] for key in sorted(found)]


def _of_junit(text: str, tree: Path) -> Iterator[Failure]:
    for case in ET.fromstring(text).iter("testcase"):
        file, owner, name = case.get("file") or "", case.get("classname", ""), case.get("name", "")
        module = re.sub(r"\.py$", "", file).replace("/", ".")
        classes = owner.removeprefix(module).removeprefix(".")
        for child in case:
            if child.tag not in {"failure", "error"}:
                continue
            identity = "::".join((file, *(part for part in classes.split(".") if part), name))
            if (child.get("message") or "").startswith("collection"):
                identity = f"{name.replace('.', '/')}.py"
            yield _of_text(identity.replace(str(tree), "."), (child.text or "").replace(f"{tree}/", ""))


def _of_text(identity: str, text: str) -> Failure:
    """Read from a traceback of pytest's."""
    path = identity.partition("::")[0]
    own = [int(line) for place, line in FRAME.findall(text) if place == path]
    block: list[str] = []
    lines = ["", *text.split("\n")]
    for above, line in pairwise(lines):
        if found := EVIDENCE.match(line):
            block = [*block, found[1]] if EVIDENCE.match(above) else [found[1]]
    # The block is that of the last exception, where one led to another.
    failure = _compared(identity, block[0] if block else "", own[-1] if own else 0)
    return failure if failure.got else _with_labels(failure, "\n".join(block[1:]))


def _with_labels(failure: Failure, below: str) -> Failure:
    """The failure, compared as the lines below its message say."""
    if found := LABELLED.search(below):
        return replace(failure, got=found["got"], expected=found["expected"])
    if found := COMPARED_BELOW.search(below):
        got, expected = _sides(found[0].removeprefix("assert "))
        return replace(failure, got=got, expected=expected)
    return failure


def _compared(identity: str, said: str, line: int) -> Failure:
    error = COLOUR.sub("", said).strip()
    if found := SCRIPT_COMPARED.match(error) or SENTENCE.match(error):
        return Failure(id=identity, error=error, got=found["got"], expected=found["expected"], line=line)
    got, expected = _sides(ASSERTION.sub("", error)) if ASSERTION.match(error) else ("", "")
    return Failure(id=identity, error=error, got=got, expected=expected, line=line)


def _sides(text: str) -> tuple[str, str]:
    """What a comparison compares; both "" where it is none. Values may hold what looks like an operator."""
    try:
        read = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        read = None
    if isinstance(read, ast.Compare):
        sides = (ast.get_source_segment(text, side) or "" for side in (read.left, read.comparators[-1]))
        return next(sides), next(sides)
    operator = next((one for one in OPERATORS if one in text), None)
    if operator is None:
        return "", ""
    got, _, expected = text.partition(operator)
    return got, expected


def _of_mocha(text: str, tree: Path) -> Iterator[Failure]:
    for case in json.loads(text)["failures"]:
        file = os.path.relpath(case["file"], tree) if case.get("file") else ""
        said = case["err"]
        error = str(said.get("message") or "").split("\n")[0].replace(str(tree), ".")
        line = _script_line(str(said.get("stack") or ""), tree, file)
        found = _compared(f"{file}::{case['fullTitle']}", error, line)
        if isinstance(said.get("expected"), str) and isinstance(said.get("actual"), str):
            found = Failure(
                id=found.id, error=error, got=str(said["actual"]), expected=str(said["expected"]), line=line
            )
        yield found


def _of_jest(text: str, tree: Path) -> Iterator[Failure]:
    for module in json.loads(text)["testResults"]:
        file = os.path.relpath(module["name"], tree)
        if not module["assertionResults"] and module.get("message"):
            yield Failure(id=file, error=module["message"].split("\n")[0].replace(str(tree), "."))
        for case in module["assertionResults"]:
            if case["status"] == "failed":
                said = "\n".join(case["failureMessages"])
                yield _of_message(
                    f"{file}::{case['fullName']}",
                    said.replace(str(tree), "."),
                    _script_line(said, tree, file),
                )


def _of_node(text: str, tree: Path) -> Iterator[Failure]:
    for case in map(json.loads, text.splitlines()):
        if case["kind"] != "test" or case["outcome"] != "failed":
            continue
        file = os.path.relpath(case["file"], tree) if case["file"] else ""
        names = [name for name in case["names"] if name != case["file"]]
        line = _script_line(case["stack"], tree, file)
        said = (case["stack"] or case["message"]).replace(str(tree), ".")
        yield _of_message("::".join(filter(None, (file, " ".join(names)))), said, line)


def _of_ava(text: str, tree: Path) -> Iterator[Failure]:
    data = json.loads(text)
    for name, block in AVA_BLOCK.findall(data["tap"]):
        file, title = ava_place(name, data["modules"])
        said = "\n".join(line.strip() for line in block.splitlines())
        heads = re.findall(r"^(?:name|message): '?(.*?)'?$", said, re.MULTILINE)
        yield _of_message(
            f"{file}::{title}", f"{': '.join(filter(None, heads))}\n{said}", _script_line(said, tree, file)
        )


def _of_message(identity: str, said: str, line: int) -> Failure:
    """Read from a message that labels its values, or shows their difference."""
    text = COLOUR.sub("", said)
    found = _compared(identity, text.split("\n")[0], line)
    labelled = [re.search(rf"^\s*{label}: (.*)$", text, re.MULTILINE) for label in ("Received", "Expected")]
    if all(labelled):
        got, expected = (match[1] if match else "" for match in labelled)
        return replace(found, got=got, expected=expected)
    if unequal := re.search(r"^(.+) !== (.+)$", text, re.MULTILINE):
        return replace(found, got=unequal[1], expected=unequal[2])
    signs = ("+", "-") if DIFF_OF_NODE in text else ("-", "+")
    text = text.replace(DIFF_OF_NODE, "")
    got, expected = (" ".join(re.findall(rf"^\{sign} +(.*)$", text, re.MULTILINE)) for sign in signs)
    return replace(found, got=got, expected=expected) if got and expected else found


def _script_line(stack: str, tree: Path, file: str) -> int:
    """The line of the test's own file that stands first in a stack."""
    return next((int(line) for place, line in SCRIPT_FRAME.findall(stack) if place == str(tree / file)), 0)


READERS: Mapping[Runner, Callable[[str, Path], Iterator[Failure]]] = {
    "pytest": _of_junit,
    "mocha": _of_mocha,
    "vitest": _of_jest,
    "jest": _of_jest,
    "node": _of_node,
    "ava": _of_ava,
}
