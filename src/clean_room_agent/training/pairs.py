"""Makes the training pairs of one commit: a run's passes over its parent, answered from the commit itself.

The passes are the real ones, so a prompt is byte for byte what a run would send that begins at the parent with the commit's
message as its task, no failing test, and the same configuration.
"""

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest
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
from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.config import EditConfig, OrchestratorConfig
from clean_room_agent.orchestrator.passes.meta_plan import meta_plan_request
from clean_room_agent.orchestrator.passes.part_plan import part_plan_request, serves_part
from clean_room_agent.orchestrator.passes.planning import plan_limits
from clean_room_agent.orchestrator.steps.missing_context import unshown_targets
from clean_room_agent.orchestrator.steps.rounds import step_request
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.config import ConventionsConfig, JudgmentsConfig, RetrievalConfig
from clean_room_agent.retrieval.prompts import PIECE_JUDGMENT, SCOPE_JUDGMENT, TASK_ANALYSIS
from clean_room_agent.retrieval.retriever import Retrieved, Retriever, recall
from clean_room_agent.retrieval.stage_source import ContextFiles, RepositorySource
from clean_room_agent.training.commit_answers import NO_EDITS, Gold, GoldTransport
from clean_room_agent.training.near_miss_questions import more_file_questions

STAGES = tuple(
    prompt.name for prompt in (TASK_ANALYSIS, SCOPE_JUDGMENT, PIECE_JUDGMENT, META_PLAN, PART_PLAN, IMPLEMENT)
)
"""The prompts that pairs are made for."""
EPOCH = "1970-01-01T00:00:00+00:00"
"""The time of all events here, since nothing in a pair may depend on when it was made."""


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
    licences: tuple[str, ...]
    prompts: str
    """A digest of the prompts' texts."""


class Pair(Struct, frozen=True, kw_only=True):
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

    pairs: tuple[Pair, ...]
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
                judgments=one_by_one(config.judgments),
                conventions=config.conventions,
            ),
        )
        run = _Run(state, gold, config, models, retriever, session)
        try:
            run.plan(with_rows=not analysis_only)
        except WindowExceeded:
            run.dropped["prompt larger than the window"] += 1
    if analysis_only:
        run.pairs = [pair for pair in run.pairs if pair.stage == TASK_ANALYSIS.name]
        run.dropped.clear()
    return MadePairs(pairs=tuple(run.pairs), dropped=run.dropped)


