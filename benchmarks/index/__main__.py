"""How long `cra index` takes and what it holds, beside the parsing alone and beside other programs.

    python -m benchmarks.index REPOSITORY... --work FOLDER [--peers PYTHON_WITH_AIDER] [--write]

from the repository's root. Each REPOSITORY is a checkout with full history; it is cloned into FOLDER, and only clones
are touched. Every figure is one of whole processes; all of them are taken in turn, as many times as `--rounds` says.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from msgspec import Struct, field
from testing.parsed_files import parsed_files
from testing.processes import CRA, Peak, Spent, environment, peak, pin, spend

from benchmarks.commits.checkouts import git
from benchmarks.index.copies import (
    Edit,
    Edits,
    before_pull,
    choose_edits,
    clone,
    edited,
    forget,
)
from benchmarks.index.floor import PROCESSES, changed_files
from benchmarks.index.index_table import (
    FLOOR,
    PULL_FLOOR,
    UNCHANGED_RUNS,
    Contents,
    Figures,
    read_contents,
    render,
)
from benchmarks.results import write_section
from clean_room_agent.workspace import FOLDER, Workspace, trust

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Index: speed"
AIDER = Path(__file__).with_name("aider_map.py")
AIDER_CACHES = ".aider.tags.cache*"


class Place(Struct, frozen=True, kw_only=True):
    """A repository's clones, and what is done to them."""

    name: str
    top: Path
    """At HEAD, indexed."""
    pulled: Path
    """Between two commits; `former` is its index at the older one."""
    peers: Path
    """At HEAD, for programs that leave files behind."""
    former: Path
    older: str
    head: str
    commits: int
    """Between the two."""
    changed: tuple[int, float]
    """Parsed files that they leave new or changed, and their MB."""
    files: tuple[str, ...]
    """Those that are parsed."""
    edits: Edits
    contents: Contents


