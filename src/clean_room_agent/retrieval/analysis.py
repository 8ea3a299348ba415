"""Task analysis: what the task names, checked against the index, and what a model adds to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from clean_room_agent.artifacts.evidence import Evidence, StackFrame
from clean_room_agent.artifacts.tasks import RoomRequest, TaskQuery
from clean_room_agent.retrieval.mentions import Mentions, find_mentions, unique
from clean_room_agent.retrieval.questions import evidence_text
from clean_room_agent.retrieval.source import RepositorySource
from clean_room_agent.retrieval.stage import Decision

if TYPE_CHECKING:
    from clean_room_agent.llm.client import ModelClient
    from clean_room_agent.retrieval.prompts.task_analysis import TaskAnalysisAnswer

STAGE = "task_analysis"
MAX_SAME_NAME = 3
"""A bare file name or a symbol that fits more files than this says nothing about which is meant."""
MAX_FOLDERS = 40
"""Folders that the model is shown, those with most files first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The understood task, and what was dropped on the way to it."""

    query: TaskQuery
    decisions: tuple[Decision, ...]


def analyse(request: RoomRequest, source: RepositorySource, models: "ModelClient | None") -> Analysis:
    """The request's task, focus and evidence as a query in which every path, symbol, area and frame exists.

    Without `models`, or where the answer cannot be read, it is what the program found by itself.
    """
    mentions = find_mentions(request_text(request))
    found = _check_mentions(mentions, request, source)
    if models is None:
        note = Decision(stage=STAGE, path="", included=False, reason="no model was asked (--no-model)")
        return Analysis(query=found.query, decisions=(*found.decisions, note))
    return _ask(found, request, source, models)


def _ask(found: Analysis, request: RoomRequest, source: RepositorySource, models: "ModelClient") -> Analysis:
    from clean_room_agent.retrieval.prompts.task_analysis import (  # noqa: PLC0415 - 400 ms that only a model needs
        TASK_ANALYSIS,
        TaskAnalysisInputs,
    )

    inputs = TaskAnalysisInputs(
        folders=folder_lines(source.paths()),
        task=request.task,
        focus=request.focus,
        evidence=evidence_text(request.evidence),
    )
    reply = models.ask(TASK_ANALYSIS, inputs, pass_id=request.pass_id, stage=STAGE)
    if reply.value is None:
        fault = reply.bad.fault if reply.bad is not None else "no answer"
        note = Decision(
            stage=STAGE,
            path="",
            included=False,
            reason=f"the answer could not be read: {fault}",
            call_id=reply.call_id,
        )
        return Analysis(query=found.query, decisions=(*found.decisions, note))
    return _merge(found, reply.value, source, reply.call_id)


def request_text(request: RoomRequest) -> str:
    """The words that the deterministic part reads: task, focus, and the messages of the evidence."""
    return "\n\n".join(part for part in (request.task, request.focus, *request.evidence.messages) if part)


def folder_lines(paths: Iterable[str]) -> tuple[str, ...]:
    """`folder/ (n files)` for the folders with most files, in alphabetical order."""
    counts: dict[str, int] = {}
    for path in paths:
        folder = str(PurePosixPath(path).parent)
        counts[folder] = counts.get(folder, 0) + 1
    largest = sorted(counts, key=lambda folder: (-counts[folder], folder))[:MAX_FOLDERS]
    return tuple(f"{'' if folder == '.' else folder}/ ({counts[folder]} files)" for folder in sorted(largest))


def _check_mentions(mentions: Mentions, request: RoomRequest, source: RepositorySource) -> Analysis:
    decisions: list[Decision] = []
    paths: list[str] = []
    for name in mentions.paths:
        matches = source.resolve_path(name, most=MAX_SAME_NAME)
        paths.extend(matches)
        if not matches:
            decisions.append(_dropped(name, "named by the task; no such file in the index"))
    tests = unique((*request.evidence.failing_tests, *mentions.test_names))
    symbols = [name for name in mentions.identifiers if _is_known_symbol(name, source)]
    query = TaskQuery(
        task=request.task,
        focus=request.focus,
        kind=mentions.kind,
        paths=unique(paths),
        symbols=unique(symbols),
        identifiers=mentions.identifiers,
        error_messages=unique((*mentions.error_messages, *request.evidence.messages)),
        frames=_frames_in_index(request.evidence, mentions.frames, source),
        test_names=tests,
    )
    return Analysis(query=query, decisions=tuple(decisions))


def _frames_in_index(
    evidence: Evidence, mentioned: Sequence[StackFrame], source: RepositorySource
) -> tuple[StackFrame, ...]:
    """Frames whose file is indexed, with the index's path; those of other places (libraries) say nothing here."""
    frames: list[StackFrame] = []
    for frame in (*evidence.frames, *mentioned):
        matches = source.resolve_path(frame.path, most=1)
        frames.extend(StackFrame(path=path, line=frame.line, function=frame.function) for path in matches)
    return unique(frames)


def _is_known_symbol(name: str, source: RepositorySource) -> bool:
    return 0 < len(source.find_symbols(name)) <= MAX_SAME_NAME


def _merge(found: Analysis, answer: "TaskAnalysisAnswer", source: RepositorySource, call_id: int) -> Analysis:
    decisions = list(found.decisions)
    symbols: list[str] = []
    for name in answer.symbols:
        if _is_known_symbol(name, source):
            symbols.append(name)
        else:
            decisions.append(
                _dropped(name, "symbol named by the model; unknown to the index, or too common", call_id)
            )
    areas: list[str] = []
    for name in answer.areas:
        prefix = name.strip().strip("./")
        if prefix and any(path == prefix or path.startswith(prefix + "/") for path in source.paths()):
            areas.append(prefix)
        else:
            decisions.append(_dropped(name, "area named by the model; not in the index", call_id))
    query = found.query
    merged = TaskQuery(
        task=query.task,
        focus=query.focus,
        intent=answer.intent,
        kind=query.kind,
        keywords=unique(word.strip() for word in answer.keywords if word.strip()),
        paths=query.paths,
        symbols=unique((*query.symbols, *symbols)),
        areas=unique(areas),
        identifiers=query.identifiers,
        error_messages=query.error_messages,
        frames=query.frames,
        test_names=query.test_names,
    )
    return Analysis(query=merged, decisions=tuple(decisions))


def _dropped(name: str, reason: str, call_id: int | None = None) -> Decision:
    return Decision(stage=STAGE, path=name, included=False, reason=reason, call_id=call_id)
