"""Candidates: search first; then what is named, imported and changed together guarantees and explains."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from clean_room_agent.artifacts.tasks import RoomRequest, TaskQuery
from clean_room_agent.query.terms import query_terms, spoken_terms
from clean_room_agent.retrieval.analysis import MAX_SAME_NAME, request_text
from clean_room_agent.retrieval.side_files import asks_for_tests, file_weight, is_test_file
from clean_room_agent.retrieval.source import RepositorySource
from clean_room_agent.retrieval.stage import Candidate, Decision

STAGE = "candidates"
SEARCH_LIMIT = 200
"""Files that the search gives, best first."""
MAX_CANDIDATES = 60
"""Files handed on, best first; those of tier 0 are never counted out."""
MAX_TIER_1 = 12
"""Files let in because they are named, best first; further ones are judged like the rest."""
MAX_NEIGHBORS = 40
"""Imports, importers and co-changed files looked at for one seed, in the order of the index's answer."""
MIN_CO_CHANGE = 3
SEARCH_SEEDS = 5
"""Files that the search found first, whose neighbours are looked at beside those of the named ones."""

NAMED_GAIN = {"path": 1.0, "symbol": 0.5, "frame": 0.5, "test": 0.2, "area": 0.15}
IMPORT_GAIN = 0.15
CO_CHANGE_GAIN = 0.2
METADATA_GAIN = 0.1


@dataclass(slots=True)
class _Found:
    """A file while what speaks for it is collected."""

    file_id: int
    tier: int = 4
    search: float = 0.0
    gain: float = 0.0
    reasons: list[str] = field(default_factory=list)


class _Pool:
    """The files found so far."""

    def __init__(self, source: RepositorySource) -> None:
        self._source = source
        self.files: dict[str, _Found] = {}

    def add(self, path: str, *, tier: int, reason: str, gain: float) -> None:
        row = self._source.file(path)
        if row is None:
            return
        found = self.files.setdefault(path, _Found(file_id=row.id))
        found.tier = min(found.tier, tier)
        if reason not in found.reasons:
            found.reasons.append(reason)
            found.gain += gain

    def in_tier(self, most: int) -> list[str]:
        return sorted(path for path, found in self.files.items() if found.tier <= most)


def find_candidates(
    request: RoomRequest, query: TaskQuery, source: RepositorySource
) -> tuple[tuple[Candidate, ...], tuple[Decision, ...]]:
    """The files that may matter, tier 0 and 1 first, then by score and path; and what was left out on the way."""
    pool = _Pool(source)
    decisions = _add_planned(request, pool, source)
    _add_search(request, query, pool, source)
    _add_named(query, pool, source)
    decisions += _bound_tier_1(pool, query)
    _add_neighbors(pool, source)
    decisions += _add_metadata(query, pool, source)
    ranked = sorted(
        (_candidate(path, found, query) for path, found in pool.files.items()),
        key=lambda entry: (min(entry.tier, 2), -entry.score, entry.path),
    )
    kept = [entry for place, entry in enumerate(ranked) if place < MAX_CANDIDATES or entry.tier == 0]
    if len(kept) < len(ranked):
        reason = f"{len(ranked) - len(kept)} more files rank below the first {MAX_CANDIDATES}"
        decisions.append(Decision(stage=STAGE, path="", included=False, reason=reason))
    return tuple(kept), tuple(decisions)


def search_terms(request: RoomRequest, query: TaskQuery) -> dict[str, float]:
    """Weighted terms of the request, and of what the analysis adds to it at half the weight."""
    terms = dict(query_terms(request_text(request)))
    for term, weight in query_terms(_added_text(request, query)).items():
        terms[term] = max(terms.get(term, 0.0), weight / 2)
    return terms


def _added_text(request: RoomRequest, query: TaskQuery) -> str:
    return " ".join((*query.keywords, *query.symbols, *request.symbols))


def _add_planned(request: RoomRequest, pool: _Pool, source: RepositorySource) -> list[Decision]:
    decisions = []
    for path in request.files:
        if source.file(path) is None:
            reason = "named by the plan; not in the index, so there is nothing to show (a new file?)"
            decisions.append(Decision(stage=STAGE, path=path, tier=0, included=False, reason=reason))
        pool.add(path, tier=0, reason="named by the plan", gain=NAMED_GAIN["path"])
    for name in request.symbols:
        found = source.find_symbols(name)
        paths = sorted({source.path_of(symbol.file_id) for symbol in found})
        if not set(paths) & set(request.files) and len(paths) <= MAX_SAME_NAME:
            for path in paths:
                pool.add(path, tier=1, reason=f"defines {name}, named by the plan", gain=NAMED_GAIN["symbol"])
    return decisions


def _add_search(request: RoomRequest, query: TaskQuery, pool: _Pool, source: RepositorySource) -> None:
    spoken = spoken_terms(f"{request_text(request)}\n{_added_text(request, query)}")
    hits = source.kb.search(search_terms(request, query), limit=SEARCH_LIMIT, spoken=spoken)
    scores = {hit.path: hit.score * file_weight(hit.path, query) for hit in hits}
    top = max(scores.values(), default=0.0) or 1.0
    for hit in hits:
        pool.add(hit.path, tier=4, reason=f"search: {', '.join(hit.reasons)}", gain=0.0)
        pool.files[hit.path].search = scores[hit.path] / top


