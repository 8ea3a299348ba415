"""What a prompt gives a distractible model to go wrong with: the same reading as the figures."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from testing.oracle.distractible import Attention

from benchmarks.commits.checkouts import message_of
from benchmarks.commits.commit_list import CommitEntry, CommitList
from benchmarks.commits.solve_commit import Subject
from benchmarks.context.blocks import Reading, read_blocks
from benchmarks.context.failures import Failure, failures_of
from benchmarks.context.figures import is_whole, prompt_figures
from benchmarks.context.goals import find_goals
from benchmarks.context.names import Names
from benchmarks.context.needs import Needs, described
from benchmarks.context.snapshot import Snapshot
from clean_room_agent.training.gold_edits import GoldFile

SEEN_LINES = 2
"""Lines of an item, other than its signature, that are more than a name."""


class PromptReader:
    """Reads the prompts of one commit's runs."""

    def __init__(self, needs: Needs, failures: Mapping[str, Failure], task: str) -> None:
        """`task` is the task's words, which are no account of what the tests say."""
        self.needs = needs
        self.failures = failures
        self.task = task
        self.read = lru_cache(maxsize=8)(self._read)

    def attention(self, prompt: str) -> Attention:
        """What there is to be distracted by, and what is missing."""
        found = prompt_figures(self.read(prompt), self.needs, self.failures)
        return Attention(
            needless=found.code_tokens - found.needed_tokens,
            source_missing=found.sources[0] < found.sources[1],
            words_missing=found.words[0] < found.words[1],
            unexplained=len(found.unexplained),
        )

    def shows_code(self, prompt: str, path: str, name: str) -> bool:
        """Whether more of the file, or of its piece, stands in the prompt than a signature."""
        snapshot = self.needs.snapshot
        shown = self.read(prompt).shown(path)
        symbol = snapshot.named(path).get(name.removesuffix(" (head)")) if path in snapshot.paths else None
        if symbol is None:
            known = snapshot.symbols(path) if shown else ()
            heads = {line for one in known for line in range(one.head, one.head_end + 1)}
            return len(shown - heads) >= SEEN_LINES
        own = shown & frozenset(range(symbol.first, symbol.last + 1))
        return len(own - set(described(symbol, snapshot))) >= SEEN_LINES or is_whole(
            path, [(symbol.first, symbol.last)], self.read(prompt), self.needs
        )

    def paths(self, prompt: str) -> Sequence[str]:
        """The files of which the prompt shows code and that the commit does not change."""
        changed = {place.path for place in self.needs.changed}
        return sorted({block.path for block in self.read(prompt).blocks} - changed)

    def neighbours(self, prompt: str, path: str) -> Sequence[str]:
        """The functions of the file that the prompt shows whole and that are not to be changed."""
        snapshot, reading = self.needs.snapshot, self.read(prompt)
        changed = [place for place in self.needs.changed if place.path == path]
        found = []
        for one in snapshot.symbols(path) if path in snapshot.paths else ():
            near = any(place.first <= one.last and one.first <= place.last for place in changed)
            if one.is_function and not near and is_whole(path, [(one.first, one.last)], reading, self.needs):
                found.append("\n".join(snapshot.lines(path)[one.first - 1 : one.last]))
        return found

    def _read(self, prompt: str) -> Reading:
        return read_blocks(prompt, self.needs.snapshot, self.task)


def reader_of(
    work: Path, listed: CommitList, entry: CommitEntry, top: Path, gold: Sequence[GoldFile]
) -> PromptReader:
    """The reader of a commit's prompts. Its tests have run once at the base."""
    snapshot = Snapshot(top)
    names = Names(snapshot)
    goals = find_goals(entry.must_pass, snapshot, names)
    failures = failures_of(work, listed, entry, top)
    return PromptReader(Needs(gold, goals, snapshot, names), failures, message_of(top, entry.commit))


def read_subject(subject: Subject) -> PromptReader:
    """The reader of the prompts of a run that begins."""
    return reader_of(subject.work, subject.listed, subject.entry, subject.top, subject.gold)
