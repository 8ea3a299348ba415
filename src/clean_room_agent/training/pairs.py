"""Makes the training pairs of one commit: a run's passes over its parent, answered from the commit itself.

The passes are the real ones, so a prompt is byte for byte what a run would send that begins at the parent with the commit's
message as its task, no failing test, and the same configuration.

Questions about files are added to those that the passes ask, so that a judge learns to tell near misses from what is
needed: what the commit changes and the ranking missed, and, of the verdicts that say no, 20 % about files in the same
folders and 10 % about any files, besides the 70 % about the top of the ranking. Each is one of the run's own questions with
its candidate exchanged, in the question and in the list of candidates.
"""

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field, structs

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest, TaskQuery
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.artifacts.names import implement_pass, meta_plan_pass, part_plan_pass
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanStep
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.implement import IMPLEMENT, StepInstruction, implement
from clean_room_agent.execute.plan import make_meta_plan, make_part_plan
from clean_room_agent.execute.plan_drafts import PartAsked, Rejected
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.passes.meta_plan import meta_plan_request
from clean_room_agent.orchestrator.passes.part_plan import part_plan_request, serves_part
from clean_room_agent.orchestrator.passes.planning import plan_limits
from clean_room_agent.orchestrator.run_config import EditConfig, OrchestratorConfig
from clean_room_agent.orchestrator.steps.missing_context import unshown_targets
from clean_room_agent.orchestrator.steps.rounds import step_request
from clean_room_agent.paths import kind_of
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.failing_tests import find_tests
from clean_room_agent.retrieval.judges import frame_option
from clean_room_agent.retrieval.prompts import PIECE_JUDGMENT, SCOPE_JUDGMENT, TASK_ANALYSIS, SingleInputs
from clean_room_agent.retrieval.retrieval_config import ConventionsConfig, JudgmentsConfig, RetrievalConfig
from clean_room_agent.retrieval.retriever import Retrieved, Retriever, recall
from clean_room_agent.retrieval.scope_stage import describe_file
from clean_room_agent.retrieval.scored_pieces import weighted_terms
from clean_room_agent.retrieval.stage import Option
from clean_room_agent.retrieval.stage_source import RepositorySource
from clean_room_agent.training.commit_answers import NO_EDITS, Gold, GoldTransport

STAGES = tuple(
    prompt.name for prompt in (TASK_ANALYSIS, SCOPE_JUDGMENT, PIECE_JUDGMENT, META_PLAN, PART_PLAN, IMPLEMENT)
)
"""The prompts that pairs are made for."""
EPOCH = "1970-01-01T00:00:00+00:00"
"""The time of all events here, since nothing in a pair may depend on when it was made."""
RANKED, NEIGHBOURS, RANDOM = 7, 2, 1
"""Tenths of the verdicts that say no."""
MAX_MISSED = 3
"""The most changed files missed by the ranking that are asked about."""
WRONG = "not edited"


class Making(Struct, frozen=True, kw_only=True):
    """How pairs are made: the configuration of the runs whose prompts are made, and which commits count. Judgments are
    asked one by one, whatever it says.
    """

    models: ModelsConfig
    budget: BudgetConfig
    stages: tuple[str, ...]
    judgments: JudgmentsConfig
    conventions: ConventionsConfig
    orchestrator: OrchestratorConfig
    edit: EditConfig
    index: IndexConfig
    licences: tuple[str, ...] | None
    """Those that are allowed; None: any, and none at all, for the user's own repositories."""
    prompts: str
    """A digest of the prompts' texts, and of what else the questions depend on."""


class TrainingPair(Struct, frozen=True, kw_only=True):
    """A prompt, and the right answer to it."""

    stage: str
    item: str
    """What is judged; "" if nothing is."""
    label: str
    """Of a judgment: changed, used or not edited for files, change, read or skip for code; "" for other answers."""
    found_by: str
    """How a judged item was found: ranking, neighbour or random; `commit` if the ranking missed a changed one."""
    system: str
    prompt: str
    answer: str