def _add_named(query: TaskQuery, pool: _Pool, source: RepositorySource) -> None:
    for path in query.paths:
        pool.add(path, tier=1, reason="named by the task", gain=NAMED_GAIN["path"])
    for name in query.symbols:
        for path in sorted({source.path_of(symbol.file_id) for symbol in source.find_symbols(name)}):
            if not is_test_file(path) or asks_for_tests(query):
                pool.add(path, tier=1, reason=f"defines {name}", gain=NAMED_GAIN["symbol"])
    for frame in query.frames:
        pool.add(frame.path, tier=1, reason=f"in a stack trace (line {frame.line})", gain=NAMED_GAIN["frame"])
    for path in test_files(query, source):
        pool.add(path, tier=1, reason="holds a failing test", gain=NAMED_GAIN["test"])
    for area in query.areas:
        for path, found in sorted(pool.files.items()):
            if path == area or path.startswith(area + "/"):
                pool.add(
                    path,
                    tier=found.tier,
                    reason=f"in {area}, where the task is likely",
                    gain=NAMED_GAIN["area"],
                )


def test_files(query: TaskQuery, source: RepositorySource) -> tuple[str, ...]:
    """The indexed files of the named tests, sorted."""
    files: set[str] = set()
    for name in query.test_names:
        path, marked, _ = name.partition("::")
        if marked or "/" in path:
            files.update(source.resolve_path(path, most=1))
    return tuple(sorted(files))


def _bound_tier_1(pool: _Pool, query: TaskQuery) -> list[Decision]:
    named = [path for path in pool.in_tier(1) if pool.files[path].tier == 1]
    named.sort(key=lambda path: (-_score(path, pool.files[path], query), path))
    decisions = []
    for path in named[MAX_TIER_1:]:
        pool.files[path].tier = 4
        reason = f"named, but not among the first {MAX_TIER_1} named files: judged like the rest"
        decisions.append(Decision(stage=STAGE, path=path, tier=1, included=False, reason=reason))
    return decisions


def _add_neighbors(pool: _Pool, source: RepositorySource) -> None:
    for seed, weight in _seeds(pool):
        file_id = pool.files[seed].file_id
        for row in source.kb.get_dependencies(file_id, direction="imports")[:MAX_NEIGHBORS]:
            pool.add(row.file.path, tier=2, reason=f"imported by {seed}", gain=IMPORT_GAIN * weight)
        for row in source.kb.get_dependencies(file_id, direction="imported_by")[:MAX_NEIGHBORS]:
            pool.add(row.file.path, tier=2, reason=f"imports {seed}", gain=IMPORT_GAIN * weight)
        neighbors = source.kb.get_co_change_neighbors(file_id, min_count=MIN_CO_CHANGE, limit=MAX_NEIGHBORS)
        most = max((row.count for row in neighbors), default=1)
        for neighbor in neighbors:
            reason = f"changed together with {seed} {neighbor.count} times"
            gain = CO_CHANGE_GAIN * weight * neighbor.count / most
            pool.add(neighbor.file.path, tier=3, reason=reason, gain=gain)


def _seeds(pool: _Pool) -> list[tuple[str, float]]:
    """What is named counts in full; the best that the search found, by its score (1 for the first)."""
    named = pool.in_tier(1)
    found = [path for path, entry in pool.files.items() if entry.tier > 1 and entry.search > 0]
    found.sort(key=lambda path: (-pool.files[path].search, path))
    return [(path, 1.0) for path in named] + [
        (path, pool.files[path].search) for path in found[:SEARCH_SEEDS]
    ]


def _add_metadata(query: TaskQuery, pool: _Pool, source: RepositorySource) -> list[Decision]:
    overview = source.kb.get_repo_overview()
    if overview is None or not overview.described:
        reason = "tier 4 by metadata skipped: no file is described (`cra enrich --promote`)"
        return [Decision(stage=STAGE, path="", included=False, reason=reason)]
    for word in query.keywords:
        for row in source.kb.search_files_by_metadata(concept=word)[:MAX_NEIGHBORS]:
            pool.add(row.path, tier=4, reason=f"described by the concept {word!r}", gain=METADATA_GAIN)
    return []


def _candidate(path: str, found: _Found, query: TaskQuery) -> Candidate:
    return Candidate(
        path=path,
        file_id=found.file_id,
        tier=found.tier,
        score=round(_score(path, found, query), 4),
        reasons=tuple(_strongest_first(found.reasons)),
    )


def _score(path: str, found: _Found, query: TaskQuery) -> float:
    """Search, plus what structure adds (at most as much again, and less for side files), over two."""
    return (found.search + min(found.gain, 1.0) * file_weight(path, query)) / 2


def _strongest_first(reasons: Iterable[str]) -> list[str]:
    """Named, then searched, then neighbours, each in the order of their finding."""
    neighbors = ("imported by ", "imports ", "changed together ")
    return sorted(reasons, key=lambda reason: (reason.startswith(neighbors), reason.startswith("search:")))
