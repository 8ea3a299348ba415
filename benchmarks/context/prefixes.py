"""How much of a run's prompts a server's prefix cache can serve: by the record of oracle runs, and on a real server.

python -m benchmarks.context.prefixes [NAME=]WORK ... [--setting 32k] [--only TEXT ...]
    [--server] [--write TITLE]

A request can be served from a cache as far as it begins like an earlier one of its run to the same model, system text
included. What is kept differs: vLLM and a llama-server with memory for it keep all (`any earlier`), one slot keeps the
newest (`the one before`). Who has one model for all roles shares more: the last two figures count each run as if all its
calls went to one. Characters are counted, which differ from tokens by a tokeniser's factor that both sides have.

With `--server`, the prompts of each run are then sent to a real llama-server with a model of 135 million parameters
(`testing/servers/packaged_models.py`), in their order and to one model, each run from an empty cache, with one
token to answer. What it served from its cache is its own count; the seconds are those of the processor, so that other work
on the machine does not count. What such a model answers says nothing, so nothing is said of it.
"""

import argparse
import contextlib
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
from msgspec import Struct
from testing.runs.recorded import list_orchestrator_runs
from testing.servers.packaged_models import WEAK, models_folder, serving

from benchmarks.results import table, write_section
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.llm.probes import PROBE_NAME

RESULTS = Path(__file__).with_name("RESULTS.md")
SERVER_WINDOW = 8192
"""What the weak model was trained for; longer prompts are left out and counted."""
READ_TIMEOUT_S = 600.0
PREFACE = (
    "The share of the prompts' characters with which an earlier request of the same run began, in percent: of all runs "
    "together, and the median run. `any earlier`: the server keeps all of them; `the one before`: only the newest to that "
    "model. `one model`: the same model has all roles."
)
SERVER_PREFACE = (
    "The same prompts, sent in order to a real llama-server (SmolLM2-135M, on the processor, one slot, every run from an "
    "empty cache, one token to answer): tokens by its own count, and the processor's seconds, the server's start included. "
    "The model's answers are not looked at."
)
HEAD = (
    "runs of",
    "runs",
    "calls",
    "characters a run",
    "any earlier",
    "median",
    "the one before",
    "one model, any earlier",
    "one model, the one before",
)
SERVER_HEAD = (
    "runs of",
    "runs",
    "calls",
    "too long",
    "prompt tokens",
    "from the cache",
    "percent",
    "processor s",
)


class Share(Struct, frozen=True, kw_only=True):
    """Of a run's requests, in characters."""

    total: int
    shared: int

    @property
    def percent(self) -> float:
        """0..100."""
        return 100 * self.shared / max(self.total, 1)


class Served(Struct, frozen=True, kw_only=True):
    """What a server counted."""

    tokens: int
    cached: int


def common_prefix(one: str, other: str) -> int:
    """Characters that both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def share_of(calls: Sequence[ModelCall], *, newest_only: bool, one_model: bool) -> Share:
    """How much of the calls' text an earlier one to the same model began with."""
    kept: dict[str, list[str]] = {}
    total = shared = 0
    for call in calls:
        text = f"{call.request.system_prompt}\0{call.request.prompt}"
        earlier = kept.setdefault("" if one_model else call.model.tag, [])
        shared += max((common_prefix(text, other) for other in earlier), default=0)
        total += len(text)
        earlier[: len(earlier) if newest_only else 0] = []
        earlier.append(text)
    return Share(total=total, shared=shared)


def runs_of(work: Path, setting: str, only: Sequence[str]) -> dict[str, tuple[ModelCall, ...]]:
    """By commit: what the run asked, in order, without the probes of a server's window."""
    found = {}
    for record in sorted((work / "solve").glob(f"*/{setting}.sqlite")):
        name = record.parent.name
        if only and not any(text in name for text in only):
            continue
        with (
            tempfile.TemporaryDirectory() as folder
        ):  # an earlier build's record is migrated, and stays as it is
            copy = Path(shutil.copy(record, folder))
            with contextlib.closing(connect_file("raw", copy)) as conn:
                calls = [
                    call for run in list_orchestrator_runs(conn) for call in list_calls(conn, run.task_id)
                ]
        found[name] = tuple(call for call in calls if call.site.call_type != PROBE_NAME)
    return found


