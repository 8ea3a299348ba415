"""Which forms repair one-line faults, and with how many answer tokens: the right place is given, nothing is planned.

    python -m benchmarks.real.forms WORK MIRRORS [--split dev|test] [--only TEXT,...] [--forms NAME,...] [--faults N [--skip N]]
                                    [--tokens N]
                                    [--model NAME | --base-url URL --model NAME] [--against NAME] [--slots N] [--threads N]
                                    [--write]

WORK and MIRRORS as for `python -m benchmarks.real`. The faults are those of `seeded.py`: a documented definition with one
mutation; the goal is one example that fails. Requests are sent in the order in which the form makes them, until a candidate
turns the goal green and breaks no example that held, or `--tokens` answer tokens are spent. Where that is a large change, a few
more gaps are asked for, as in a run whose goal stands only in words, and the smallest green one counts. It is right if all
examples hold, which nothing but the judge knows. Each answer is kept in WORK under what was asked, so a second run asks only what the
first did not, and an order can be tried without a model. `--against` compares with the kept answers of another model, such as the
base of an adapter that the server answers with: the same faults, the same bound of tokens, exact McNemar.
"""

import argparse
import difflib
import hashlib
import json
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from testing.client.memory_sink import MemorySink
from testing.servers.packaged_models import CODER, MODELS, FetchError, models_folder, serving

from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.real.seeded import REPOSITORIES, ExampleJudge, SeededFault, faults, tree_of
from benchmarks.real.tasks import Bench
from benchmarks.results import write_section
from clean_room_agent.artifacts.goals import GoalSource, GoalTest
from clean_room_agent.execute.forms import masked, worded
from clean_room_agent.execute.forms.masks import Mask
from clean_room_agent.execute.forms.openings import Opening
from clean_room_agent.execute.forms.place import SAME, Assignment, Place, Refused, place_of
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transports import openai
from clean_room_agent.orchestrator.direct.candidates import changed_tokens
from clean_room_agent.orchestrator.direct.questions import (
    MASKED_AT_A_TIME,
    MOST_AGAIN,
    RIVAL_ROUNDS,
    SMALL,
)
from clean_room_agent.training.statistics import mcnemar

RESULTS = Path(__file__).with_name("RESULTS.md")
FORMS = ("masked", "function", "lines")
GREEN = frozenset({"right", "wrong"})
BUDGETS = (50, 100, 150, 300, 600)
WINDOW = 4096


class Answered(NamedTuple):
    """What a model answered, and what it cost."""

    text: str
    whole: bool
    tokens: int
    logprob: float | None


class Try(Struct, frozen=True, kw_only=True):
    """One request for a fault, in order."""

    form: str
    telling: str
    """Of `masked`; else the form."""
    mask: str
    """Its kind; "" for other forms."""
    draw: int
    tokens: int
    """Spent up to and with this one."""
    outcome: str
    """`right`, `wrong` (the goal is green), `broken` (it is, but what held is not), `red`, `same`, `refused`, `cut`, `again`."""
    reason: str = ""
    changed: int = 0
    """Tokens that a green one adds and takes away."""


Results = dict[str, list[tuple[SeededFault, list[Try]]]]
"""What was tried for each fault, by form."""


class Solver(Struct, kw_only=True):
    """Asks a model, or remembers what it answered."""

    client: ModelClient | None
    folder: Path
    lock: threading.Lock

    def fill(self, request: masked.MaskedRequest) -> Answered | None:
        """The text of a gap; None if it is not known, and nobody can be asked."""
        fill = request.fill
        key = [
            fill.before,
            fill.after,
            list(fill.stop),
            fill.max_tokens,
            fill.sampling.temperature,
            fill.sampling.seed,
        ]

        def ask() -> Answered:
            assert self.client is not None
            reply = self.client.fill(fill, pass_id="t:p")
            return Answered(reply.text, reply.whole, reply.completion_tokens or 0, reply.mean_logprob)

        return self._kept(key, ask)

    def ask(self, request: worded.FormRequest) -> Answered | None:
        """The text of an answer, as `fill`."""
        asked = str.__str__(request.prompt.render(request.inputs))
        key = [asked, request.max_answer_tokens, request.sampling.temperature, request.sampling.seed]

        def ask() -> Answered:
            assert self.client is not None
            reply = self.client.ask(
                request.prompt,
                request.inputs,
                pass_id="t:p",
                sampling=request.sampling,
                repair=False,
                max_answer_tokens=request.max_answer_tokens,
            )
            return Answered(reply.text, reply.finish == "stop", reply.completion_tokens or 0, None)

        return self._kept(key, ask)

    def _kept(self, key: list[Any], ask: Any) -> Answered | None:
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]
        file = self.folder / name[:2] / f"{name}.json"
        if not file.exists():
            if self.client is None:
                return None
            answered = ask()
            with self.lock:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(answered), encoding="utf-8")
        return Answered(*json.loads(file.read_text(encoding="utf-8")))


