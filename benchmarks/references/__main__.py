"""Python references against jedi: precision and recall.

    python -m benchmarks.references --repository NAME=FOLDER ... [--search NAME=FOLDER ...] --work FOLDER
        --jedi PYTHON [--every NAME=N ...]

from the repository's root. jedi runs under an interpreter of its own (`python -m venv`, `pip install jedi`); what it
says is kept in the work folder and taken from there the next time.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testing.references.reference_world import ReferenceWorld

from benchmarks.references.compare import Answer, Compared, compare
from benchmarks.results import table, write_section
from clean_room_agent import syntax

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "References against jedi"
EXPLAINED = """\
Truth is what the other tool says of each name occurrence (jedi: `goto` with imports followed; of one dotted expression
its first occurrence in a function, class body or module statement) where that is a symbol of the index: functions,
classes, methods and variables of modules and classes. Parameters, locals and attributes that only methods assign are
no symbols; an attribute that a class body declares and a method assigns is one. Pairs are (innermost symbol around the
occurrence, symbol meant), by path and qualified name, so that several definitions of one name count as one. A use of
which the other tool names several symbols is found if one of them is. "No answer": pairs of ours on whose name the
other tool is silent in that symbol; they count neither way.
"""


def main() -> None:
    """Measure, print, write the section."""
    options = _options()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    rows: list[Sequence[object]] = []
    every, search = pairs(options.every), pairs(options.search)
    for name, folder in pairs(options.repository).items():
        root = Path(folder).resolve()
        world = ReferenceWorld(read_sources(root))
        ours = {path: world.resolve(path) for path in world.names}
        step = int(every.get(name, 1))
        paths = sorted(world.names)[::step]
        answers = ask_jedi(options.jedi, root, paths, search.get(name, "."), work / f"{name}.{step}.jedi")
        found = compare(world.nested, ours, answers)
        rows.append(row(name, "jedi", len(answers), len(world.names), found))
        (work / f"{name}.jedi.txt").write_text(differences(found), encoding="utf-8")
    body = "\n\n".join([EXPLAINED.strip(), table(HEAD, rows)])
    notes = options.notes.read_text(encoding="utf-8").strip() if options.notes else ""
    print(body)
    if not options.dry_run:
        write_section(RESULTS, TITLE, f"{body}\n\n{notes}" if notes else body)


HEAD = (
    "repository",
    "tool",
    "files asked",
    "uses traced",
    "recall",
    "recall at >= 0.8",
    "precision at >= 0.8",
    "precision at all",
    "no answer at >= 0.8",
)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    named = "NAME=VALUE, may be repeated"
    parser.add_argument("--repository", action="append", default=[], help=f"folder of a repository; {named}")
    parser.add_argument(
        "--search", action="append", default=[], help=f"where jedi finds its modules; {named}"
    )
    parser.add_argument("--every", action="append", default=[], help=f"ask jedi of each n-th file; {named}")
    parser.add_argument("--jedi", required=True, help="an interpreter that has jedi")
    parser.add_argument("--work", type=Path, required=True, help="a folder for answers and differences")
    parser.add_argument("--notes", type=Path, help="Markdown to put under the tables")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    return parser.parse_args()


def pairs(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments."""
    return dict(one.split("=", 1) for one in given)


def read_sources(root: Path) -> dict[str, str]:
    """Path -> text of the tracked Python files that can be decoded and are not too large to parse."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "*.py"], capture_output=True, text=True, check=True
    )
    sources = {}
    for path in sorted(filter(None, listed.stdout.split("\0"))):
        try:
            text = (root / path).read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if len(text) <= syntax.MAX_PARSED_BYTES:
            sources[path] = text
    return sources


def ask_jedi(
    interpreter: str, root: Path, paths: Sequence[str], search: str, output: Path
) -> list[tuple[str, list[Answer]]]:
    """What jedi says of each name in the files; from `output` if it said so before."""
    if not output.exists():
        script = Path(__file__).with_name("jedi_answers.py")
        command = [interpreter, str(script), str(root), str(output), *search.split(",")]
        subprocess.run(command, input="\n".join(paths), text=True, check=True)
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return [(path, said) for path, said in lines]


def row(name: str, tool: str, asked: int, files: int, found: Compared) -> Sequence[object]:
    """A line under `HEAD`."""

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.1%}" if whole else "-"

    return (
        name,
        tool,
        f"{asked} of {files}",
        f"{found.groups:,}",
        share(found.found, found.groups),
        share(found.found_sure, found.groups),
        share(found.right_sure, found.right_sure + found.wrong_sure),
        share(found.right, found.right + found.wrong),
        f"{found.unknown_sure:,} of {found.unknown_sure + found.right_sure + found.wrong_sure:,}",
    )


def differences(found: Compared) -> str:
    """Every difference, for reading."""
    parts: list[tuple[str, list[Any]]] = [
        ("by confidence", sorted(found.by_confidence.items())),
        ("missed", sorted(found.missed)),
        ("wrong", sorted(found.wrong_pairs)),
        ("no answer", sorted(found.unknown_pairs)),
    ]
    return "\n".join(line for title, rows in parts for line in (f"== {title}", *map(str, rows)))


if __name__ == "__main__":
    main()