def figures(name: str, runs: Sequence[Sequence[ModelCall]]) -> tuple[object, ...]:
    """A line of the table."""
    kinds = [
        [share_of(run, newest_only=newest, one_model=one) for run in runs]
        for one in (False, True)
        for newest in (False, True)
    ]
    together = [
        f"{100 * sum(share.shared for share in kind) / max(sum(share.total for share in kind), 1):.1f}"
        for kind in kinds
    ]
    median = f"{statistics.median(share.percent for share in kinds[0]):.1f}"
    characters = statistics.median(share.total for share in kinds[0])
    return (
        name,
        len(runs),
        sum(map(len, runs)),
        f"{characters:,.0f}",
        together[0],
        median,
        *together[1:],
    )


def asker(base_url: str) -> Callable[[ModelCall], Served | None]:
    """Sends a recorded request to a llama-server for one token."""
    client = httpx.Client(base_url=base_url, trust_env=False, timeout=READ_TIMEOUT_S)

    def ask(call: ModelCall) -> Served | None:
        roles = (("system", call.request.system_prompt), ("user", call.request.prompt))
        answer = client.post(
            "/v1/chat/completions",
            json={
                "model": WEAK,
                "messages": [{"role": role, "content": text} for role, text in roles if text],
                "max_tokens": 1,
                "cache_prompt": True,
            },
        )
        if answer.status_code == httpx.codes.BAD_REQUEST:
            return None
        timings = answer.raise_for_status().json()["timings"]
        cached, read = int(timings["cache_n"]), int(timings["prompt_n"])
        return Served(tokens=cached + read, cached=cached)

    return ask


def served_figures(
    columns: dict[str, dict[str, tuple[ModelCall, ...]]],
) -> list[tuple[object, ...]]:
    """A line of the server's table for each column, their runs in turn, so that a busy hour meets all of them."""
    names = sorted(set.intersection(*(set(runs) for runs in columns.values())))
    found: dict[str, list[Served | None]] = {column: [] for column in columns}
    seconds = dict.fromkeys(columns, 0.0)
    for name in names:
        for column, runs in columns.items():
            before = _childrens_seconds()
            with serving(WEAK, models_folder(), window=SERVER_WINDOW, threads=1) as server:
                found[column].extend(map(asker(server.base_url), runs[name]))
            seconds[column] += _childrens_seconds() - before
            print(f"{name} {column}", file=sys.stderr, flush=True)
    return [_served_line(column, len(names), answers, seconds[column]) for column, answers in found.items()]


def _childrens_seconds() -> float:
    """Of the processor, for all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _served_line(
    column: str, runs: int, answers: Sequence[Served | None], seconds: float
) -> tuple[object, ...]:
    read = [one for one in answers if one is not None]
    tokens, cached = sum(one.tokens for one in read), sum(one.cached for one in read)
    return (
        column,
        runs,
        len(answers),
        len(answers) - len(read),
        f"{tokens:,}",
        f"{cached:,}",
        f"{100 * cached / max(tokens, 1):.1f}",
        f"{seconds:.1f}",
    )


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("works", nargs="+", metavar="[NAME=]WORK", help="work folder of benchmarks.oracle")
    parser.add_argument("--setting", default="32k")
    parser.add_argument("--only", action="append", default=[], help="only commits in whose id this stands")
    parser.add_argument("--server", action="store_true", help="ask a real server with the weak model, too")
    parser.add_argument("--write", metavar="TITLE", help="put the tables into RESULTS.md")
    arguments = parser.parse_args()
    columns = {}
    for text in arguments.works:
        name, _, place = text.rpartition("=")
        columns[name or place] = runs_of(Path(place).resolve(), arguments.setting, arguments.only)
    shared = set.intersection(*(set(runs) for runs in columns.values()))
    lines = [
        figures(name, [run for key, run in runs.items() if key in shared]) for name, runs in columns.items()
    ]
    parts = [PREFACE, table(HEAD, lines)]
    if arguments.server:
        parts += [SERVER_PREFACE, table(SERVER_HEAD, served_figures(columns))]
    text = "\n\n".join(parts)
    print(text)
    if arguments.write:
        write_section(RESULTS, arguments.write, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
