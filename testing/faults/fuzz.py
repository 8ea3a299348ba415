"""Answers, plans, paths, configurations, reports, source files: valid examples mutated, read through the doors they come
in by. Found is whatever raises something that is not of `CraError`, breaks a promise, or takes more than a second.

    python -m testing.faults.fuzz 123456          # one input again, by the number that a finding is told with
"""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Literal

from msgspec import Struct

from clean_room_agent.errors import CraError
from testing.faults.figures import Effort, Figure
from testing.faults.fuzz_targets import Broken, Target, make_targets
from testing.faults.mutation import Mutator

TIMES: dict[Effort, int] = {"short": 3_000, "full": 1_000_000}
SEED = 7
SLOW_S = 1.0
STUCK_S = 30
PORTION = 500
WORKERS = 2
SHOWN = 40

Kind = Literal["exception", "slow", "promise"]
MakeTargets = Callable[[Path], tuple[Target, ...]]


class StuckError(BaseException):
    """An input held its reader for `STUCK_S`; no reader may take it for an error of its own."""


class Finding(Struct, frozen=True, kw_only=True):
    """One input that was not read as promised."""

    number: int
    """What `one` makes it again from."""
    target: str
    kind: Kind
    what: str
    """Where it was raised, or how long it took: the same for findings of the same cause, mostly."""


class Case(Struct, frozen=True, kw_only=True):
    """An input and who reads it."""

    target: Target
    text: str
    rng: random.Random


class Services:
    """All targets; `folder` is for files that must exist to be read."""

    def __init__(self, folder: Path, make: MakeTargets = make_targets) -> None:
        self.targets = make(folder)

    def case(self, number: int) -> Case:
        """The input of this number: always the same."""
        rng = random.Random((SEED << 40) + number)
        target = rng.choices(self.targets, [one.weight for one in self.targets])[0]
        return Case(
            target=target, text=Mutator(target.seeds, target.words, target.longest).make(rng), rng=rng
        )

    def try_one(self, number: int) -> Finding | None:
        """What was wrong with the way the input was read."""
        case = self.case(number)
        found, seconds = _timed(case)
        if found is None and seconds > SLOW_S:
            # Once more: the first time compiles expressions and loads modules.
            again = _timed(self.case(number))[1]
            if again > SLOW_S:
                found = ("slow", f"{again:.1f} s")
        if found is None:
            return None
        return Finding(number=number, target=case.target.name, kind=found[0], what=found[1])


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """The figures of all inputs."""
    what = "fuzzed answers, plans, paths, configurations, reports, source files"
    return figures(TIMES[effort], work, make_targets, what=what, target="0 in 1,000,000")


def figures(times: int, work: Path, make: MakeTargets, *, what: str, target: str) -> tuple[Figure, ...]:
    """Of so many inputs; each kind of finding is told on standard error with a number to try it again."""
    findings = []
    for finding in fuzz(range(times), work, make):
        # At once: a long run that is stopped has still said what it found.
        print(finding, file=sys.stderr, flush=True)
        findings.append(finding)
    report(findings)
    counts = Counter(finding.kind for finding in findings)
    names: dict[Kind, str] = {
        "exception": f"{what}: uncaught exceptions",
        "promise": f"{what}: promises broken",
        "slow": f"{what}: slower than 1 s",
    }
    return tuple(
        Figure(name=name, tried=times, found=counts[kind], target=target, met=not counts[kind])
        for kind, name in names.items()
    )


def fuzz(numbers: range, work: Path, make: MakeTargets = make_targets) -> Iterable[Finding]:
    """The findings of the inputs of these numbers, in some order."""
    portions = [numbers[at : at + PORTION] for at in range(0, len(numbers), PORTION)]
    if len(portions) < 2 * WORKERS:
        services = Services(work, make)
        for number in numbers:
            if (finding := services.try_one(number)) is not None:
                yield finding
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(WORKERS, initializer=_prepare, initargs=(work, make)) as pool:
        for done, found in enumerate(pool.imap_unordered(_portion, portions), 1):
            if done % 200 == 0:
                print(f"{done * PORTION:,} of {len(numbers):,}", file=sys.stderr)
            yield from found


def report(findings: Iterable[Finding], *, shown: int = SHOWN) -> None:
    """Findings of the same cause in one line, with the number of the first."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for finding in findings:
        what = finding.what if finding.kind != "slow" else ""
        grouped.setdefault((finding.target, finding.kind, what), []).append(finding.number)
    for (target, kind, what), numbers in sorted(grouped.items(), key=lambda item: -len(item[1]))[:shown]:
        print(f"{len(numbers):6} x {target}: {kind} {what}; such as number {min(numbers)}", file=sys.stderr)


_desk: list[Services] = []
"""Of a worker process."""


def _prepare(work: Path, make: MakeTargets) -> None:
    folder = work / f"worker-{os.getpid()}"
    folder.mkdir(parents=True)
    _desk.append(Services(folder, make))


def _portion(numbers: range) -> list[Finding]:
    return [finding for number in numbers if (finding := _desk[0].try_one(number)) is not None]


def _timed(case: Case) -> tuple[tuple[Kind, str] | None, float]:
    """What was wrong, and the processor's seconds."""
    signal.signal(signal.SIGALRM, _stuck)
    signal.alarm(STUCK_S)
    started = time.process_time()
    found: tuple[Kind, str] | None = None
    try:
        case.target.read(case.text, case.rng)
    except CraError:
        pass
    except Broken as exc:
        found = "promise", str(exc)
    except StuckError:
        found = "slow", f"more than {STUCK_S} s"
    except Exception as exc:  # noqa: BLE001 - to find these is what this is for
        found = "exception", _place(exc)
    finally:
        signal.alarm(0)
    return found, time.process_time() - started


def _place(exc: Exception) -> str:
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    ours = [one for one in traceback.extract_tb(exc.__traceback__) if "clean_room_agent" in one.filename]
    where = ours[-1] if ours else frame
    return f"{type(exc).__name__} at {Path(where.filename).name}:{where.lineno}"


def _stuck(_number: int, _frame: FrameType | None) -> None:
    raise StuckError


def main(make: MakeTargets = make_targets) -> None:
    """Shows the inputs of the given numbers and what they raise."""
    with tempfile.TemporaryDirectory() as folder:
        services = Services(Path(folder), make)
        for number in map(int, sys.argv[1:]):
            case = services.case(number)
            print(f"{number}: {case.target.name}, {len(case.text)} characters: {case.text[:2000]!r}")
            started = time.process_time()
            try:
                case.target.read(case.text, case.rng)
            finally:
                print(f"{time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
