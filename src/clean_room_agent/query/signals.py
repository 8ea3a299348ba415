"""The evidence for files, one signal for each kind of it, each with an explanation for a person."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clean_room_agent.db.curated import symbols
from clean_room_agent.db.rows import Connection
from clean_room_agent.query.chunk_scores import DefinitionScore
from clean_room_agent.query.field_scores import FieldScores, TermGains
from clean_room_agent.query.history import CommitHistory, Vote
from clean_room_agent.query.search_query import SearchQuery

TERMS_SHOWN = 5
SUBJECT_SHOWN = 60
TOGETHER = "often changed together with {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
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


def relative(name: str, values: Mapping[int, float], explain: Callable[[int], str]) -> Signal:
    """A signal whose greatest value counts in full."""
    return Signal(name=name, values=values, top=max(values.values(), default=0.0) or 1.0, explain=explain)


def named(name: str, found: Mapping[int, tuple[float, str]], words: str) -> Signal:
    """A signal of names, of which 1 counts in full; `words` has a place for the name."""
    values = {file_id: weight for file_id, (weight, _) in found.items()}
    return Signal(name=name, values=values, top=1.0, explain=lambda file_id: words.format(found[file_id][1]))


def by_fields(fields: FieldScores, query: SearchQuery, terms: Mapping[str, TermGains]) -> Signal:
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

    return relative("fields", values, explain)


def by_definitions(conn: Connection, scores: Mapping[int, DefinitionScore]) -> Signal:
    """Definitions that hold the task's words."""

    def explain(file_id: int) -> str:
        symbol = symbols.get_symbol(conn, symbols.first_symbol_id(file_id) + scores[file_id].best)
        return "its definitions are near" if symbol is None else f"near the task: {symbol.qualified_name}"

    return relative("definitions", {file_id: one.score for file_id, one in scores.items()}, explain)


def by_messages(history: CommitHistory, votes: Mapping[int, Vote]) -> Signal:
    """Past commits whose messages are like the task."""

    def explain(file_id: int) -> str:
        commit, message = history.commit(votes[file_id].source)
        subject = message.split("\n")[0]
        shown = subject if len(subject) <= SUBJECT_SHOWN else f"{subject[: SUBJECT_SHOWN - 1]}…"
        return f"changed by like commits ({votes[file_id].count}), such as {commit[:8]} {shown!r}"

    return relative("messages", {file_id: vote.weight for file_id, vote in votes.items()}, explain)


def by_co_change(paths: Mapping[int, str], votes: Mapping[int, Vote]) -> Signal:
    """Past changes together with the likeliest files."""
    return relative(
        "co_change",
        {file_id: vote.weight for file_id, vote in votes.items()},
        lambda file_id: TOGETHER.format(paths[votes[file_id].source]),
    )


def by_symbols(defining: Mapping[int, tuple[float, str]]) -> Signal:
    """Definitions of what the task names."""
    return relative(
        "symbols",
        {file_id: gain for file_id, (gain, _) in defining.items()},
        lambda file_id: f"defines {defining[file_id][1]}, which the task names",
    )
