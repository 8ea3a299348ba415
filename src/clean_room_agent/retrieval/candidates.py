"""Finds the candidate files of a task: by ranking, and by what is named, imported or often changed together."""

import re
from collections.abc import Iterable

from msgspec import Struct, field

from clean_room_agent.artifacts.context import ContextRequest, Subject, TaskQuery
from clean_room_agent.artifacts.names import counted
from clean_room_agent.paths import FileKind, is_side_file, is_test_file, is_translation_or_data, kind_of
from clean_room_agent.query.ranking import KIND_WEIGHTS, TOGETHER
from clean_room_agent.query.search import SearchQuery
from clean_room_agent.retrieval.failing_tests import file_of_test, find_tests
from clean_room_agent.retrieval.mentions import WORD, unique
from clean_room_agent.retrieval.stage import Candidate, Decision
from clean_room_agent.retrieval.stage_source import MAX_SAME_NAME, RepositorySource, top_names

STAGE = "candidates"
RANKED = 200
"""Files taken from the ranking, best first."""
MAX_CANDIDATES = 100
"""Candidates handed on, best first; those of tier 0 always are."""
MAX_TIER_1 = 12
"""Files that are in because they are named, best first; further ones are judged like the rest."""
MAX_NEIGHBORS = 40
"""Imports, importers and co-changed files looked at for one seed, in the order of the index's answer."""
MIN_CO_CHANGE = 3
FEW_IMPORTS = 5
"""If a failing test's file imports more files, each of them counts less."""
MAX_REEXPORTS = 2
"""How many files without definitions of their own are followed in a row to what they re-export."""
RUNNER_TEXT = "assert assertion actual equal error expect expected failed line received test value"
RUNNER_WORDS = frozenset(RUNNER_TEXT.split())
"""Words of test runners' failure messages, which find no code."""
TRANSLATING = re.compile(r"\b(?:translat|locali[sz]|i18n|l10n)", re.IGNORECASE)
RANKED_SEEDS = 5
"""The best files of the ranking, whose neighbours are added along with those of the named files."""
GAINS = {
    "plan": 2.0,
    "frame": 1.0,
    "area": 0.5,
    "test": 0.3,
    "import": 0.05,
    "metadata": 0.2,
    "tested": 0.3,
    "used": 0.6,
}
"""What structure adds to a ranking's score (which is 2 for the best words, and 2 for a path that the task names)."""
MAX_GAIN = 2.0


class _FoundFile(Struct):
    """A file and the evidence for it, while it is being collected."""

    file_id: int
    weight: float
    """The factor of its kind (`KIND_WEIGHTS`)."""
    tier: int = 4
    ranked: float = 0.0
    gain: float = 0.0
    reasons: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        return self.ranked + self.weight * min(self.gain, MAX_GAIN)


class _Pool:
    """The files found so far."""

    def __init__(self, source: RepositorySource, wanted: frozenset[FileKind]) -> None:
        self._source = source
        self._weights = {kind: 1.0 if kind in wanted else weight for kind, weight in KIND_WEIGHTS.items()}
        self.files: dict[str, _FoundFile] = {}

    def add(self, path: str, *, tier: int, reason: str, gain: float = 0.0, ranked: float = 0.0) -> None:
        row = self._source.file(path)
        if row is None:
            return
        found = self.files.get(path)
        if found is None:
            found = self.files[path] = _FoundFile(file_id=row.id, weight=self._weights[kind_of(path)])
        found.tier = min(found.tier, tier)
        found.ranked = max(found.ranked, ranked)
        if reason and reason not in found.reasons:
            found.reasons.append(reason)
            found.gain += gain

    def best(self, paths: Iterable[str]) -> list[str]:
        """These files, best first, then by path."""
        return sorted(paths, key=lambda path: (-self.files[path].score, path))

    def in_tier(self, most: int) -> list[str]:
        return sorted(path for path, found in self.files.items() if found.tier <= most)


