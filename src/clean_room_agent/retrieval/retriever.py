"""A retrieval from end to end: task analysis, candidates, the stages in order, assembly; and what it leaves in the
session, from which a refinement starts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest, RefinementRequest, TaskQuery
from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.artifacts.names import attempts_up_to
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session, States
from clean_room_agent.errors import ConfigError, RecordError, UsageError
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.router import Window
from clean_room_agent.paths import is_test_file, is_test_module
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.analysis import Analysis, add_model_hints, analyse, note_no_model
from clean_room_agent.retrieval.assembly import assemble
from clean_room_agent.retrieval.candidates import find_candidates
from clean_room_agent.retrieval.judges import ModelJudge, ThresholdJudge, question_text
from clean_room_agent.retrieval.mentions import find_mentions, unique
from clean_room_agent.retrieval.precision_stage import PrecisionStage
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig, RetrievalConfig
from clean_room_agent.retrieval.scope_stage import ScopeStage
from clean_room_agent.retrieval.stage import (
    Candidate,
    DecisionLog,
    Judge,
    Remembered,
    RetrievalStage,
    Selection,
    StageContext,
    StageOutputs,
)
from clean_room_agent.retrieval.stage_source import RepositorySource

STAGES: Mapping[str, Callable[[JudgmentsConfig], RetrievalStage]] = {
    "scope": ScopeStage,
    "precision": PrecisionStage,
}
"""By name, as configured; the default order is that of `[stages]`. A new stage is one line here."""
MAX_SAME_NAMES = 20
"""Of one name: more are as good as none."""
DEFINES = frozenset({"function", "class", "method", "variable"})
CHANGES = "to_change"
Changes = tuple[tuple[str, str], ...]
"""(path, name) of each."""


def stages_named(names: Sequence[str], config: JudgmentsConfig) -> tuple[RetrievalStage, ...]:
    """Build the named stages, in the given order.

    Raises:
        ConfigError: a name is unknown or appears twice, or there is none.
    """
    hint = f"--stages and `[stages] default` know these: {', '.join(STAGES)}"
    if not names:
        raise ConfigError("no stage is named", hint=hint)
    for place, name in enumerate(names):
        if name not in STAGES:
            near = get_close_matches(name, STAGES, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise ConfigError(f"unknown stage {name!r}{meant}", hint=hint)
        if name in names[:place]:
            raise ConfigError(f"stage {name!r} is named twice")
    return tuple(STAGES[name](config) for name in names)


class Retrieved(Struct, frozen=True, kw_only=True):
    """A package, and what it was chosen from."""

    package: ContextPackage
    candidates: tuple[Candidate, ...]
    """Every file that was found, best first, whether it is in the package or not."""


class Retriever:
    """Makes context packages for the passes of one task.

    It reads one state of the index: after the index is refreshed, make a new retriever.
    """

    def __init__(
        self,
        *,
        kb: KnowledgeBase,
        root: Path,
        models: ModelClient,
        record: Record,
        session: Session,
        config: RetrievalConfig,
    ) -> None:
        """`root` is the folder that was indexed; what is shown is read from it. The windows of `models` set the budget also where
        no model is asked; `record` gets every decision, the task's `session` what a refinement needs.

        Raises:
            ConfigError: a stage is unknown.
        """
        asks = config.use_model and config.judgments.asks
        self._judgments = config.judgments if asks else replace(config.judgments, route="rank")
        self._stages = stages_named(config.stages, self._judgments)
        self._kb = kb
        self._root = root
        self._models = models
        self._decisions = DecisionLog(record)
        self._session = session
        self._config = config

    def retrieve(self, request: ContextRequest) -> Retrieved:
        """Return the package for one pass, and the candidates; all decisions are committed by then.

        Raises:
            UsageError: there is no index.
            RepositoryError: a file differs from what was indexed.
            WindowExceeded: what must be shown does not fit the model's window.
            ModelError: the server failed.
        """
        source = self._repository_source(request)
        analysis = self._analyse_task(request, source)
        self._decisions.post(request.pass_id, analysis.decisions)
        candidates, notes = find_candidates(request, analysis.query, source)
        self._decisions.post(request.pass_id, notes)
        judge = self._make_judge(request)
        context = StageContext(
            request=request,
            available_tokens=self._available_tokens(request),
            candidates=candidates,
            files=tuple(entry for entry in candidates if entry.tier <= 1),
            to_change=recall_changes(self._session, self._session.task_id),
        )
        for stage in self._stages:
            before = len(context.decisions)
            context = stage.run(context, source, analysis.query, judge)
            self._decisions.post(request.pass_id, context.decisions[before:])
        if not context.detail_chosen:
            context = replace(context, selections=_whole_files(context, source))
        if request.mode in {"plan", "implement"}:
            context = self._with_conventions(context, source)
        package = self._assemble_package(context, source, judge, analysis.query)
        return Retrieved(package=package, candidates=candidates)

    def definitions(self, names: Sequence[str]) -> tuple[NamedDefinition, ...]:
        """The definitions outside of tests with one of these plain or dotted names, with the tests that use them."""
        return definitions_named(names, RepositorySource(self._kb, self._root, len))

    def mentioned(self, words: str) -> tuple[NamedDefinition, ...]:
        """The definitions outside of tests that the words name, as far as it is clear which are meant."""
        return definitions_mentioned(words, RepositorySource(self._kb, self._root, len))

    def _with_conventions(self, context: StageContext, source: RepositorySource) -> StageContext:
        """With the repository's instructions for agents, where it has any."""
        if all(source.file(path) is None for path in self._config.conventions.files):
            return context
        from clean_room_agent.retrieval.conventions import find_conventions  # few repositories have any

        conventions, notes = find_conventions(source, self._config.conventions)
        self._decisions.post(context.request.pass_id, notes)
        return replace(context, selections=(*context.selections, *conventions))

    def _analyse_task(self, request: ContextRequest, source: RepositorySource) -> Analysis:
        """What the task names; a model adds to it unless a plan names the files."""
        found = analyse(request, source)
        if not self._config.use_model:
            return note_no_model(found)
        if any(source.file(path) is not None for path in request.files):
            return found
        return add_model_hints(
            found, request, source, self._models, available_tokens=self._available_tokens(request)
        )

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """Return the earlier package of this pass (or of the attempt before) extended by what `refinement` names.

        Raises the same as `retrieve`, and:

        Raises:
            RecordError: the session holds no package to extend.
        """
        from clean_room_agent.retrieval.refinement import merge_request

        source = self._repository_source(request)
        earlier = recall(self._session, request.pass_id)
        judge = self._make_judge(request, refinement)
        context, query = merge_request(
            refinement,
            request,
            earlier,
            source,
            judge,
            config=self._judgments,
            available_tokens=self._available_tokens(request),
        )
        self._decisions.post(request.pass_id, context.decisions)
        return self._assemble_package(context, source, judge, query)

    def _assemble_package(
        self, context: StageContext, source: RepositorySource, judge: Judge, query: TaskQuery
    ) -> ContextPackage:
        """The package, when all decisions are committed and what a refinement needs is stored."""
        request = context.request
        package, decisions = assemble(context, source, self._context_window(request), judge)
        self._decisions.write(request.pass_id, decisions)
        remember(self._session.for_pass(request.pass_id), query, context, package)
        return package

    def _repository_source(self, request: ContextRequest) -> RepositorySource:
        source = RepositorySource(self._kb, self._root, lambda text: self._models.count(text, request.role))
        if not source.paths():
            raise UsageError("the repository is not indexed, or holds no text file", hint="run `cra index`")
        return source

    def _make_judge(self, request: ContextRequest, missing: RefinementRequest | None = None) -> Judge:
        judgments = self._judgments
        if not judgments.asks:
            return ThresholdJudge(threshold=judgments.threshold)
        return ModelJudge(
            self._models,
            self._session,
            question=question_text(request, missing),
            pass_id=request.pass_id,
            batch_size=judgments.batch_size,
            threshold=judgments.threshold,
        )

    def _available_tokens(self, request: ContextRequest) -> int:
        window = self._context_window(request)
        return window.context - window.reserved

    def _context_window(self, request: ContextRequest) -> Window:
        """The window of the model that reads the package; the reserve includes what the request adds."""
        window = self._models.window(request.role)
        reserved = min(window.reserved + request.extra_reserved, window.context - 1)
        return Window(context=window.context, reserved=reserved)