class MadePairs(Struct, frozen=True, kw_only=True):
    """The pairs of one commit."""

    pairs: tuple[TrainingPair, ...]
    dropped: Counter[str]
    """Pairs that were not made or not kept, by reason."""


class _GoldClient(ModelClient):
    """The real client, answered from the commit. It keeps every call, and the inputs of judgments by item."""

    def __init__(self, gold: Gold, config: Making) -> None:
        self._transport = GoldTransport(gold)
        router = ModelRouter(structs.replace(config.models, parallel=1), config.budget)
        super().__init__(router, self._transport, self, lambda: EPOCH)
        self.made: list[ModelCall] = []
        """Calls since they were last taken."""
        self.judged: dict[str, Any] = {}
        """The inputs of questions about files, by path."""

    def ask(self, prompt: Prompt[Any, Any], inputs: Any, **place: Any) -> Reply[Any]:
        self._transport.inputs = inputs
        if prompt.name == SCOPE_JUDGMENT.name:
            self.judged.setdefault(place["item"], inputs)
        return super().ask(prompt, inputs, **{**place, "repair": False})

    def record(self, call: ModelCall) -> int:
        self.made.append(call)
        return len(self.made)

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        if reading != "parsed" and self.made[call_id - 1].answer.response != NO_EDITS:
            raise AssertionError(f"an answer made from a commit cannot be read: {fault}")


class ParentState(Struct, frozen=True, kw_only=True):
    """A repository as it was before a commit: its files below `root`, and the index of them."""

    root: Path
    kb: KnowledgeBase
    known: frozenset[str]
    """The paths of the commit's tree."""


def make_pairs(
    state: ParentState, gold: Gold, config: Making, *, name: str, analysis_only: bool
) -> MadePairs:
    """The pairs of the commit `name` (repository and commit in one string, which also seeds random choices).

    Raises:
        RepositoryError: the files differ from what was indexed.
    """
    task_id = task_of_commit(name)
    models = _GoldClient(gold, config)
    with (
        Record.in_memory(state.root.parent / "record.lock", clock=lambda: EPOCH) as record,
        Session.in_memory(task_id, clock=lambda: EPOCH) as session,
    ):
        retriever = Retriever(
            kb=state.kb,
            root=state.root,
            models=models,
            record=record,
            session=session,
            config=RetrievalConfig(
                stages=config.stages,
                judgments=structs.replace(config.judgments, route="each"),
                conventions=config.conventions,
            ),
        )
        run = _Run(state=state, gold=gold, config=config, models=models, retriever=retriever, session=session)
        try:
            run.plan(with_rows=not analysis_only)
        except WindowExceeded:
            run.dropped["prompt larger than the window"] += 1
    if analysis_only:
        analyses = tuple(pair for pair in run.pairs if pair.stage == TASK_ANALYSIS.name)
        return MadePairs(pairs=analyses, dropped=Counter())
    return MadePairs(pairs=tuple(run.pairs), dropped=run.dropped)