def attempts(
    form: str, place: Place, fault: SeededFault, solver: Solver, broke: Sequence[GoalTest]
) -> Iterator[tuple[Try, str | Refused] | None]:
    """Each request of the form with what its answer makes of the file; None once an answer is not known. `broke` is read as the
    iteration goes on: examples that held, and fail with the answer before.
    """
    goal = fault.goal
    assignment = Assignment(
        task=f"{goal.call} gives {goal.got}, but it should give {goal.wanted}.", goals=(goal,)
    )
    if form == "masked":
        natural: set[Mask] = set()
        opened: list[Opening] = []
        gaps = masked.requests(place, fault.bad, assignment, natural=natural, opened=opened)
        for request in _with_what_broke(gaps, place, fault, assignment, broke):
            answered = solver.fill(request)
            if answered is None:
                yield None
                return
            done: str | Refused = Refused(reason="cut")
            if answered.whole:
                done = masked.apply(place, fault.bad, request.mask, answered.text, request.opening)
                opening = masked.opened_by(place, fault.bad, request, answered.text)
                opened += [] if opening is None else [opening]
            if isinstance(done, Refused) and done.reason == SAME:
                natural.add(request.mask)
            tried = Try(
                form=form,
                telling=request.telling,
                mask="block" if request.opening else request.mask.kind,
                draw=request.draw,
                tokens=answered.tokens,
                outcome="",
            )
            yield tried, done
        return
    prompt = worded.FUNCTION if form == "function" else worded.LINES
    for asked in worded.requests(prompt, place, fault.bad, assignment):
        answered = solver.ask(asked)
        if answered is None:
            yield None
            return
        read = asked.prompt.parse(answered.text)
        if isinstance(read, ParseFault):
            done = Refused(reason=read.fault)
        else:
            done = worded.apply(place, fault.bad, read)
        yield Try(form=form, telling=form, mask="", draw=asked.draw, tokens=answered.tokens, outcome=""), done


def _with_what_broke(
    asked: Iterator[masked.MaskedRequest],
    place: Place,
    fault: SeededFault,
    assignment: Assignment,
    broke: Sequence[GoalTest],
) -> Iterator[masked.MaskedRequest]:
    """The requests; behind one that broke an example, its gap once more with that told, as in a run."""
    told = 0
    for request in asked:
        before = len(broke)
        yield request
        if len(broke) > before and told < MOST_AGAIN:
            told += 1
            goals = (*assignment.goals[:1], broke[-1])
            yield from masked.same_gap_requests(
                place, fault.bad, msgspec.structs.replace(assignment, goals=goals), request
            )


def solve(form: str, fault: SeededFault, solver: Solver, judge: ExampleJudge, most: int) -> list[Try]:
    """What was tried for the fault, up to a candidate that is accepted, or to the bound of answer tokens."""
    place = place_of(fault.traced, fault.bad)
    tries: list[Try] = []
    seen = {fault.bad}
    spent, left = 0, -1
    broke: list[GoalTest] = []
    for attempt in attempts(form, place, fault, solver, broke) if place is not None else ():
        if attempt is None or spent >= most or not left:
            break
        left -= left > 0
        tried, done = attempt
        spent += tried.tokens
        outcome, reason = _outcome(done, seen, fault, judge, broke)
        green = outcome in GREEN and not isinstance(done, Refused)
        changed = changed_tokens(_diff(fault.bad, done)) if green else 0  # type: ignore[arg-type]
        tries.append(
            Try(
                form=form,
                telling=tried.telling,
                mask=tried.mask,
                draw=tried.draw,
                tokens=spent,
                outcome=outcome,
                reason=reason,
                changed=changed,
            )
        )
        if green and (form != "masked" or changed <= SMALL):
            break
        if green and left < 0:
            left = RIVAL_ROUNDS * MASKED_AT_A_TIME
    return tries


