"""Task analysis: the paths, symbols, frames and tests that a task names, checked against the index; a model adds hints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextRequest, Judgment, Subject, TaskQuery, fence_for, frame
from clean_room_agent.artifacts.evidence import LEAST_CHARACTERS, Evidence, StackFrame, describe_evidence
from clean_room_agent.artifacts.names import item_name
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    joined,
    sourced,
    without_line_end,
)
from clean_room_agent.paths import is_test_file
from clean_room_agent.retrieval.candidates import asks_for_tests, find_candidates
from clean_room_agent.retrieval.failing_tests import TestCode, find_tests
from clean_room_agent.retrieval.mentions import find_mentions, unique
from clean_room_agent.retrieval.scored_pieces import files_in_scope
from clean_room_agent.retrieval.stage import Decision, StageContext, Verdict
from clean_room_agent.retrieval.stage_source import MAX_SAME_NAME, RepositorySource

if TYPE_CHECKING:
    from clean_room_agent.llm.client import ModelClient
    from clean_room_agent.retrieval.prompts import TaskAnalysisAnswer

STAGE = "task_analysis"
MAX_FILES = 12
MAX_SYMBOLS = 25
TEST_TOKENS = 1200
"""Of the failing tests' source; the first that fit."""


class Analysis(Struct, frozen=True, kw_only=True):
    """The analysed task, and what was dropped because it is not in the index."""

    query: TaskQuery
    decisions: tuple[Decision, ...]


class NearestCode(Struct, frozen=True, kw_only=True):
    """The files and definitions closest to a task, best first."""

    files: tuple[str, ...]
    symbols: tuple[str, ...]
    """`name (path)`; a member by its class, as in `Class.method`."""


def analyse(request: ContextRequest, source: RepositorySource) -> Analysis:
    """Collect what the task, its focus and its evidence mention and the index contains; of the tests' messages, only paths and frames
    count.
    """
    mentions = find_mentions(f"{request.task}\n\n{request.focus}")
    in_messages = find_mentions("\n\n".join(request.evidence.messages))
    decisions: list[Decision] = []
    paths: list[str] = []
    for name in unique((*mentions.paths, *in_messages.paths)):
        matches = source.resolve_path(name, most=MAX_SAME_NAME)
        paths.extend(matches)
        if not matches:
            decisions.append(_dropped_decision(name, "named by the task; no such file in the index"))
    tests = unique((*request.evidence.failing_tests, *mentions.test_names))
    named = tuple(name for name in mentions.named if source.meant_by(name))
    symbols = (*(name for name in mentions.identifiers if source.meant_by(name)), *named)
    query = TaskQuery(
        kind=mentions.kind,
        paths=unique(paths),
        symbols=unique(symbols),
        identifiers=mentions.identifiers,
        named=named,
        error_messages=unique((*mentions.error_messages, *request.evidence.messages)),
        frames=_frames_in_index(request.evidence, unique((*mentions.frames, *in_messages.frames)), source),
        test_names=tests,
    )
    return Analysis(query=query, decisions=tuple(decisions))


def add_model_hints(
    found: Analysis,
    request: ContextRequest,
    source: RepositorySource,
    models: "ModelClient",
    *,
    available_tokens: int,
) -> Analysis:
    """Extend `found` with the areas, keywords and symbols that a model suggests and the index contains.

    If the model's answer cannot be read, `found` only gets a note.
    """
    from clean_room_agent.retrieval.prompts import TASK_ANALYSIS, TaskAnalysisInputs

    near = find_nearest(request, found.query, source, available_tokens=available_tokens)
    inputs = TaskAnalysisInputs(
        task=request.task,
        focus=request.focus if request.focus.strip() != request.task.strip() else "",
        evidence=describe_evidence(request.evidence, bound=LEAST_CHARACTERS),
        tests=_test_source(find_tests(found.query, source), source),
        files=near.files,
        symbols=near.symbols,
    )
    reply = models.ask(TASK_ANALYSIS, inputs, pass_id=request.pass_id, stage=STAGE)
    if reply.value is None:
        fault = reply.bad.fault if reply.bad is not None else "no answer"
        note = Decision(
            stage=STAGE,
            reason=f"the answer could not be read: {fault}",
            verdict=Verdict(label="", reason=fault, judgment=Judgment(call_id=reply.call_id)),
        )
        return Analysis(query=found.query, decisions=(*found.decisions, note))
    return _merge_answer(found, near, reply.value, source, reply.call_id)