def task_of_commit(name: str) -> str:
    """The task id of a commit's pairs: the same each time."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


class _Run:
    """The passes of one commit's task, in their order."""

    def __init__(
        self,
        state: ParentState,
        gold: Gold,
        config: Making,
        models: _GoldClient,
        retriever: Retriever,
        session: Session,
    ) -> None:
        self._state = state
        self._gold = gold
        self._config = config
        self._models = models
        self._retriever = retriever
        self._session = session
        self._task_id = session.task_id
        self._limits = plan_limits(models, config.orchestrator)
        self.pairs: list[Pair] = []
        self.dropped: Counter[str] = Counter()

    def plan(self, *, with_rows: bool) -> None:
        """Run the passes, and ask the further questions about files; without rows, analyse the task alone."""
        pass_id = meta_plan_pass(self._task_id)
        request = meta_plan_request(self._models, pass_id, self._gold.task, Evidence())
        found = self._retriever.retrieve(request)
        self._keep("ranking")
        if not with_rows:
            return
        self._ask_more(request, found)
        planned = make_meta_plan(
            self._models, found.package, pass_id=pass_id, evidence=Evidence(), limits=self._limits
        )
        self._keep("")
        steps = None if planned.value is None else self._plan_part(planned.value, found.package)
        if steps is None:
            self.dropped["no plan that is valid"] += 1
        else:
            self._implement(*steps)

    def _plan_part(self, meta: MetaPlan, first: ContextPackage) -> tuple[Part, PartPlan] | None:
        part = meta.parts[0]
        pass_id = part_plan_pass(self._task_id, part.id)
        request = part_plan_request(
            self._models,
            pass_id,
            self._gold.task,
            part,
            goal=meta.task_summary,
            evidence=Evidence(),
            known=self._state.known,
            rejected=Rejected(),
        )
        shared = serves_part(self._models, first, meta, request)
        package = first if shared else self._retriever.retrieve(request).package
        self._keep("ranking")
        asked = PartAsked(
            part=part, meta=meta, evidence=Evidence(), diff="", paths=self._state.known, limits=self._limits
        )
        planned = make_part_plan(self._models, package, asked, pass_id=pass_id)
        self._keep("")
        return None if planned.value is None else (part, planned.value)

    def _implement(self, part: Part, plan: PartPlan) -> None:
        """Run the pass of the step; keep its answer if it replays."""
        step = plan.steps[0]
        instruction = StepInstruction(task=self._gold.task, part=part.description, step=step)
        pass_id = implement_pass(self._task_id, part.id, step.id)
        request = step_request(self._models, pass_id, instruction, Evidence())
        package = self._retriever.retrieve(request).package
        self._keep("ranking")
        shown = structs.replace(instruction, unshown=unshown_targets(step, package))
        implement(self._models, package, shown, pass_id=pass_id)
        self._keep("", package=package, step=step)

    def _ask_more(self, request: ContextRequest, found: Retrieved) -> None:
        source = RepositorySource(
            self._state.kb,
            ContextFiles(self._state.root),
            lambda text: self._models.count(text, "reasoning"),
        )
        query = recall(self._session, request.pass_id).query
        judged = dict(self._models.judged)
        for path, inputs, found_by in more_file_questions(
            judged, self._gold, request, query, found, source, seed=self._task_id
        ):
            self._models.ask(SCOPE_JUDGMENT, inputs, pass_id=request.pass_id, item=path)
            self._keep(found_by)

    def _keep(
        self, found_by: str, *, package: ContextPackage | None = None, step: PlanStep | None = None
    ) -> None:
        """Turn the calls since the last time into pairs, or count them as dropped."""
        for call in self._models.made:
            label = self._label(call)
            reason = self._refusal(call, label, package, step)
            if reason:
                self.dropped[reason] += 1
                continue
            self.pairs.append(
                Pair(
                    stage=call.site.call_type,
                    item=call.site.item,
                    label=label,
                    found_by=found_by if label else "",
                    system=call.request.system_prompt,
                    prompt=call.request.prompt,
                    answer=call.answer.response,
                )
            )
        self._models.made.clear()

    def _label(self, call: ModelCall) -> str:
        if call.site.call_type == SCOPE_JUDGMENT.name:
            return self._gold.label_of_file(call.site.item)
        return call.answer.response if call.site.call_type == PIECE_JUDGMENT.name else ""

    def _refusal(
        self, call: ModelCall, label: str, package: ContextPackage | None, step: PlanStep | None
    ) -> str:
        match call.site.call_type:
            case TASK_ANALYSIS.name:
                return "" if _names_any(call, self._gold) else "analysis: nothing of the commit is listed"
            case SCOPE_JUDGMENT.name:
                return "scope: a dependency, perhaps to be read" if label == "dependency" else ""
            case META_PLAN.name | PART_PLAN.name:
                files = self._gold.files.items()
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
        files = {path: file.before for path, file in self._gold.files.items() if file.before is not None}
        rules = EditRules(
            targets=step.target_files,
            planned=tuple(sorted(self._gold.files)),
            protected=self._config.edit.protected,
        )
        applied = apply_edits(edits, files, package, rules)
        wanted = {path: file.after for path, file in self._gold.files.items()}
        replays = applied.texts.keys() == wanted.keys() and all(
            _without_end(applied.texts[path]) == _without_end(text) for path, text in wanted.items()
        )
        return "" if replays else "implement: the edits do not replay"


def one_by_one(judgments: JudgmentsConfig) -> JudgmentsConfig:
    """The same configuration with one question per candidate everywhere."""
    return structs.replace(judgments, route="each", scope_route=None, precision_route=None)


def _without_end(text: str | None) -> str | None:
    """The text without its last line breaks, which an edit leaves as they are."""
    return None if text is None else text.rstrip("\n")


def _names_any(call: ModelCall, gold: Gold) -> bool:
    answer = TASK_ANALYSIS.parse(call.answer.response)
    return bool(getattr(answer, "areas", ()) or getattr(answer, "symbols", ())) and bool(gold.files)
