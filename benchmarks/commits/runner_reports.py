"""What test runners are asked to report, and their reports, test by test."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

from benchmarks.commits.commit_list import Runner

NODE_REPORTER = Path(__file__).with_name("node_reporter.mjs")
TAP = re.compile(r"^(not )?ok \d+ - (.*?)( # (?:SKIP|TODO)\b.*)?$", re.MULTILINE)
AVA_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


def reporting(runner: Runner, command: Sequence[str], report: Path) -> tuple[str, ...]:
    """The command, asked to write its report to `report`; ava's comes with its output."""
    match runner:
        case "pytest":
            return (*command, f"--junitxml={report}", "-o", "junit_family=xunit1")
        case "mocha":
            return (*command, "--reporter", "json", "--reporter-option", f"output={report}")
        case "vitest":
            return (*command, "--reporter=json", f"--outputFile={report}")
        case "jest":
            return (*command, "--json", f"--outputFile={report}")
        case "ava":
            return (*command, "--tap")
        case "node":  # its options stand before the files
            place = command.index("--test") + 1
            options = (f"--test-reporter={NODE_REPORTER}", f"--test-reporter-destination={report}")
            return (*command[:place], *options, *command[place:])


def read_report(runner: Runner, report: Path, tree: Path) -> dict[str, str]:
    """Test id -> outcome, sorted; a test that stands in it twice counts as passed if each of them passed.

    The tree's own path in an id (parameters have it) is written ".", so ids are the same on every machine.
    """
    if not report.exists():
        return {}
    text = report.read_text(encoding="utf-8")
    outcomes: dict[str, str] = {}
    for raw, outcome in READERS[runner](text, tree):
        name = raw.replace(str(tree), ".")
        outcomes[name] = outcome if outcomes.get(name, "passed") == "passed" else outcomes[name]
    return dict(sorted(outcomes.items()))


def _read_junit(text: str, tree: Path) -> list[tuple[str, str]]:
    del tree
    found = []
    for case in ET.fromstring(text).iter("testcase"):
        file, owner, name = case.get("file", ""), case.get("classname", ""), case.get("name", "")
        module = re.sub(r"\.py$", "", file).replace("/", ".")
        classes = owner.removeprefix(module).removeprefix(".")
        parts = [file, *(part for part in classes.split(".") if part), name]
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found.append(("::".join(parts), outcome))
    return found


def _read_mocha(text: str, tree: Path) -> list[tuple[str, str]]:
    data = json.loads(text)
    found = []
    for key, outcome in (("passes", "passed"), ("failures", "failed"), ("pending", "skipped")):
        for case in data[key]:
            file = os.path.relpath(case["file"], tree) if case.get("file") else ""
            found.append((f"{file}::{case['fullTitle']}", outcome))
    return found


def _read_jest(text: str, tree: Path) -> list[tuple[str, str]]:
    found = []
    for module in json.loads(text)["testResults"]:
        file = os.path.relpath(module["name"], tree)
        for case in module["assertionResults"]:
            outcome = case["status"] if case["status"] in {"passed", "failed"} else "skipped"
            found.append((f"{file}::{case['fullName']}", outcome))
    return found


def _read_node(text: str, tree: Path) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        case = json.loads(line)
        if case["kind"] == "test":
            file = os.path.relpath(case["file"], tree) if case["file"] else ""
            found.append((f"{file}::{' '.join(case['names'])}", case["outcome"]))
    return found


def _read_ava(text: str, tree: Path) -> list[tuple[str, str]]:
    del tree
    data = json.loads(text)
    found = []
    for failed, name, left_out in TAP.findall(data["tap"]):
        file, title = ava_place(name, data["modules"])
        outcome = "skipped" if left_out else "failed" if failed else "passed"
        found.append((f"{file}::{title}", outcome))
    return found


def ava_place(name: str, modules: Sequence[str]) -> tuple[str, str]:
    """The file and the title behind a name that ava reports: with several files, their names' beginnings come first."""
    if len(modules) == 1:
        return modules[0], name
    stem, _, title = name.partition(AVA_SEPARATOR)
    file = next((path for path in modules if PurePosixPath(path).name.split(".")[0] == stem), "")
    return (file, title) if file else ("", name)


READERS: Mapping[Runner, Callable[[str, Path], list[tuple[str, str]]]] = {
    "pytest": _read_junit,
    "mocha": _read_mocha,
    "vitest": _read_jest,
    "jest": _read_jest,
    "node": _read_node,
    "ava": _read_ava,
}