def find_nearest(
    request: ContextRequest, query: TaskQuery, source: RepositorySource, *, available_tokens: int
) -> NearestCode:
    """Return the best files of the ranking and, in them, the definitions with most of the task's terms.

    Raises:
        RepositoryError: a file differs from what was indexed.
    """
    candidates, _ = find_candidates(request, query, source)
    wanted = [entry for entry in candidates if asks_for_tests(query) or not is_test_file(entry.path)][
        :MAX_FILES
    ]
    context = StageContext(
        request=request, available_tokens=available_tokens, candidates=candidates, files=tuple(wanted)
    )
    pieces = sorted(
        (-scored.score, scored.key, scored.piece.name)
        for scored in files_in_scope(context, source, query).pieces
        if scored.piece.kind == "symbol" and scored.score > 0
    )
    return NearestCode(
        files=tuple(entry.path for entry in wanted),
        symbols=tuple(f"{name} ({path})" for _, (path, _), name in pieces[:MAX_SYMBOLS]),
    )


def note_no_model(found: Analysis) -> Analysis:
    """Add a note that no model was asked."""
    note = Decision(stage=STAGE, reason="no model was asked (--no-model)")
    return Analysis(query=found.query, decisions=(*found.decisions, note))


def _test_source(tests: Sequence[TestCode], source: RepositorySource) -> SourcedText:
    """The source of the tests, framed, as many as fit."""
    shown: list[TestCode] = []
    for test in tests:
        if source.count("\n".join(one.text for one in (*shown, test))) <= TEST_TOKENS:
            shown.append(test)
    fence = fence_for(test.text for test in shown)
    return without_line_end(joined("\n", (_framed_test(test, fence) for test in shown)))


def _framed_test(test: TestCode, fence: str) -> SourcedText:
    text = sourced(test.text, PromptSource.FILE, path=test.path, symbol=test.name, number=test.start_line)
    head = f"test: {item_name(test.path, test.name, (test.start_line, test.end_line))}"
    return frame(head, text, fence, path=test.path, symbol=test.name)


def _frames_in_index(
    evidence: Evidence, mentioned: Sequence[StackFrame], source: RepositorySource
) -> tuple[StackFrame, ...]:
    """The frames in indexed files, with the index's path; frames in libraries are dropped."""
    frames: list[StackFrame] = []
    for one in (*evidence.frames, *mentioned):
        matches = source.resolve_path(one.path, most=1)
        frames.extend(StackFrame(path=path, line=one.line, function=one.function) for path in matches)
    return unique(frames)


def _possible_definitions(name: str, near: NearestCode) -> tuple[str, ...]:
    """The definitions shown to the model that `name` without its class may refer to; empty if there are too many."""
    shown = unique(entry.rpartition(" (")[0] for entry in near.symbols)
    meant = tuple(entry for entry in shown if entry.endswith(f".{name}"))
    return meant if len(meant) <= MAX_SAME_NAME else ()


def _merge_answer(
    found: Analysis, near: NearestCode, answer: "TaskAnalysisAnswer", source: RepositorySource, call_id: int
) -> Analysis:
    decisions = list(found.decisions)
    symbols: list[str] = []
    for name in answer.symbols:
        if source.meant_by(name):
            symbols.append(name)
        elif completed := _possible_definitions(name, near):
            symbols.extend(completed)
        else:
            decisions.append(
                _dropped_decision(
                    name, "symbol named by the model; unknown to the index, or too common", call_id
                )
            )
    areas: list[str] = []
    for name in answer.areas:
        prefix = name.strip().strip("./")
        if prefix and any(path == prefix or path.startswith(prefix + "/") for path in source.paths()):
            areas.append(prefix)
        else:
            decisions.append(_dropped_decision(name, "area named by the model; not in the index", call_id))
    query = replace(
        found.query,
        intent=answer.intent,
        keywords=unique(word.strip() for word in answer.keywords if word.strip()),
        symbols=unique((*found.query.symbols, *symbols)),
        areas=unique(areas),
    )
    return Analysis(query=query, decisions=tuple(decisions))


def _dropped_decision(name: str, reason: str, call_id: int | None = None) -> Decision:
    verdict = (
        Verdict(label="", reason=reason, judgment=Judgment(call_id=call_id)) if call_id is not None else None
    )
    return Decision(stage=STAGE, subject=Subject(path=name), reason=reason, verdict=verdict)