def task_of_commit(name: str) -> str:
    """The task id of a commit's pairs: the same each time."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


class _Run(Struct, frozen=True, kw_only=True):
    """The passes of one commit's task, in their order."""

    state: ParentState
    gold: Gold
    config: Making
    models: _GoldClient
    retriever: Retriever
    session: Session
    pairs: list[TrainingPair] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def plan(self, *, with_rows: bool) -> None:
        """Run the passes, and ask the further questions about files; without rows, analyse the task alone."""
        pass_id = meta_plan_pass(self.session.task_id)
        request = meta_plan_request(self.models, pass_id, self.gold.task, Evidence())
        found = self.retriever.retrieve(request)
        self._collect_pairs("ranking")
        if not with_rows:
            return
        self._ask_more(request, found)
        planned = make_meta_plan(
            self.models,
            found.package,
            pass_id=pass_id,
            evidence=Evidence(),
            limits=plan_limits(self.models, self.config.orchestrator),
        )
        self._collect_pairs("")
        steps = None if planned.value is None else self._plan_part(planned.value, found.package)
        if steps is None:
            self.dropped["no plan that is valid"] += 1
        else:
            self._implement_step(*steps)

    def _plan_part(self, meta: MetaPlan, first: ContextPackage) -> tuple[Part, PartPlan] | None:
        part = meta.parts[0]
        pass_id = part_plan_pass(self.session.task_id, part.id)
        request = part_plan_request(
            self.models,
            pass_id,
            self.gold.task,
            part,
            goal=meta.task_summary,
            evidence=Evidence(),
            known=self.state.known,
            rejected=Rejected(),
        )
        shared = serves_part(self.models, first, meta, request)
        package = first if shared else self.retriever.retrieve(request).package
        self._collect_pairs("ranking")
        asked = PartAsked(
            part=part,
            meta=meta,
            evidence=Evidence(),
            diff="",
            paths=self.state.known,
            limits=plan_limits(self.models, self.config.orchestrator),
        )
        planned = make_part_plan(self.models, package, asked, pass_id=pass_id)
        self._collect_pairs("")
        return None if planned.value is None else (part, planned.value)

    def _implement_step(self, part: Part, plan: PartPlan) -> None:
        """Run the pass of the step; keep its answer if it replays."""
        step = plan.steps[0]
        instruction = StepInstruction(task=self.gold.task, part=part.description, step=step)
        pass_id = implement_pass(self.session.task_id, part.id, step.id)
        request = step_request(self.models, pass_id, instruction, Evidence())
        package = self.retriever.retrieve(request).package
        self._collect_pairs("ranking")
        shown = structs.replace(instruction, unshown=unshown_targets(step, package))
        implement(self.models, package, shown, pass_id=pass_id)
        self._collect_pairs("", package=package, step=step)

    def _ask_more(self, request: ContextRequest, found: Retrieved) -> None:
        source = RepositorySource(
            self.state.kb, self.state.root, lambda text: self.models.count(text, "reasoning")
        )
        query = recall(self.session, request.pass_id).query
        judged = dict(self.models.judged)
        for path, inputs, found_by in _more_file_questions(
            judged, self.gold, request, query, found, source, seed=self.session.task_id
        ):
            self.models.ask(SCOPE_JUDGMENT, inputs, pass_id=request.pass_id, item=path)
            self._collect_pairs(found_by)

    def _collect_pairs(
        self, found_by: str, *, package: ContextPackage | None = None, step: PlanStep | None = None
    ) -> None:
        """Turn the calls since the last time into pairs, or count them as dropped."""
        for call in self.models.made:
            label = self._call_label(call)
            reason = self._refusal_reason(call, label, package, step)
            if reason:
                self.dropped[reason] += 1
                continue
            self.pairs.append(
                TrainingPair(
                    stage=call.site.call_type,
                    item=call.site.item,
                    label=label,
                    found_by=found_by if label else "",
                    system=call.request.system_prompt,
                    prompt=call.request.prompt,
                    answer=call.answer.response,
                )
            )
        self.models.made.clear()

    def _call_label(self, call: ModelCall) -> str:
        if call.site.call_type == SCOPE_JUDGMENT.name:
            return self.gold.label_of_file(call.site.item)
        return call.answer.response if call.site.call_type == PIECE_JUDGMENT.name else ""

    def _refusal_reason(
        self, call: ModelCall, label: str, package: ContextPackage | None, step: PlanStep | None
    ) -> str:
        match call.site.call_type:
            case TASK_ANALYSIS.name:
                return "" if _names_any(call, self.gold) else "analysis: nothing of the commit is listed"
            case SCOPE_JUDGMENT.name:
                return "scope: a dependency, perhaps to be read" if label == "dependency" else ""
            case META_PLAN.name | PART_PLAN.name:
                files = self.gold.files.items()
                seen = all(file.before is None or path in call.request.prompt for path, file in files)
                return "" if seen else "plan: the prompt names not all files"
            case IMPLEMENT.name:
                return self._no_replay(call, package, step)
            case PIECE_JUDGMENT.name:
                return ""
        return f"{call.site.call_type}: not a prompt of pairs"

    def _no_replay(self, call: ModelCall, package: ContextPackage | None, step: PlanStep | None) -> str:
        if call.answer.response == NO_EDITS or package is None or step is None:
            return "implement: code to change is not shown"
        edits = IMPLEMENT.parse(call.answer.response)
        assert isinstance(edits, tuple), "the sink has seen that it parses"
        files = {path: file.before for path, file in self.gold.files.items() if file.before is not None}
        rules = EditRules(
            targets=step.target_files,
            planned=tuple(sorted(self.gold.files)),
            protected=self.config.edit.protected,
        )
        applied = apply_edits(edits, files, package, rules)
        wanted = {path: file.after for path, file in self.gold.files.items()}
        replays = applied.texts.keys() == wanted.keys() and all(
            _without_end(applied.texts[path]) == _without_end(text) for path, text in wanted.items()
        )
        return "" if replays else "implement: the edits do not replay"