def _to_change(context: StageContext) -> frozenset[tuple[str, str]]:
    """The pieces that a planning pass judged to be changed, by path and name."""
    if context.request.mode == "implement":
        return frozenset()
    return frozenset(
        (one.subject.path, one.subject.symbol)
        for one in context.decisions
        if one.verdict is not None
        and one.verdict.judgment.call_id is not None
        and not one.verdict.taken
        and one.detail == "primary"
        and one.subject.symbol is not None
    )


def _whole_files(context: StageContext, source: RepositorySource) -> tuple[Selection, ...]:
    reason = "in scope; no stage chose what of it is shown"
    return tuple(
        Selection.of_file(text, "primary", tier=entry.tier, score=entry.score, reason=reason)
        for entry in context.files
        if (text := source.text(entry.path)) is not None
    )


def remember(states: States, query: TaskQuery, context: StageContext, package: ContextPackage) -> None:
    """Store, in one go, the analysed task, what the stages decided, (path, name) of the pieces that the pass judged to be
    changed, and the package.
    """
    outputs = StageOutputs(files=context.files, selections=context.selections)
    changes = [list(change) for change in sorted(_to_change(context))]
    states.set_states(
        {
            "task_query": to_plain(query),
            "stage_outputs": to_plain(outputs),
            CHANGES: changes,
            "final_context": to_plain(package),
        }
    )


