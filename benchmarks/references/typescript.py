"""References of JavaScript and TypeScript against TypeScript's language service.

    python -m benchmarks.references.typescript --repository NAME=FOLDER ... --modules FOLDER --work FOLDER
        [--config NAME=FILE ...]

from the repository's root. `--modules` is a folder where `npm install typescript` was run; what the service says is kept
in the work folder and taken from there the next time. Links to the packages of a workspace are made in the repositories'
`node_modules`.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testing.references.reference_world import ReferenceWorld

from benchmarks.references.__main__ import HEAD, differences, pairs, row
from benchmarks.references.compare import Answer, compare
from benchmarks.results import table, write_section
from clean_room_agent import syntax

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "References against TypeScript"
CONFIGS = (".json", ".yaml", ".yml")
EXPLAINED = """\
As under "References against jedi", for JavaScript and TypeScript: truth is what `getDefinitionAtPosition` of
TypeScript's language service says of each name occurrence in a tracked file (one program a repository, with the options
of its root `tsconfig.json`; of one expression its first occurrence in a function or class), a key of an object that is
another name for something followed to that. Names that declare, keys of object literals and names of JSX attributes
are not asked for; enum members, properties of interfaces, locals and parameters are no symbols. Dependencies are not
installed: types that come from them are unknown to both sides.
"""


def main() -> None:
    """Measure, print, write the section."""
    options = _options()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    configs = pairs(options.config)
    rows: list[Sequence[object]] = []
    for name, folder in pairs(options.repository).items():
        root = Path(folder).resolve()
        world = read_world(root)
        ours = {path: world.resolve(path) for path in world.names}
        config = configs.get(name, "tsconfig.json")
        answers = ask_service(options.modules, root, config, work / f"{name}.typescript")
        asked = [(path, found) for path, found in answers if path in world.names]
        found = compare(world.nested, ours, asked)
        rows.append(row(name, "language service", len(asked), len(world.names), found))
        (work / f"{name}.language service.txt").write_text(differences(found), encoding="utf-8")
    body = "\n\n".join([EXPLAINED.strip(), table(HEAD, rows)])
    notes = options.notes.read_text(encoding="utf-8").strip() if options.notes else ""
    print(body)
    if not options.dry_run:
        write_section(RESULTS, TITLE, f"{body}\n\n{notes}" if notes else body)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    named = "NAME=VALUE, may be repeated"
    parser.add_argument("--repository", action="append", default=[], help=f"folder of a repository; {named}")
    parser.add_argument("--config", action="append", default=[], help=f"another tsconfig.json; {named}")
    parser.add_argument("--modules", type=Path, required=True, help="a folder that has typescript installed")
    parser.add_argument("--work", type=Path, required=True, help="a folder for answers and differences")
    parser.add_argument("--notes", type=Path, help="Markdown to put under the table")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    return parser.parse_args()


def _tracked(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True
    )
    return [path for path in sorted(filter(None, listed.stdout.split("\0"))) if (root / path).is_file()]


def read_world(root: Path) -> ReferenceWorld:
    """The tracked files of the repository that can be decoded and are not too large to parse."""
    paths = _tracked(root)
    sources: dict[str, str] = {}
    others: dict[str, str] = {}
    for path in paths:
        is_source = syntax.grammar_of(path) not in {None, "python"}
        if not is_source and not path.endswith(CONFIGS):
            continue
        try:
            text = (root / path).read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if not is_source:
            others[path] = text
        elif len(text) <= syntax.MAX_PARSED_BYTES:
            sources[path] = text
    return ReferenceWorld(sources, others, paths)


def ask_service(modules: Path, root: Path, config: str, output: Path) -> list[tuple[str, list[Answer]]]:
    """What the language service says of each name in the tracked files; from `output` if it said so before."""
    if not output.exists():
        script = Path(__file__).with_suffix(".mjs")
        command = ["node", "--max-old-space-size=4000", str(script), str(modules), str(root), config]
        done = subprocess.run(
            command, input="\0".join(_tracked(root)), capture_output=True, text=True, check=True
        )
        output.write_text(done.stdout, encoding="utf-8")
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return [(path, said) for path, said in lines]


if __name__ == "__main__":
    main()
