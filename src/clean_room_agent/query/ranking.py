"""The order of a repository's files by how likely a task is to be about them, with reasons.

Each kind of evidence is a signal. Of a signal, a file gets its share of the best file's value; the shares times their
weights are added up, and files of a kind that the task does not ask for count a part of that.

An example: the query `split` over three files that came with one commit, whose message says nothing of it.

    pay/bill.py    def split(cents):       pay/tip.py    def tip(bill):       docs/bill.md    How a bill is split.
                       return cents                          return bill

- `fields`: two of three files hold the term, so its idf is ln(1 + (3 - 2 + 0.5)/(2 + 0.5)) = 0.470; standing in the
  first line, it weighs 2. pay/bill.py has it once among its symbols (weight 3) and once in its body, whose 5 words,
  where the mean is 4, bring it down to 1/(0.4 + 0.6 * 5/4) = 0.870: x = 3.870 gives 2 * 0.470 * x/(x + 8) = 0.306.
  docs/bill.md has it once in a body of 2 words: x = 1/(0.4 + 0.6 * 2/4) = 1.429 gives 0.142. Shares: 1 and 0.465.
- `definitions`: of the code files found, only pay/bill.py defines something that holds the term. Share: 1.
- `co_change`: the other two changed together with pay/bill.py, the best code file by its fields. Shares: 1 and 1.

    file          fields  definitions  co_change    score
    pay/bill.py   1       1            0            2 * 1 + 1 * 1             = 3.000
    pay/tip.py    0       0            1            0.7 * 1                   = 0.700
    docs/bill.md  0.465   0            1            0.3 * (2 * 0.465 + 0.7)   = 0.489

The first factor of docs/bill.md is what documentation counts where the task does not ask for any.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.db.curated import files, symbols
from clean_room_agent.db.rows import Connection
from clean_room_agent.paths import FileKind, kind_of
from clean_room_agent.query.search import (
    ChunkScores,
    CommitHistory,
    DefinitionScore,
    FieldScores,
    NameIndex,
    SearchQuery,
    TermGains,
    Vote,
)

TERMS_SHOWN = 5
SUBJECT_SHOWN = 60
TOGETHER = "often changed together with {}"
WEIGHTS: Mapping[str, float] = {
    "fields": 2.0,
    "definitions": 1.0,
    "messages": 1.2,
    "symbols": 0.5,
    "path": 2.0,
    "name": 1.0,
    "scope": 2.0,
    "co_change": 0.7,
}
"""What a share of 1 counts, by signal."""
KIND_WEIGHTS: Mapping[FileKind, float] = {"code": 1.0, "test": 0.1, "side": 0.3}
"""What the score of a file is multiplied by, where the task does not ask for its kind."""
TERMS = 20
"""Terms of a query that are looked for in files: those that tell files apart best."""
READ_FILES = 16
"""Files whose definitions are scored: the best by their fields."""
REASONED = 100
"""Files that get reasons, best first."""


class Signal(Struct, frozen=True, kw_only=True):
    """One kind of evidence for the files of one query."""

    name: str
    values: Mapping[int, float]
    """File id -> strength of the evidence, more than 0."""
    top: float
    """The value that counts in full."""
    explain: Callable[[int], str]
    """The evidence for a file in words."""

    def share(self, file_id: int) -> float:
        """The strength for this file as a part of `top`, 0 to 1."""
        return self.values.get(file_id, 0.0) / self.top


def relative_signal(name: str, values: Mapping[int, float], explain: Callable[[int], str]) -> Signal:
    """A signal whose greatest value counts in full."""
    return Signal(name=name, values=values, top=max(values.values(), default=0.0) or 1.0, explain=explain)


def named_signal(name: str, found: Mapping[int, tuple[float, str]], words: str) -> Signal:
    """A signal of names, of which 1 counts in full; `words` has a place for the name."""
    values = {file_id: weight for file_id, (weight, _) in found.items()}
    return Signal(name=name, values=values, top=1.0, explain=lambda file_id: words.format(found[file_id][1]))


def fields_signal(fields: FieldScores, query: SearchQuery, terms: Mapping[str, TermGains]) -> Signal:
    """The words in the fields of each file."""
    values: dict[int, float] = {}
    for of_term in terms.values():
        for file_id, gain in of_term.gains.items():
            values[file_id] = values.get(file_id, 0.0) + gain

    def explain(file_id: int) -> str:
        strongest = sorted(
            (-one.gains[file_id], term) for term, one in terms.items() if file_id in one.gains
        )[:TERMS_SHOWN]
        words = (
            f"{query.surface_forms.get(term, term)!r} in {', '.join(fields.holders(terms[term], file_id))}"
            for _, term in strongest
        )
        return f"words: {'; '.join(words)}"

    return relative_signal("fields", values, explain)


def definitions_signal(conn: Connection, scores: Mapping[int, DefinitionScore]) -> Signal:
    """Definitions that hold the task's words."""

    def explain(file_id: int) -> str:
        symbol = symbols.get_symbol(conn, symbols.first_symbol_id(file_id) + scores[file_id].best)
        return "its definitions are near" if symbol is None else f"near the task: {symbol.qualified_name}"

    return relative_signal("definitions", {file_id: one.score for file_id, one in scores.items()}, explain)