def end_of(tries: Sequence[Try]) -> Try:
    """How it ended: with the smallest change of those that are green, after all that was asked."""
    green = [one for one in tries if one.outcome in GREEN]
    return (
        msgspec.structs.replace(min(green, key=lambda one: one.changed), tokens=tries[-1].tokens)
        if green
        else tries[-1]
    )


def against(own: Results, other: Results, name: str, most: int) -> str:
    """What one model repairs within the bound and the other does not, in Markdown; of faults for which both were asked."""
    lines = [
        "| form | faults | right | of the other | only here | only there | p | wrong | of the other |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for form, rows in own.items():
        ended = {fault.id: end_of(tries) for fault, tries in other[form] if tries}
        pairs = [(end_of(tries), ended[fault.id]) for fault, tries in rows if tries and fault.id in ended]
        right = [tuple(end.outcome == "right" and end.tokens <= most for end in pair) for pair in pairs]
        here, there = (sum(pair[side] and not pair[1 - side] for pair in right) for side in (0, 1))
        first, second = (sum(pair[side] for pair in right) for side in (0, 1))
        wrong, others = (sum(pair[side].outcome == "wrong" for pair in pairs) for side in (0, 1))
        p = mcnemar(here, there)
        lines.append(
            f"| {form} | {len(pairs)} | {first} | {second} | {here} | {there} | {p:.3f} | {wrong} | {others} |"
        )
    return "\n".join([f"Beside {name}, right within {most} answer tokens:", "", *lines])


def _diff(old: str, new: str) -> str:
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))


def _outcome(
    done: str | Refused, seen: set[str], fault: SeededFault, judge: ExampleJudge, broke: list[GoalTest]
) -> tuple[str, str]:
    """What became of a candidate, and why; an example that it breaks is put to `broke`."""
    if isinstance(done, Refused):
        return "same" if done.reason == SAME else "cut" if done.reason == "cut" else "refused", done.reason
    if done in seen:
        return "again", ""
    seen.add(done)
    ran = judge.run(fault.module, fault.name, done, document=fault.good)
    if ran is None or len(ran) != fault.examples or ran[fault.goal_at].got:
        return "red", ""
    failing = next((ran[at] for at in fault.passing if ran[at].got), None)
    if failing is not None:
        broke.append(
            GoalTest(
                name="kept",
                source=GoalSource.DOCUMENTED,
                call=failing.source.strip(),
                wanted=failing.want.strip(),
            )
        )
        return "broken", ""
    return "wrong" if any(example.got for example in ran) else "right", ""