def _without_end(text: str | None) -> str | None:
    """The text without its last line breaks, which an edit leaves as they are."""
    return None if text is None else text.rstrip("\n")


def _names_any(call: ModelCall, gold: Gold) -> bool:
    answer = TASK_ANALYSIS.parse(call.answer.response)
    return bool(getattr(answer, "areas", ()) or getattr(answer, "symbols", ())) and bool(gold.files)


def _more_file_questions(
    asked: Mapping[str, SingleInputs],
    gold: Gold,
    request: ContextRequest,
    query: TaskQuery,
    found: Retrieved,
    source: RepositorySource,
    *,
    seed: str,
) -> Iterator[tuple[str, SingleInputs, str]]:
    """Further questions about files: path, inputs, and how it was found; none if the pass asked none."""
    if not asked:
        return
    terms = weighted_terms(request, query, find_tests(query, source))
    inputs = next(iter(asked.values()))
    names = list(inputs.others)
    wrong_names = [at for at, name in enumerate(names) if gold.label_of_file(name) == WRONG]
    place = wrong_names[-1] if wrong_names else len(names)
    taken = {*asked, *(entry.path for entry in found.candidates if entry.tier <= 1)}
    wrong = sum(gold.label_of_file(path) == WRONG for path in asked)
    for path, found_by in _extra_files(gold, source, taken, wrong, random.Random(f"{seed}\nfiles")):  # noqa: S311 - guards nothing, and must be the same each time
        option = Option(key=path, name=path, text=describe_file(path, terms, source), score=0.0)
        others = (*names[:place], path, *names[place + 1 :])
        yield path, structs.replace(inputs, option=frame_option(option), others=others), found_by


def _extra_files(
    gold: Gold, source: RepositorySource, taken: set[str], wrong: int, chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Files besides the ranking, each with how it was found. `wrong` is the number of noes from the ranking."""
    missed = [path for path in gold.files if source.file(path) is not None and path not in taken]
    for path in missed[:MAX_MISSED]:
        yield path, "commit"
    folders = {PurePosixPath(path).parent for path in gold.files}
    near: list[str] = []
    far: list[str] = []
    for path in source.paths():
        if path not in taken and kind_of(path) == "code" and gold.label_of_file(path) == WRONG:
            (near if PurePosixPath(path).parent in folders else far).append(path)
    for found_by, pool, share in (("neighbour", near, NEIGHBOURS), ("random", far, RANDOM)):
        wanted = wrong * share / RANKED
        count = int(wanted) + (chance.random() < wanted - int(wanted))
        for path in chance.sample(pool, min(count, len(pool))):
            yield path, found_by
