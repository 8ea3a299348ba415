"""What the messages of past commits say of the files that they touched."""

from collections.abc import Mapping

from clean_room_agent.db.curated.postings import read_past_commits
from clean_room_agent.db.rows import Connection

MAX_COMMITS = 300
"""The newest of a file's commits that are heard."""


class Past:
    """The messages of one state of the index, by term; a commit of n files counts 1/sqrt(n) for each."""

    def __init__(self, conn: Connection) -> None:
        self._commits: dict[str, list[tuple[int, float]]] = {}
        """Term -> (commit's position, weight)."""
        self._files: list[list[int]] = []
        """By the commit's position: the files that hear it."""
        self._lengths: dict[int, float] = {}
        self._mentions: dict[str, dict[int, float]] = {}
        heard: dict[int, int] = {}
        for number, commit in enumerate(read_past_commits(conn)):
            files = [one for one in commit.file_ids if heard.get(one, 0) < MAX_COMMITS]
            share = max(commit.files_changed, 1) ** -0.5
            length = share * sum(commit.terms.values())
            for file_id in files:
                heard[file_id] = heard.get(file_id, 0) + 1
                self._lengths[file_id] = self._lengths.get(file_id, 0.0) + length
            self._files.append(files)
            for term, times in commit.terms.items():
                self._commits.setdefault(term, []).append((number, share * times))

    def length(self, file_id: int) -> float:
        """The weighted number of terms that were said of a file."""
        return self._lengths.get(file_id, 0.0)

    def mean_length(self, files: int) -> float:
        """The mean of `length` over so many files, those of which nothing was said included."""
        return sum(self._lengths[file_id] for file_id in sorted(self._lengths)) / max(files, 1)

    def mentions(self, term: str) -> Mapping[int, float]:
        """How often the term was said of each file, weighted."""
        found = self._mentions.get(term)
        if found is None:
            found = self._mentions[term] = {}
            for number, weight in self._commits.get(term, ()):
                for file_id in self._files[number]:
                    found[file_id] = found.get(file_id, 0.0) + weight
        return found
