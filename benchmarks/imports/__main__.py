"""Imports as we resolve them, against Python's own import machinery and the TypeScript compiler.

    python -m benchmarks.imports --python NAME=FOLDER=ROOT,ROOT --script NAME=FOLDER
        --typescript FOLDER_WITH_NODE_MODULES --work FOLDER

from the repository's root. Repositories are cloned into the work folder first, so that nothing but tracked files is
found, and links to packages can be made. ROOTs are what the project has on Python's path, from its folder.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from tree_sitter import Query, QueryCursor

from benchmarks.results import table, write_section
from clean_room_agent import syntax
from clean_room_agent.indexer.imports.ecmascript import EcmaScriptModules
from clean_room_agent.indexer.imports.python import SUFFIXES, PythonModules
from clean_room_agent.indexer.languages.parsed import RawImport
from clean_room_agent.indexer.languages.registry import READERS

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Imports against importlib and the TypeScript compiler"
TARGET = 99.0
EXAMPLES = 3
NOT_READ = "not read by us"
NOT_PARSED = "read by us only"
NOT_FOUND = "not found by us"
ANOTHER = "another file"
ASSET = "ours only, an asset"
OURS_ONLY = "ours only"
MEANING = {
    NOT_READ: "The peer lists these imports, our reader does not: `declare module '…'` adds to a module, and no value "
    "or type is taken from it.",
    NOT_PARSED: "The peer cannot parse the file (syntax newer than its own) or does not count the statement.",
    NOT_FOUND: "We find nothing.",
    ANOTHER: "Both find a file, not the same. For a script, we take the file that runs, the compiler its declarations.",
    ASSET: "Files that a bundler reads and the compiler does not resolve.",
    OURS_ONLY: "Modules of the repository that its projects install, build or put on the path before their code runs: "
    "the peer sees tracked files and the plain path only.",
}
"""What the kinds of difference mean."""
SOURCES = (*syntax.SUFFIXES, ".json")
HERE = Path(__file__).parent
Key = tuple[str, str, str]
"""source file, target as written, name that is taken or ""."""


class Repository(Struct, frozen=True, kw_only=True):
    """A clone, and its tracked files."""

    name: str
    top: Path
    paths: tuple[str, ...]
    roots: tuple[str, ...] = ()


class Comparison(Struct, kw_only=True):
    """What both sides say of the imports of one repository."""

    name: str
    inside: int = 0
    """Imports that the peer finds inside the repository."""
    same: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each kind of difference occurs; "ours only" and its kinds are not among `inside`."""
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def different(self) -> int:
        """Imports that the peer finds inside and we do not, or elsewhere."""
        return self.inside - self.same

    @property
    def ours_only(self) -> int:
        """Imports that we find inside and the peer does not."""
        return sum(self.kinds[kind] for kind in (ASSET, OURS_ONLY, NOT_PARSED))

    @property
    def percent(self) -> float:
        """How many of the peer's imports we resolve to the same file."""
        return 100 * self.same / max(self.inside, 1)