def messages_signal(history: CommitHistory, votes: Mapping[int, Vote]) -> Signal:
    """Past commits whose messages are like the task."""

    def explain(file_id: int) -> str:
        commit, message = history.commit(votes[file_id].source)
        subject = message.split("\n")[0]
        shown = subject if len(subject) <= SUBJECT_SHOWN else f"{subject[: SUBJECT_SHOWN - 1]}…"
        return f"changed by like commits ({votes[file_id].count}), such as {commit[:8]} {shown!r}"

    return relative_signal("messages", {file_id: vote.weight for file_id, vote in votes.items()}, explain)


def co_change_signal(paths: Mapping[int, str], votes: Mapping[int, Vote]) -> Signal:
    """Past changes together with the likeliest files."""
    return relative_signal(
        "co_change",
        {file_id: vote.weight for file_id, vote in votes.items()},
        lambda file_id: TOGETHER.format(paths[votes[file_id].source]),
    )


def symbols_signal(defining: Mapping[int, tuple[float, str]]) -> Signal:
    """Definitions of what the task names."""
    return relative_signal(
        "symbols",
        {file_id: gain for file_id, (gain, _) in defining.items()},
        lambda file_id: f"defines {defining[file_id][1]}, which the task names",
    )


class SearchHit(Struct, frozen=True, kw_only=True):
    """A file that the ranking found."""

    path: str
    file_id: int
    score: float
    """Comparable within one query only; at most the sum of `WEIGHTS`."""
    reasons: tuple[str, ...]
    """The evidence for it, the strongest first."""


class Ranking:
    """Ranks the files of one state of the index."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._paths = {file.id: file.path for file in files.list_files(conn)}
        self._kinds = {file_id: kind_of(path) for file_id, path in self._paths.items()}
        self._history = CommitHistory(conn)
        self._fields = FieldScores(conn, self._history)
        self._names = NameIndex(conn, self._paths)
        self._chunks = ChunkScores(conn)

    def rank(self, query: SearchQuery, *, limit: int) -> tuple[SearchHit, ...]:
        """The first `limit` files for which there is any evidence, the best first, then by path."""
        found = self.find(query)
        wanted = {kind: 1.0 if kind in query.wanted else weight for kind, weight in KIND_WEIGHTS.items()}
        scores: dict[int, float] = {}
        for signal in found:
            weight = WEIGHTS[signal.name] / signal.top
            for file_id, value in signal.values.items():
                scores[file_id] = scores.get(file_id, 0.0) + weight * value
        for file_id in scores:
            scores[file_id] *= wanted[self._kinds[file_id]]
        best = heapq.nsmallest(limit, scores, key=lambda file_id: (-scores[file_id], self._paths[file_id]))
        return tuple(
            SearchHit(
                path=self._paths[file_id],
                file_id=file_id,
                score=scores[file_id],
                reasons=_reasons(file_id, found) if place < REASONED else (),
            )
            for place, file_id in enumerate(best)
        )

    def find(self, query: SearchQuery) -> tuple[Signal, ...]:
        """The evidence for files, in the order of `WEIGHTS`."""
        weights = self._distinctive_terms(query)
        terms = {term: self._fields.gains(term, query.terms[term]) for term in weights}
        by_fields = fields_signal(self._fields, query, terms)
        likely = {
            file_id: value for file_id, value in by_fields.values.items() if self._kinds[file_id] != "side"
        }
        read = heapq.nsmallest(
            READ_FILES,
            likely,
            key=lambda file_id: (-likely[file_id] * KIND_WEIGHTS[self._kinds[file_id]], file_id),
        )
        by_definition = self._chunks.score({file_id: self._paths[file_id] for file_id in read}, weights)
        named = {file_id: (1.0, "") for file_id, path in self._paths.items() if path in query.paths}
        scope, names = self._names.in_scope(query.text), self._names.mentioned(query.text)
        return (
            by_fields,
            definitions_signal(self._conn, by_definition),
            messages_signal(self._history, self._history.votes(query.terms)),
            symbols_signal(self._names.defining(query)),
            named_signal("path", named, "named by the task"),
            named_signal("name", names, "the task says {!r}"),
            named_signal("scope", scope, "the task begins with the scope {!r}"),
            co_change_signal(self._paths, self._history.co_changed(likely)),
        )

    def _distinctive_terms(self, query: SearchQuery) -> dict[str, float]:
        """The terms that tell files apart best, with their weight times their rarity, by term."""
        weights = {
            term: weight * self._fields.rarity(term)
            for term, weight in query.terms.items()
            if self._fields.is_distinctive(term)
        }
        best = heapq.nsmallest(TERMS, weights, key=lambda term: (-weights[term], term))
        return {term: weights[term] for term in sorted(best)}


def _reasons(file_id: int, found: Sequence[Signal]) -> tuple[str, ...]:
    speaking = [
        (-WEIGHTS[signal.name] * signal.share(file_id), place)
        for place, signal in enumerate(found)
        if file_id in signal.values
    ]
    return tuple(found[place].explain(file_id) for _, place in sorted(speaking))