def recall_changes(session: Session, task_id: str) -> frozenset[tuple[str, str]]:
    """(path, name) of the pieces that the task's planning passes judged to be changed."""
    keys = [key for key in session.list_keys(f"{task_id}:") if key.endswith(f"/{CHANGES}")]
    return frozenset(change for key in keys for change in from_plain(session.get_state(key), Changes))


def recall(session: Session, pass_id: str) -> Remembered:
    """The retrieval of the pass or, failing that, of the latest attempt before it (`…:retry_2`, `…:retry_1`, `…`).

    Raises:
        RecordError: none of them stored a package in the session, or what is there cannot be read.
    """
    for earlier in reversed(attempts_up_to(pass_id)):
        states = session.for_pass(earlier)
        kept = {key: states.get_state(key) for key in ("task_query", "stage_outputs", "final_context")}
        if None in kept.values():
            continue
        try:
            return Remembered(
                query=from_plain(kept["task_query"], TaskQuery),
                outputs=from_plain(kept["stage_outputs"], StageOutputs),
                package=from_plain(kept["final_context"], ContextPackage),
            )
        except ValueError as exc:
            raise RecordError(f"the session's context of pass {earlier} cannot be read: {exc}") from exc
    raise RecordError(
        f"the session holds no context for pass {pass_id}", hint="retrieve it before it is refined"
    )


def definitions_named(names: Iterable[str], source: RepositorySource) -> tuple[NamedDefinition, ...]:
    """The definitions outside of tests with one of these plain or dotted names, by name as given, path and line."""
    found: dict[int, NamedDefinition] = {}
    for name in names:
        symbols = [
            symbol
            for symbol in source.find_symbols(name)
            if symbol.kind in DEFINES and not is_test_file(source.path_of(symbol.file_id))
        ]
        for symbol in symbols[:MAX_SAME_NAMES]:
            if symbol.id not in found:
                found[symbol.id] = _describe_symbol(symbol, source)
    return tuple(found.values())


def definitions_mentioned(words: str, source: RepositorySource) -> tuple[NamedDefinition, ...]:
    """The definitions outside of tests that the words name, as far as it is clear which are meant, in the words' order."""
    mentions = find_mentions(words)
    names = [name for name in unique((*mentions.named, *mentions.identifiers)) if source.meant_by(name)]
    return definitions_named(names, source)


def _describe_symbol(symbol: SymbolRow, source: RepositorySource) -> NamedDefinition:
    path = source.path_of(symbol.file_id)
    docs = (one.doc for one in source.definitions_at(path) if one.symbol_id == symbol.id)
    return NamedDefinition(
        name=symbol.qualified_name,
        path=path,
        kind=symbol.kind,
        first_line=symbol.start_line,
        last_line=symbol.end_line,
        signature=symbol.signature,
        doc=next(docs, ""),
        test_files=_test_files(symbol, source),
    )


def _test_files(symbol: SymbolRow, source: RepositorySource) -> tuple[str, ...]:
    """Files of tests: first those that refer to the definition, then those that import its file."""
    callers = source.kb.get_symbol_neighbors(symbol.id, direction="callers")
    uses = Counter(source.path_of(row.symbol.file_id) for row in callers)
    importing = source.kb.get_dependencies(symbol.file_id, direction="imported_by")
    paths = [*sorted(uses, key=lambda path: (-uses[path], path)), *(row.file.path for row in importing)]
    return tuple(dict.fromkeys(path for path in paths if is_test_module(path)))