def main() -> None:
    """Compare, print, write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", default=[], metavar="NAME=FOLDER=ROOTS")
    parser.add_argument("--script", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--typescript", type=Path, help="a folder with node_modules/typescript")
    parser.add_argument("--work", type=Path, required=True, help="a folder for clones; kept between runs")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    comparisons, timings = [], []
    for said in options.python:
        name, folder, roots = said.split("=")
        repository = clone(name, Path(folder), options.work, roots.split(","))
        written = imports_of(repository, "python")
        ours, seconds = resolve_python(repository, written)
        timings.append((name, len(repository.paths), len(ours), seconds))
        comparisons.append(compare(repository, python_peer(repository), ours))
    for said in options.script:
        name, folder = said.split("=")
        repository = clone(name, Path(folder), options.work, ())
        written = imports_of(repository, "javascript", "typescript", "tsx")
        ours, seconds = resolve_scripts(repository, written)
        timings.append((name, len(repository.paths), len(ours), seconds))
        comparisons.append(compare(repository, typescript_peer(repository, options.typescript), ours))
    body = render(comparisons, timings)
    print(body)
    if not options.dry_run:
        write_section(RESULTS, TITLE, body)


def clone(name: str, folder: Path, work: Path, roots: Sequence[str]) -> Repository:
    """The repository, cloned where it is not yet."""
    top = work.resolve() / name
    if not top.exists():
        subprocess.run(["git", "clone", "-q", str(folder.resolve()), str(top)], check=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, text=True, check=True)
    paths = tuple(sorted(path for path in listed.stdout.split("\0") if path and (top / path).is_file()))
    return Repository(name=name, top=top, paths=paths, roots=tuple(root for root in roots if root) or (".",))


def imports_of(repository: Repository, *grammars: str) -> dict[str, list[RawImport]]:
    """The imports of each source file, read as the index reads them."""
    queries = {one: Query(syntax.language(one), READERS[one].query(one)) for one in grammars}
    found = {}
    for path in repository.paths:
        grammar = syntax.grammar_of(path)
        if grammar in queries:
            source = (repository.top / path).read_bytes()
            root = syntax.parse(source, grammar).root_node
            found[path] = (
                READERS[grammar].read(root, QueryCursor(queries[grammar]).captures(root), source).imports
            )
    return found


def resolve_python(
    repository: Repository, written: Mapping[str, Iterable[RawImport]]
) -> tuple[dict[Key, str], float]:
    """What each import means, and the processor seconds of making the modules and finding all."""
    keys = [
        (path, raw.target, name)
        for path, raws in written.items()
        for raw in raws
        for name in raw.names or ("",)
    ]
    began = time.process_time()
    modules = PythonModules(repository.paths)
    found = {}
    for key in keys:
        path, target, name = key
        ref = modules.find(path, target)
        child = None if ref is None or name in {"", "*"} else modules.child(ref, name)
        found[key] = (child and child.file) or (ref and ref.file) or ""
    return found, time.process_time() - began


def resolve_scripts(
    repository: Repository, written: Mapping[str, Iterable[RawImport]]
) -> tuple[dict[Key, str], float]:
    """The same for JavaScript and TypeScript."""
    keys = [(path, raw.target, "") for path, raws in written.items() for raw in raws]
    began = time.process_time()
    modules = EcmaScriptModules(repository.paths, lambda path: (repository.top / path).read_text("utf-8"))
    found = {key: modules.find(key[0], key[1]) or "" for key in keys}
    return found, time.process_time() - began


def python_peer(repository: Repository) -> dict[Key, str]:
    """What importlib finds, in a process of its own."""
    files = "\0".join(path for path in repository.paths if path.endswith(SUFFIXES))
    script = str(HERE / "python_imports.py")
    command = [sys.executable, "-I", script, str(repository.top), *repository.roots]
    lines = subprocess.run(
        command, input=files, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {(path, target, name): found for path, target, name, found in map(json.loads, lines)}


def typescript_peer(repository: Repository, typescript: Path) -> dict[Key, str]:
    """What the compiler finds."""
    files = "\0".join(repository.paths)
    command = ["node", str(HERE / "typescript_imports.mjs"), str(typescript), str(repository.top)]
    lines = subprocess.run(
        command, input=files, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {(path, target, ""): found for path, target, found in map(json.loads, lines)}


def compare(repository: Repository, peer: Mapping[Key, str], ours: Mapping[Key, str]) -> Comparison:
    """Count, and keep examples of each kind of difference."""
    result = Comparison(name=repository.name)
    result.inside = sum(bool(found) for found in peer.values())
    for key in sorted(peer.keys() | ours.keys()):
        theirs, own = peer.get(key, ""), ours.get(key, "")
        if theirs and theirs == own:
            result.same += 1
        elif theirs or own:
            kind = kind_of(key, peer, ours)
            result.kinds[kind] += 1
            path, target, name = key
            said = f"`{path}`: `{target}`{f' `{name}`' if name else ''} is `{theirs or '-'}`, ours `{own or '-'}`"
            result.examples.setdefault(kind, []).append(said)
    return result


def kind_of(key: Key, peer: Mapping[Key, str], ours: Mapping[Key, str]) -> str:
    """What sort of difference it is."""
    theirs, own = peer.get(key), ours.get(key)
    if own is None:
        return NOT_READ
    if theirs:
        return ANOTHER if own else NOT_FOUND
    if theirs is None:
        return NOT_PARSED
    return OURS_ONLY if own.endswith(SOURCES) and "?" not in key[1] else ASSET


def render(comparisons: Sequence[Comparison], timings: Sequence[tuple[str, int, int, float]]) -> str:
    """The section."""
    rows = [
        (one.name, one.inside, one.same, one.different, one.ours_only, f"{one.percent:.2f} %")
        for one in comparisons
    ]
    head = ("repository", "imports inside, by the peer", "same file", "different", "ours only", "agreement")
    speed = [
        (name, files, count, f"{seconds * 1000:.0f} ms", f"{seconds / max(count, 1) * 1e6:.1f} us")
        for name, files, count, seconds in timings
    ]
    parts = [table(head, rows), f"Target: {TARGET:.0f} %.", *_differences(comparisons)]
    parts.append("Processor time of making the modules and finding every import once:")
    parts.append(table(("repository", "files", "imports", "processor time", "each"), speed))
    return "\n\n".join(parts)


def _differences(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for kind, meaning in MEANING.items():
        counts = [(one, one.kinds[kind]) for one in comparisons if one.kinds[kind]]
        if counts:
            said = ", ".join(f"{one.name} {count}" for one, count in counts)
            examples = [example for one, _ in counts for example in one.examples[kind][:EXAMPLES]]
            listed = "\n".join(f"- {example}" for example in examples)
            yield f"**{kind.capitalize()}** ({said}). {meaning}\n\n{listed}"


if __name__ == "__main__":
    main()
