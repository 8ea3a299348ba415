"""Makes training pairs of small faults that are planted in what passing tests run: what the direct route of a run would ask
about a fault, with the answers that restore the file.

The run is a real one up to its first question, so a prompt is byte for byte what a run sends that begins with this fault and
these words. Its baseline proves the fault: a test fails that passes without it.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest

from msgspec import Struct, structs

from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GoalSource, GoalTest, TracedFunction
from clean_room_agent.errors import UsageError, WindowExceeded
from clean_room_agent.execute.edits.static_checks import static_fault
from clean_room_agent.execute.forms import masked, worded
from clean_room_agent.languages.mutation import Mutation
from clean_room_agent.languages.registry import language_at
from clean_room_agent.llm.token_estimator import estimate
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Transport
from clean_room_agent.orchestrator.direct.candidates import stand_on_goals
from clean_room_agent.orchestrator.direct.questions import likeliest
from clean_room_agent.orchestrator.direct.route import pass_of, what_to_ask
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goals import collect_goals, goal_of_test
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.paths import kind_of
from clean_room_agent.training.pairs import MadePairs, TrainingPair

MOST_BROKEN = 10
"""Test functions that a fault breaks: more are seldom told of one."""
MOST_GAPS = 6
"""Of a fault, in the order in which a run asks: further ones tell the same of more lines."""
MOST_SAID = 300
"""Characters of a call and its values that somebody would write."""
ERROR = re.compile(r"[A-Z]\w*(?:Error|Exception)\b")


class Fault(Struct, frozen=True, kw_only=True):
    """A fault in a function."""

    path: str
    symbol: str
    """The function, qualified."""
    mutation: Mutation


class GoldAnswers(Transport):
    """Answers with the text that is set, as far as it may be as long, and keeps what was asked last."""

    provider = "faults"
    live = False
    answer: str | None = None
    asked: ChatRequest

    def send(self, request: ChatRequest) -> RawAnswer:
        """The answer.

        Raises:
            UsageError: none is set.
        """
        if self.answer is None:
            raise UsageError("a model would be asked what the task is about")
        self.asked = request
        whole = estimate(self.answer) <= request.max_tokens
        return RawAnswer(request_body="{}", text=self.answer, finish="stop" if whole else "length")


def draw_faults(
    functions: Sequence[TracedFunction],
    texts: Mapping[str, str],
    chance: random.Random,
    *,
    per_function: int,
    most: int,
) -> tuple[Fault, ...]:
    """At most so many faults of lines that ran, of each kind in turn, so that frequent kinds do not crowd out the others. `texts`
    are the files', by path.
    """
    by_kind: dict[str, list[Fault]] = defaultdict(list)
    for path, text in sorted(texts.items()):
        ran = {line: one.name for one in functions if one.path == path for line, _ in one.lines}
        language = language_at(path) if kind_of(path) == "code" else None
        for mutation in language.mutations(text) if language is not None else ():
            symbol = ran.get(text.encode().count(b"\n", 0, mutation.start) + 1)
            if symbol is not None:
                by_kind[mutation.kind].append(Fault(path=path, symbol=symbol, mutation=mutation))
    shuffled = [chance.sample(by_kind[kind], len(by_kind[kind])) for kind in sorted(by_kind)]
    drawn: list[Fault] = []
    counts: Counter[tuple[str, str]] = Counter()
    for fault in filter(None, chain.from_iterable(zip_longest(*shuffled))):
        text, place = texts[fault.path], (fault.path, fault.symbol)
        if len(drawn) == most:
            break
        if counts[place] < per_function and not static_fault(*place, text, fault.mutation.applied(text)):
            counts[place] += 1
            drawn.append(fault)
    return tuple(drawn)


def make_fault_pairs(
    run: Run, gold: GoldAnswers, fault: Fault, right: str, green: Collection[str], chance: random.Random
) -> MadePairs | str:
    """The pairs of a fault, or why there are none. `run` was opened with it, and `gold` answers its questions; `right` is the
    file's text without it, and `green` are the tests that pass then.

    Raises:
        ConfigError: the tests do not end, or do not run at all.
        UsageError: a model would be asked what the task is about.
    """
    baseline = run_baseline(run)
    broken = sorted(baseline.red() & set(green))
    if not broken:
        return "no test fails"
    if len({name.partition("[")[0] for name in broken}) > MOST_BROKEN:
        return f"more than {MOST_BROKEN} tests fail"
    told = [goal_of_test(run, baseline, name, GoalSource.REPOSITORY) for name in broken]
    words = words_of(min(told, key=_goal_sort_key), chance)
    run = structs.replace(run, task=structs.replace(run.task, description=words))
    run.progress.goals = collect_goals(run, baseline, NOTHING_GIVEN)
    if not run.progress.goals.deciding:
        return "no goal test"
    at_base = stand_on_goals(run, run.progress.goals)
    targets, assignment = what_to_ask(run, at_base)
    place = (fault.path, fault.symbol)
    target = next((one for one in targets if (one.place.path, one.place.name) == place), None)
    if target is None or at_base.ran.green:
        return "not among the places that are asked about" if target is None else "a goal test passes"
    pairs: list[TrainingPair] = []
    dropped: Counter[str] = Counter()
    for question, mask in likeliest(run.models, target, assignment, run.limits.solve):
        gold.answer = (
            worded.gold(target.place, right)
            if mask is None
            else masked.gold(fault.path, target.text, mask, right)
        )
        if gold.answer is None or (mask is not None and len(pairs) + dropped.total() == MOST_GAPS):
            continue
        try:
            answered = question.send(pass_of(run))
        except WindowExceeded:
            dropped["prompt larger than the window"] += 1
            continue
        stage = gold.asked.identity.prompt
        if answered.fault or answered.text != gold.answer or question.write(answered) != right:
            dropped[f"{stage}: an answer in this form does not restore the file"] += 1
            continue
        pairs.append(
            TrainingPair(
                stage=stage,
                item=question.item,
                label=fault.mutation.kind,
                found_by="",
                system=gold.asked.system,
                prompt=gold.asked.prompt,
                answer=gold.answer,
            )
        )
    return MadePairs(pairs=tuple(pairs), dropped=dropped)


def words_of(goal: GoalTest, chance: random.Random) -> str:
    """What a user might say who met a failing test."""
    if not (goal.call and goal.wanted) or len(goal.call + goal.wanted + goal.got) > MOST_SAID:
        got = goal.got.partition("\n")[0]
        return f"{goal.name} fails: {got}" if got else f"{goal.name} fails"
    error = goal.wanted.removeprefix("raises ")
    should = f"should give `{goal.wanted}`" if error == goal.wanted else f"should raise {error}"
    verb = "fails with" if ERROR.match(goal.got) else "gives"
    said = f"`{goal.call}` " + (f"{verb} `{goal.got}`, but it {should}" if goal.got else should)
    return chance.choice((f"{said}.", f"{said}: {goal.name} fails."))


def _goal_sort_key(goal: GoalTest) -> tuple[bool, int, str]:
    """Short calls with values are told first."""
    return (not (goal.call and goal.wanted), len(goal.call), goal.name)
