"""Refinement: what a failed attempt lacked is judged and merged into the context it had."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from clean_room_agent.artifacts.context import DETAILS, ContextRequest, RefinementRequest, Subject, TaskQuery
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.retrieval.mentions import unique
from clean_room_agent.retrieval.precision_stage import PrecisionStage
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig
from clean_room_agent.retrieval.stage import Candidate, Decision, Judge, Remembered, Selection, StageContext
from clean_room_agent.retrieval.stage_source import RepositorySource

STAGE = "refinement_merge"
NAMED_SCORE = 1.0
WHOLE_SHARE = 0.8
"""The most that primary code may take once a whole file is added, as tests have to fit beside it."""

Place = tuple[str, int, bool]
"""Path, first line, and whether it is of the whole file."""


def merge_request(
    refinement: RefinementRequest,
    request: ContextRequest,
    earlier: Remembered,
    source: RepositorySource,
    judge: Judge,
    *,
    config: JudgmentsConfig,
    available_tokens: int,
) -> tuple[StageContext, TaskQuery]:
    """Merge what the refinement names into the earlier selections: the context to assemble, and the query with what the
    failure added.

    Its files are treated like those of a plan (shown entirely if they fit), files of its symbols are judged (but the
    symbols are at least supporting code), and its tests are shown to be read. Earlier files are judged again only if
    they changed since. The result's decisions are those of this merge alone.
    """
    additions, notes = _added_candidates(refinement, earlier, source)
    renewed = {path for path, *_ in _changed_files(earlier, source)}
    kept = tuple(entry for entry in earlier.outputs.selections if entry.path not in renewed)
    query = replace(
        earlier.query,
        symbols=unique((*earlier.query.symbols, *refinement.missing_symbols)),
        error_messages=unique((*earlier.query.error_messages, *refinement.error_signatures)),
        test_names=unique((*refinement.missing_tests, *earlier.query.test_names)),
    )
    wished = replace(request, symbols=unique((*request.symbols, *refinement.missing_symbols)))
    before = StageContext(
        request=wished,
        available_tokens=max(available_tokens - _primary_tokens(kept, source), 0),
        candidates=additions,
        files=additions,
        selections=kept,
    )
    judged = PrecisionStage(config, name=STAGE).run(before, source, query, judge)
    whole, whole_notes = _whole_files(refinement, kept, source, available_tokens)
    kept, added = _merge_selections(kept, (*whole, *judged.selections))
    named, named_notes = _named_symbols(refinement, (*kept, *added), source)
    files = {entry.path: entry for entry in (*earlier.outputs.files, *additions)}
    context = replace(
        judged,
        request=request,
        available_tokens=available_tokens,
        candidates=tuple(files.values()),
        files=tuple(files.values()),
        selections=(*kept, *added, *named),
        decisions=(
            *notes,
            *whole_notes,
            *(replace(entry, stage=STAGE) for entry in judged.decisions),
            *named_notes,
        ),
    )
    return context, query


def _merge_selections(
    kept: Sequence[Selection], judged: Sequence[Selection]
) -> tuple[tuple[Selection, ...], tuple[Selection, ...]]:
    """What remains of the earlier and of the new selections: each piece once, in its greater detail."""
    whole = {entry.path for entry in (*kept, *judged) if _is_whole(entry)}
    before = {_selection_place(entry): DETAILS.index(entry.detail) for entry in kept}
    after = {_selection_place(entry): DETAILS.index(entry.detail) for entry in judged}

    def stays(entry: Selection, other: Mapping[Place, int], *, first: bool) -> bool:
        if entry.path in whole and entry.section == "code" and not _is_whole(entry):
            return False
        mine, theirs = DETAILS.index(entry.detail), other.get(_selection_place(entry), len(DETAILS))
        return mine < theirs or (first and mine == theirs)

    return (
        tuple(entry for entry in kept if stays(entry, after, first=True)),
        tuple(entry for entry in judged if stays(entry, before, first=False)),
    )


def _is_whole(entry: Selection) -> bool:
    return entry.symbol is None and entry.detail == "primary"


def _selection_place(entry: Selection) -> Place:
    return entry.path, entry.start_line, entry.symbol is None


def _added_candidates(
    refinement: RefinementRequest, earlier: Remembered, source: RepositorySource
) -> tuple[tuple[Candidate, ...], list[Decision]]:
    """The files to choose from, by tier and path; and notes on names that lead nowhere."""
    found: dict[str, Candidate] = {}
    notes: list[Decision] = []
    for path, tier, reason in (*_named_places(refinement, source, notes), *_changed_files(earlier, source)):
        row = source.file(path)
        if row is not None and (path not in found or tier < found[path].tier):
            found[path] = Candidate(
                path=path, file_id=row.id, tier=tier, score=NAMED_SCORE, reasons=(reason,)
            )
    ordered = sorted(found.values(), key=lambda entry: (entry.tier, entry.path))
    notes.extend(_candidate_decision(entry) for entry in ordered)
    return tuple(ordered), notes


def _named_places(
    refinement: RefinementRequest, source: RepositorySource, notes: list[Decision]
) -> Iterator[tuple[str, int, str]]:
    """Yield path, tier and reason of each file the refinement leads to; names that lead nowhere go to `notes`."""
    for name in refinement.missing_files:
        paths = source.resolve_path(name, most=1)
        yield from ((path, 0, "named by the failure") for path in paths)
        if not paths:
            notes.append(_unknown_name_decision(name, "file"))
    for name in refinement.missing_symbols:
        symbols = source.meant_by(name)
        yield from (
            (source.path_of(symbol.file_id), 1, f"defines {name}, named by the failure") for symbol in symbols
        )
        if not symbols:
            notes.append(_unknown_name_decision(name, "symbol"))
    for name in refinement.missing_tests:
        if "::" not in name:
            yield from (
                (path, 1, "holds a test named by the failure") for path in source.resolve_path(name, most=1)
            )


def _changed_files(earlier: Remembered, source: RepositorySource) -> Iterator[tuple[str, int, str]]:
    for item in earlier.package.items:
        row = source.file(item.path)
        if row is not None and row.content_hash != item.content_hash:
            yield item.path, item.tier, "changed since it was chosen from"


def _unknown_name_decision(name: str, what: str) -> Decision:
    reason = f"{what} named by the failure; unknown to the index, or too common"
    return Decision(stage=STAGE, subject=Subject(path=name, tier=1), reason=reason)


def _whole_files(
    refinement: RefinementRequest, kept: Sequence[Selection], source: RepositorySource, available_tokens: int
) -> tuple[list[Selection], list[Decision]]:
    """The files to show entirely that fit, with a note for the record on each."""
    chosen: list[Selection] = []
    notes: list[Decision] = []
    for path in refinement.whole_files:
        text = source.text(path)
        if text is None:
            notes.append(_unknown_name_decision(path, "file"))
            continue
        tier = min((one.tier for one in kept if one.path == path), default=0)
        reason = "the same failure came again; shown whole"
        entry = Selection.of_file(text, "primary", tier=tier, score=NAMED_SCORE, reason=reason)
        beside = [one for one in kept if one.path != path]
        if _primary_tokens([*beside, *chosen, entry], source) > available_tokens * WHOLE_SHARE:
            reason = "the same failure came again; too large to be shown whole"
            notes.append(Decision(stage=STAGE, subject=Subject(path=path, tier=entry.tier), reason=reason))
            continue
        chosen.append(entry)
        notes.append(Decision.without_asking(STAGE, entry))
    return chosen, notes


def _named_symbols(
    refinement: RefinementRequest, selections: Sequence[Selection], source: RepositorySource
) -> tuple[list[Selection], list[Decision]]:
    """Symbols that the failure names and no selection shows, as supporting code whatever the verdicts."""
    chosen: list[Selection] = []
    for name in refinement.missing_symbols:
        for symbol in source.meant_by(name):
            path = source.path_of(symbol.file_id)
            if not _is_chosen(path, symbol, (*selections, *chosen)):
                chosen.append(
                    Selection(
                        path=path,
                        symbol=symbol.qualified_name,
                        start_line=symbol.start_line,
                        end_line=symbol.end_line,
                        detail="supporting",
                        tier=1,
                        score=NAMED_SCORE,
                        reason="named by the failure",
                        outline=f"{symbol.signature}\n",
                    )
                )
    return chosen, [Decision.without_asking(STAGE, entry) for entry in chosen]


def _is_chosen(path: str, symbol: SymbolRow, selections: Iterable[Selection]) -> bool:
    return any(
        entry.path == path and entry.start_line <= symbol.start_line and symbol.end_line <= entry.end_line
        for entry in selections
    )


def _primary_tokens(selections: Iterable[Selection], source: RepositorySource) -> int:
    return sum(
        source.count(text.span(entry.start_line, entry.end_line))
        for entry in selections
        if entry.detail == "primary" and (text := source.text(entry.path)) is not None
    )


def _candidate_decision(entry: Candidate) -> Decision:
    return Decision(
        stage=STAGE, subject=entry.subject, included=True, reason=f"taken up: {'; '.join(entry.reasons)}"
    )