def page(results: Results) -> str:
    """The tables, in Markdown."""
    text = [
        "| form | faults | "
        + " | ".join(f"right ≤ {n} tokens" for n in BUDGETS)
        + " | green but wrong | tokens |"
    ]
    text.append("|---|---|" + "---|" * (len(BUDGETS) + 2))
    for form, rows in results.items():
        ends = [end_of(tries) for _, tries in rows if tries]
        right = [sum(end.outcome == "right" and end.tokens <= most for end in ends) for most in BUDGETS]
        wrong = sum(end.outcome == "wrong" for end in ends)
        spent = statistics.mean(end.tokens for end in ends) if ends else 0
        shares = " | ".join(f"{n} ({100 * n // max(len(rows), 1)} %)" for n in right)
        text.append(f"| {form} | {len(rows)} | {shares} | {wrong} | {spent:.0f} |")
        newer = [end_of(tries) for fault, tries in rows if fault.new and tries]
        counts = [sum(end.outcome == "right" and end.tokens <= most for end in newer) for most in BUDGETS]
        wrong = sum(end.outcome == "wrong" for end in newer)
        cells = " | ".join(str(count) for count in counts)
        text.append(f"| {form}, newer definitions | {len(newer)} | {cells} | {wrong} | |")
    text += [
        "",
        "| form | told | mask | draw | asked | right | wrong | broken | red | same | refused | cut | again |",
    ]
    text.append("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    counted: dict[tuple[str, str, str, int], Counter[str]] = {}
    for rows in results.values():
        for _, tries in rows:
            for tried in tries:
                counted.setdefault((tried.form, tried.telling, tried.mask, min(tried.draw, 2)), Counter())[
                    tried.outcome
                ] += 1
    for (form, telling, mask, draw), counts_of in counted.items():
        outcomes = ("right", "wrong", "broken", "red", "same", "refused", "cut", "again")
        cells = " | ".join(str(counts_of[outcome]) for outcome in outcomes)
        text.append(f"| {form} | {telling} | {mask} | {draw} | {counts_of.total()} | {cells} |")
    return "\n".join(text)


def run(asked: argparse.Namespace, bench: Bench, url: str, model: str) -> Results:
    """What each form did with each fault of the split; without `url` by the kept answers of the model."""
    client = None
    if url:
        config = ModelsConfig(
            provider="openai", base_url=url, coding=model, reasoning=model, parallel=asked.slots
        )
        router = ModelRouter(config, BudgetConfig(context_window=asked.window, reserved_tokens=1024))
        client = ModelClient(
            router, openai.connect(config), MemorySink(), lambda: "2026-01-01T00:00:00+00:00"
        )
    solver = Solver(client=client, folder=bench.work / "answers" / model, lock=threading.Lock())
    results: Results = {form: [] for form in asked.forms}
    chosen = [
        one
        for one in REPOSITORIES
        if one.split == asked.split and any(text in one.name for text in asked.only.split(","))
    ]
    for repository in chosen:
        found = faults(bench, repository, asked.faults)[asked.skip :]

        def do(
            pair: tuple[str, SeededFault], repository: Any = repository
        ) -> tuple[str, SeededFault, list[Try]]:
            form, fault = pair
            with ExampleJudge(bench, repository, tree_of(bench, repository)) as judge:
                tries = solve(form, fault, solver, judge, asked.tokens)
            end = end_of(tries) if tries else None
            said = (
                "nothing asked"
                if end is None
                else f"{end.outcome} {end.telling} {end.mask} {end.tokens} tokens"
            )
            print(f"{form:9}{fault.id:60} {said}", flush=True)
            return form, fault, tries

        with ThreadPoolExecutor(asked.slots) as pool:
            for form, fault, tries in pool.map(
                do, [(form, fault) for form in asked.forms for fault in found]
            ):
                results[form].append((fault, tries))
    return results


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(FORMS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(FORMS)}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """The tables are printed, and written to RESULTS.md where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("mirrors")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument(
        "--only", default="", metavar="TEXT,...", help="only repositories in whose name one of these stands"
    )
    parser.add_argument("--forms", type=_names, default=list(FORMS))
    parser.add_argument("--faults", type=int, default=30, metavar="N", help="of a repository")
    parser.add_argument(
        "--skip",
        type=int,
        default=0,
        metavar="N",
        help="of these, leave out the first N, which were looked at",
    )
    parser.add_argument(
        "--tokens", type=int, default=300, metavar="N", help="of answers to a fault, for each form"
    )
    parser.add_argument(
        "--model", default=CODER, help=f"one of {', '.join(MODELS)}, or the server's name for it"
    )
    parser.add_argument("--base-url", default="", help="of a server that runs, without /v1")
    parser.add_argument("--kept", action="store_true", help="ask no model: only what was answered before")
    parser.add_argument("--against", default="", metavar="NAME", help="a model that was asked before")
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(arguments)
    bench = Bench(work=asked.work.resolve(), mirrors=asked.mirrors)
    bench.work.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            url = "" if asked.kept else asked.base_url
            if not url and not asked.kept:
                options = {"slots": asked.slots, "window": asked.window, "threads": asked.threads}
                url = stack.enter_context(serving(asked.model, models_folder(), **options)).base_url
            found = run(asked, bench, url, asked.model)
            text = page(found)
        if asked.against:
            other = run(asked, bench, "", asked.against)
            text += f"\n\n{against(found, other, asked.against, asked.tokens)}"
    except (BenchmarkError, FetchError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{text}")
    if asked.write:
        named = f" ({asked.only})" if asked.only else ""
        write_section(RESULTS, f"forms, {asked.model}, {asked.split}{named}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
