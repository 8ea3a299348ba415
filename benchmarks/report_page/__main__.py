"""What the page of a run of many calls costs, and how it does in a browser.

    python -m benchmarks.report_page WORK [--calls 500] [--real REPOSITORY] [--packages FOLDER]

Bytes and seconds of `cra report`; with `--packages`, a `node_modules` that holds playwright-core and axe-core, also what
Chromium says: seconds to the `load` event and to the first paint, requests beyond the page itself, what its policy refused, what axe-core finds in
light, dark and 360 pixels wide. WORK then holds pictures to look at. `--real` adds the newest run of a repository.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from testing.repositories import make_repository
from testing.runs.large_run import write_large_run
from testing.seeded_record import seed_record

LOST = {
    "retrieval": 6,
    "scope": 12,
    "precision": 5,
    "budget": 2,
    "part_plan": 7,
    "implement": 9,
    "unknown": 3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--packages", type=Path)
    options = parser.parse_args()
    work: Path = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    top = make_repository(work / "one", {"src/a.py": "x = 1\n"})
    task = write_large_run(top, count=options.calls)
    many = make_repository(work / "many", {"src/a.py": "x = 1\n"})
    seed_record(many, LOST)
    pages: list[tuple[str, tuple[str, ...]]] = [
        ("run", (task, "--repo", str(top))),
        ("all", ("--all", "--repo", str(many))),
    ]
    if options.real is not None:
        pages.append(("real", ("--repo", str(options.real.resolve()))))
    for name, words in pages:
        page = work / f"{name}.html"
        started = time.monotonic()
        command = (sys.executable, "-m", "clean_room_agent", "report", *words, "-o", str(page))
        subprocess.run(command, check=True, capture_output=True)
        print(f"{name}: {page.stat().st_size:,} bytes, written in {time.monotonic() - started:.1f} s")
        if options.packages is not None:
            for line in browsed(page, options.packages.resolve()):
                print(f"  {line}")


def browsed(page: Path, packages: Path) -> list[str]:
    """What the browser says of the page."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        return ["no Chromium"]
    pictures = page.with_suffix("")
    pictures.mkdir()
    script = Path(__file__).with_name("browser.mjs")
    env = {**os.environ, "CRA_NODE_PACKAGES": str(packages)}
    command = ("node", str(script), program, str(page), str(pictures))
    last = json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
    seconds, painted = last["seconds"], [one for one in last["painted"] if one]
    return [
        f"{len(seconds)} loads: {min(seconds):.2f} to {max(seconds):.2f} s",
        f"first painted after {min(painted):.2f} to {max(painted):.2f} s",
        f"requests beyond the page: {len(last['requests'])}; refused or raised: {len(last['refused'])}",
        *(
            f"axe-core, {look}: {len(found)} violations {found or ''}"
            for look, found in last["violations"].items()
        ),
        *(
            f"{look}: wider than the window by {pixels} pixels"
            for look, pixels in last["wider"].items()
            if pixels > 0
        ),
        f"rules that axe-core checked: {last['checked']}",
    ]


if __name__ == "__main__":
    main()