def find_candidates(
    request: ContextRequest, query: TaskQuery, source: RepositorySource
) -> tuple[tuple[Candidate, ...], tuple[Decision, ...]]:
    """Return the files that may matter, tier 0 first, then by score and path; and notes on what was left out."""
    search = search_query(request, query)
    pool = _Pool(source, search.wanted)
    decisions = _add_planned(request, pool, source)
    for hit in source.kb.rank(search, limit=RANKED):
        pool.add(hit.path, tier=4, reason="", ranked=hit.score)
        pool.files[hit.path].reasons.extend(hit.reasons)
    _add_named(query, pool, source)
    _add_tested(query, pool, source)
    decisions += _bound_tier_1(pool)
    _add_neighbors(pool, source)
    decisions += _add_metadata(query, pool, source)
    decisions += _drop_data(request, search, pool)
    ranked = pool.best(pool.files)
    ranked.sort(key=lambda path: pool.files[path].tier > 0)
    kept = [path for place, path in enumerate(ranked) if place < MAX_CANDIDATES or pool.files[path].tier == 0]
    if len(kept) < len(ranked):
        reason = f"{counted(len(ranked) - len(kept), 'more file ranks', 'more files rank')} below the first {MAX_CANDIDATES}"
        decisions.append(Decision(stage=STAGE, reason=reason))
    top = max((found.score for found in pool.files.values()), default=0.0) or 1.0
    return tuple(_candidate(path, pool.files[path], top) for path in kept), tuple(decisions)


def _drop_data(request: ContextRequest, search: SearchQuery, pool: _Pool) -> list[Decision]:
    """Take out translations and data that nobody named, unless the task is about such files."""
    if "side" in search.wanted or TRANSLATING.search(request.task):
        return []
    dropped = [path for path, found in pool.files.items() if found.tier > 1 and is_translation_or_data(path)]
    if not dropped or len(dropped) == len(pool.files):
        return []
    for path in dropped:
        del pool.files[path]
    reason = f"{len(dropped)} translations and data files are out: the task is about code"
    return [Decision(stage=STAGE, reason=reason)]


def asks_for_tests(query: TaskQuery) -> bool:
    """Whether the task is about tests themselves."""
    return query.kind == "test" or any(is_test_file(named) for named in query.paths)


def search_query(request: ContextRequest, query: TaskQuery) -> SearchQuery:
    """What the request and the analysis of its task look for."""
    wanted: set[FileKind] = {"test"} if asks_for_tests(query) else set()
    if query.kind == "docs" or any(is_side_file(named) for named in query.paths):
        wanted.add("side")
    return SearchQuery(
        text=request.task,
        added=" ".join(
            (*query.keywords, *query.symbols, *request.symbols, *_message_words(query.error_messages))
        ),
        names=unique((*query.identifiers, *query.symbols, *request.symbols)),
        paths=query.paths,
        wanted=frozenset(wanted),
    )


def _message_words(messages: Iterable[str]) -> list[str]:
    """The words of test failures, without the test runner's own."""
    return [
        word
        for message in messages
        for word in WORD.findall(message)
        if word.lower() not in RUNNER_WORDS and not word.endswith(("Error", "Exception"))
    ]


def _add_planned(request: ContextRequest, pool: _Pool, source: RepositorySource) -> list[Decision]:
    decisions = []
    for path in request.files:
        if source.file(path) is None:
            reason = "named by the plan; not in the index, so there is nothing to show (a new file?)"
            decisions.append(Decision(stage=STAGE, subject=Subject(path=path, tier=0), reason=reason))
        pool.add(path, tier=0, reason="named by the plan", gain=GAINS["plan"])
    for name in request.symbols:
        found = source.find_symbols(name)
        paths = sorted({source.path_of(symbol.file_id) for symbol in found})
        if not set(paths) & set(request.files) and len(paths) <= MAX_SAME_NAME:
            for path in paths:
                pool.add(path, tier=1, reason=f"defines {name}, named by the plan")
    return decisions


def _add_named(query: TaskQuery, pool: _Pool, source: RepositorySource) -> None:
    for path in query.paths:
        pool.add(path, tier=1, reason="named by the task")
    for name in query.symbols:
        for path in sorted({source.path_of(symbol.file_id) for symbol in source.find_symbols(name)}):
            if not is_test_file(path) or asks_for_tests(query):
                pool.add(path, tier=1, reason=f"defines {name}")
    for frame in query.frames:
        pool.add(frame.path, tier=1, reason=f"in a stack trace (line {frame.line})", gain=GAINS["frame"])
    for path in test_files(query, source):
        pool.add(path, tier=1, reason="holds a failing test", gain=GAINS["test"])
    for area in query.areas:
        for path, found in sorted(pool.files.items()):
            if path == area or path.startswith(area + "/"):
                pool.add(
                    path, tier=found.tier, reason=f"in {area}, where the task is likely", gain=GAINS["area"]
                )


def test_files(query: TaskQuery, source: RepositorySource) -> tuple[str, ...]:
    """The indexed files of the named tests, sorted."""
    return tuple(sorted({path for name in query.test_names if (path := file_of_test(name, source))}))