class Bench(Struct, kw_only=True):
    """Everything measured so far, by repository and row."""

    env: dict[str, str]
    work: Path
    aider: Path | None
    spent: dict[str, dict[str, list[Spent]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def note(self, place: Place, row: str, spent: Spent) -> None:
        """One more figure, which is also shown."""
        self.spent[place.name][row].append(spent)
        print(f"{place.name:<12} {row:<20} {spent.wall:8.3f} s {spent.processor:8.3f} CPU s", flush=True)

    def cra(self, top: Path) -> Spent:
        """One `cra index`."""
        return spend((CRA, "index", "--json"), cwd=top, env=self.env)


def main() -> None:
    """Measure, print, write the section where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", type=Path, nargs="+", help="checkouts with full history")
    parser.add_argument("--work", type=Path, required=True, help="a folder for clones; kept between runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=Path, help="an interpreter that can import aider")
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    options = parser.parse_args()
    pin(PROCESSES)
    options.work.mkdir(parents=True, exist_ok=True)
    work = options.work.resolve()
    bench = Bench(env=environment(work), work=work, aider=options.peers)
    places = [prepare(bench, source) for source in options.repositories]
    for _ in range(options.rounds):
        for place in places:
            measure(bench, place)
    peaks = {place.name: measure_memory(bench, place) for place in places}
    figures = [figures_of(bench, place, peaks[place.name]) for place in places]
    body = render(figures, rounds=options.rounds, versions=versions(options.peers))
    print(body)
    if options.write:
        write_section(RESULTS, SECTION, body)


def prepare(bench: Bench, source: Path) -> Place:
    """Clones of `source`, once indexed: files are in the cache, modules compiled."""
    name = source.resolve().name
    folder = bench.work / name
    top, pulled = clone(source, folder / "top"), clone(source, folder / "pulled")
    bench.cra(top)
    older, commits = before_pull(pulled)
    head = git(pulled, "rev-parse", "HEAD")
    git(pulled, "checkout", "-q", "--force", older)
    bench.cra(pulled)
    former = folder / "former"
    shutil.rmtree(former, ignore_errors=True)
    shutil.copytree(pulled / FOLDER, former)
    files = tuple(parsed_files(top))
    changed = changed_files(top, older)
    (folder / "files").write_text("\0".join(files), encoding="utf-8")
    (folder / "tag_files").write_text("".join(f"{path}\n" for path in files), encoding="utf-8")
    return Place(
        name=name,
        top=top,
        pulled=pulled,
        peers=clone(source, folder / "peers"),
        former=former,
        older=older,
        head=head,
        commits=commits,
        changed=(len(changed), sum((top / path).stat().st_size for path in changed) / 1e6),
        files=files,
        edits=choose_edits(top),
        contents=read_contents(Workspace(repo=top).curated),
    )


def measure(bench: Bench, place: Place) -> None:
    """Every row once, and the shortest, which other programs disturb most, several times."""
    bench.note(place, FLOOR, floor(bench, place.top))
    forget(place.top)
    bench.note(place, "cold", bench.cra(place.top))
    for _ in range(UNCHANGED_RUNS):
        bench.note(place, "nothing changed", bench.cra(place.top))
    edits = place.edits
    for row, edit in (
        ("body changed", edits.body),
        ("function added", edits.added),
        ("hub: function added", edits.hub),
        ("hub: name changed", edits.renamed),
    ):
        bench.note(place, row, after_edit(bench, place, edit))
    go_back(bench, place)
    git(place.pulled, "checkout", "-q", "--force", place.head)
    bench.note(place, PULL_FLOOR, floor(bench, place.pulled, place.older))
    bench.note(place, "commits pulled", bench.cra(place.pulled))
    measure_peers(bench, place)


def floor(bench: Bench, top: Path, *older: str) -> Spent:
    """The work on files alone, all or those that changed since a commit: neither the start of Python nor its imports."""
    command: tuple[str | Path, ...] = (sys.executable, "-m", "benchmarks.index.floor", top, *older)
    spent = spend(command, cwd=Path.cwd(), env=bench.env)
    return Spent(wall=float(spent.said), processor=spent.processor, said="")


def after_edit(bench: Bench, place: Place, edit: Edit) -> Spent:
    """The index follows the edit; then, unmeasured, its being taken back."""
    with edited(place.top, edit):
        spent = bench.cra(place.top)
    bench.cra(place.top)
    return spent


def go_back(bench: Bench, place: Place) -> None:
    """The clone stands at the older commit with the index of that time, which knows the files as they now lie there."""
    git(place.pulled, "checkout", "-q", "--force", place.older)
    forget(place.pulled)
    shutil.copytree(place.former, place.pulled / FOLDER)
    trust(place.pulled / FOLDER)
    # Files written less than two seconds before a scan are read again by the next one; a pull comes later than that.
    time.sleep(2.1)
    bench.cra(place.pulled)


def measure_peers(bench: Bench, place: Place) -> None:
    """Those that are there."""
    folder = place.top.parent
    if shutil.which("ctags"):
        options = (
            "--options=NONE",
            "--fields=+neS",
            "-f",
            str(folder / "tags"),
            "-L",
            str(folder / "tag_files"),
        )
        spent = spend(("ctags", *options), cwd=place.peers, env=bench.env)
        bench.note(place, "universal-ctags", spent)
    if bench.aider is None:
        return
    for cache in place.peers.glob(AIDER_CACHES):
        shutil.rmtree(cache)
    for row in ("aider's map, cold", "aider's map, warm"):
        # It thinks itself at home: what it keeps for its user goes where the clones are.
        env = bench.env | {"HOME": str(bench.work)}
        command = (str(bench.aider), str(AIDER), str(place.peers), str(folder / "files"))
        spent = spend(command, cwd=place.peers, env=env)
        alone = float(spent.said.split()[-1])
        bench.note(place, row, Spent(wall=alone, processor=spent.processor, said=""))


def measure_memory(bench: Bench, place: Place) -> dict[str, Peak]:
    """Looked at in runs of their own, as looking takes time."""
    command = (CRA, "index", "--json")
    forget(place.top)
    peaks = {"cold": peak(command, cwd=place.top, env=bench.env)}
    peaks["nothing changed"] = peak(command, cwd=place.top, env=bench.env)
    with edited(place.top, place.edits.renamed):
        peaks["hub: name changed"] = peak(command, cwd=place.top, env=bench.env)
    go_back(bench, place)
    git(place.pulled, "checkout", "-q", "--force", place.head)
    peaks["commits pulled"] = peak(command, cwd=place.pulled, env=bench.env)
    return peaks


def figures_of(bench: Bench, place: Place, peaks: dict[str, Peak]) -> Figures:
    """What the table says of one repository."""
    sizes = [(place.top / path).stat().st_size for path in place.files]
    tags = place.top.parent / "tags"
    lines = tags.read_bytes().split(b"\n") if tags.exists() else []
    return Figures(
        name=place.name,
        spent=dict(bench.spent[place.name]),
        peaks=peaks,
        files=len(place.files),
        source_mb=sum(sizes) / 1e6,
        commits=place.commits,
        changed=place.changed,
        edits=place.edits,
        contents=place.contents,
        tags=sum(bool(line) and not line.startswith(b"!_") for line in lines),
    )


def versions(aider: Path | None) -> str:
    """The peers'."""
    said = []
    if shutil.which("ctags"):
        done = subprocess.run(("ctags", "--version"), capture_output=True, text=True, check=True)
        said.append(done.stdout.split(",")[0])
    if aider is not None:
        code = "from importlib.metadata import version; print(version('aider-chat'))"
        done = subprocess.run((aider, "-c", code), capture_output=True, text=True, check=True)
        said.append(f"aider {done.stdout.strip()}")
    return ", ".join(said)


if __name__ == "__main__":
    main()
