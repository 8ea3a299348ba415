"""The stage `scope`: which of the candidate files matter for the task."""

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.names import counted
from clean_room_agent.llm.answers import YES
from clean_room_agent.paths import is_test_file
from clean_room_agent.retrieval.failing_tests import find_tests
from clean_room_agent.retrieval.judges import take_best
from clean_room_agent.retrieval.prompts import RELEVANT, SCOPE_BATCH, SCOPE_JUDGMENT
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig
from clean_room_agent.retrieval.scored_pieces import nearest_lines, numbered, weighted_terms
from clean_room_agent.retrieval.stage import Candidate, Decision, Judge, Option, StageContext, Verdict
from clean_room_agent.retrieval.stage_source import RepositorySource, top_names

NAMES_SHOWN = 6
REASONS_SHOWN = 3
LINES_JUDGED = 3
"""The lines of a file nearest to the task, which a judge is shown."""
MAX_ROUNDS = 2
"""While no file is in scope, the next ones are judged, in so many rounds; then the best are taken."""


class ScopeStage:
    """If a plan names files, only they are in scope, and what defines a name of the task: a plan may be wrong.

    Otherwise, what the task names is in scope, and the best of the rest are judged.
    """

    name = "scope"

    def __init__(self, config: JudgmentsConfig) -> None:
        self._config = config

    def run(
        self, context: StageContext, source: RepositorySource, query: TaskQuery, judge: Judge
    ) -> StageContext:
        """Select the files in scope, in the candidates' order."""
        if any(entry.tier == 0 for entry in context.candidates):
            return self._named_by_plan(context, query)
        waiting = [entry for entry in context.candidates if entry.tier > 1]
        named = tuple(entry.path for entry in context.candidates if entry.tier == 1)
        count, passed_over = self._config.files_to_judge([entry.score for entry in waiting])
        some = any(not is_test_file(path) for path in named)
        terms = weighted_terms(context.request, query, find_tests(query, source))
        top = max((entry.score for entry in waiting), default=0.0) or 1.0
        ask = (
            partial(judge.sort, SCOPE_BATCH, labels=self._labels)
            if self._config.in_one_question
            else partial(judge.choose, SCOPE_JUDGMENT, labels=self._labels)
        )
        options: list[Option] = []
        verdicts: tuple[Verdict, ...] = ()
        for _ in range(MAX_ROUNDS):
            batch = [
                Option(
                    key=entry.path,
                    name=entry.path,
                    text=describe_file(entry.path, terms, source),
                    score=entry.score / top,
                )
                for entry in waiting[len(options) :][:count]
            ]
            if not batch:
                break
            options += batch
            verdicts += ask(batch, stage=self.name, chosen=named)
            if some or any(verdict.label for verdict in verdicts):
                break
        if options and not some:
            verdicts = take_best(options, verdicts, self._labels[0], threshold=self._config.threshold)
        verdict_of = {option.key: verdict for option, verdict in zip(options, verdicts, strict=True)}
        return self._with_decisions(context, verdict_of, passed_over)

    def _named_by_plan(self, context: StageContext, query: TaskQuery) -> StageContext:
        meant = {f"defines {name}" for name in query.named}
        files = tuple(
            entry
            for entry in context.candidates
            if entry.tier == 0 or (entry.tier == 1 and not meant.isdisjoint(entry.reasons))
        )
        decisions = tuple(_file_decision(entry, None, "the plan names its files") for entry in files)
        left = len(context.candidates) - len(files)
        note = Decision(
            stage=self.name, reason=f"the plan names its files: {counted(left, 'other is', 'others are')} out"
        )
        return replace(context, files=files, decisions=(*context.decisions, *decisions, note))

    @property
    def _labels(self) -> tuple[str, ...]:
        return (RELEVANT,) if self._config.in_one_question else (YES,)

    def _with_decisions(
        self, context: StageContext, verdict_of: Mapping[str, Verdict], passed_over: str
    ) -> StageContext:
        decisions = [
            _file_decision(entry, verdict_of.get(entry.path), passed_over) for entry in context.candidates
        ]
        included = {decision.subject.path for decision in decisions if decision.included}
        return replace(
            context,
            files=tuple(entry for entry in context.candidates if entry.path in included),
            decisions=(*context.decisions, *decisions),
        )


def _file_decision(entry: Candidate, verdict: Verdict | None, passed_over: str) -> Decision:
    why = "; ".join(entry.reasons[:REASONS_SHOWN])
    if entry.tier <= 1:
        included, reason = True, f"in without asking: {why}"
    elif verdict is None:
        included, reason = False, f"{passed_over}: {why}"
    else:
        included, reason = bool(verdict.label), f"{verdict.reason}: {why}"
    return Decision(
        stage=ScopeStage.name, subject=entry.subject, included=included, reason=reason, verdict=verdict
    )


def describe_file(path: str, terms: Mapping[str, float], source: RepositorySource) -> str:
    """What the file defines, and the lines of it that are nearest to the task, as a judge is shown them."""
    names = top_names(source.definitions_at(path), most=NAMES_SHOWN)
    text = source.text(path)
    shown = f"defines {', '.join(names)}\n" if names else ""
    if text is not None:
        shown += numbered(nearest_lines(text.lines, terms, most=LINES_JUDGED))
    return shown