def _add_tested(query: TaskQuery, pool: _Pool, source: RepositorySource) -> None:
    """Add what the failing tests import, above all the files that define a name they use."""
    for test in find_tests(query, source):
        row = source.file(test.path)
        if row is None:
            continue
        words = frozenset(WORD.findall(test.text))
        imported = _imported_files(row.id, source)
        for path in imported:
            if is_test_file(path):
                continue
            gain = GAINS["tested"] / max(1.0, len(imported) / FEW_IMPORTS)
            pool.add(path, tier=2, reason=f"imported by {test.path}, which holds a failing test", gain=gain)
            defined = [
                name for name in top_names(source.definitions_at(path), most=MAX_NEIGHBORS) if name in words
            ]
            if defined:
                reason = f"defines {', '.join(defined[:3])}, which a failing test uses"
                pool.add(path, tier=2, reason=reason, gain=GAINS["used"])


def _imported_files(file_id: int, source: RepositorySource) -> list[str]:
    """The files that a file imports, with files that only re-export replaced by those behind them."""
    paths: dict[str, None] = {}
    waiting = [(file_id, 0)]
    while waiting:
        current, depth = waiting.pop(0)
        for row in source.kb.get_dependencies(current, direction="imports")[:MAX_NEIGHBORS]:
            if row.file.path in paths:
                continue
            paths[row.file.path] = None
            paths.update(dict.fromkeys(one.file.path for one in source.kb.get_reexports(row.file.id)))
            if depth < MAX_REEXPORTS and not source.definitions_at(row.file.path):
                waiting.append((row.file.id, depth + 1))
    return list(paths)


def _bound_tier_1(pool: _Pool) -> list[Decision]:
    named = pool.best(path for path in pool.in_tier(1) if pool.files[path].tier == 1)
    decisions = []
    for path in named[MAX_TIER_1:]:
        pool.files[path].tier = 4
        reason = f"named, but not among the first {MAX_TIER_1} named files: judged like the rest"
        decisions.append(Decision(stage=STAGE, subject=Subject(path=path, tier=1), reason=reason))
    return decisions


def _add_neighbors(pool: _Pool, source: RepositorySource) -> None:
    for seed, weight in _neighbor_seeds(pool):
        file_id = pool.files[seed].file_id
        gain = GAINS["import"] * weight
        for row in source.kb.get_dependencies(file_id, direction="imports")[:MAX_NEIGHBORS]:
            pool.add(row.file.path, tier=2, reason=f"imported by {seed}", gain=gain)
        for row in source.kb.get_dependencies(file_id, direction="imported_by")[:MAX_NEIGHBORS]:
            pool.add(row.file.path, tier=2, reason=f"imports {seed}", gain=gain)
        for together in source.kb.get_co_change_neighbors(
            file_id, min_count=MIN_CO_CHANGE, limit=MAX_NEIGHBORS
        ):
            path = together.file.path
            pool.add(path, tier=3, reason=f"changed together with {seed} {counted(together.count, 'time')}")
            if path in pool.files and (known := TOGETHER.format(seed)) in pool.files[path].reasons:
                pool.files[path].reasons.remove(known)


def _neighbor_seeds(pool: _Pool) -> list[tuple[str, float]]:
    """The files whose neighbours are added, with weights: 1 if named, relative scores for the best of the rest."""
    named = pool.in_tier(1)
    rest = pool.best(path for path, found in pool.files.items() if found.tier > 1 and found.ranked > 0)
    top = max((found.score for found in pool.files.values()), default=0.0) or 1.0
    return [(path, 1.0) for path in named] + [
        (path, pool.files[path].score / top) for path in rest[:RANKED_SEEDS]
    ]


def _add_metadata(query: TaskQuery, pool: _Pool, source: RepositorySource) -> list[Decision]:
    if not source.kb.is_described():
        reason = "tier 4 by metadata skipped: no file is described (`cra enrich --promote`)"
        return [Decision(stage=STAGE, reason=reason)]
    for word in query.keywords:
        for row in source.kb.search_files_by_metadata(concept=word)[:MAX_NEIGHBORS]:
            pool.add(row.path, tier=4, reason=f"described by the concept {word!r}", gain=GAINS["metadata"])
    return []


def _candidate(path: str, found: _FoundFile, top: float) -> Candidate:
    return Candidate(
        path=path,
        file_id=found.file_id,
        tier=found.tier,
        score=round(found.score / top, 4),
        reasons=tuple(_strongest_first(found.reasons)),
    )


def _strongest_first(reasons: Iterable[str]) -> list[str]:
    """First reasons of being named, then of the ranking, then of neighbours; each in the order found."""
    named = ("named by ", "defines ", "in a stack trace", "holds a failing test")
    neighbors = ("imported by ", "imports ", "changed together ")
    return sorted(reasons, key=lambda reason: (reason.startswith(neighbors), not reason.startswith(named)))
