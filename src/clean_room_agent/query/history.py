"""Past commits as evidence for files: commits with messages similar to the task, and files that changed together."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from msgspec import Struct

from clean_room_agent.db.curated.history import list_said, read_message
from clean_room_agent.db.rows import Connection

MAX_COMMITS = 300
"""Of one file, the newest, whose messages count for it."""
NEAREST = 100
"""Commits nearest to a task that vote for their files."""
SHARPNESS = 3
"""The power of a commit's nearness, relative to the nearest one's."""
K1, B = 1.2, 0.75
SEEDS = 15
"""Files, best first, of which it is looked up what changed with them."""
DAY = 86_400
VOTE_HALF_LIFE_DAYS = 1500
CO_CHANGE_HALF_LIFE_DAYS = 730
NUMBER = re.compile(r"\d+")


class Vote(Struct):
    """The votes for one file, added up."""

    weight: float = 0.0
    strongest: float = 0.0
    source: int = 0
    """Of the strongest vote: a commit's position, or a file's id."""
    count: int = 0

    def add(self, weight: float, source: int) -> None:
        """One more vote is counted."""
        self.weight += weight
        self.count += 1
        if weight > self.strongest or self.count == 1:
            self.strongest, self.source = weight, source


class CommitHistory:
    """The commits of one state of the index, by position, newest first; one of n files counts 1/sqrt(n) for each."""

    def __init__(self, conn: Connection, *, skip_newest: int = 0) -> None:
        """`skip_newest`: so many of the newest commits are left out, as if they had not been made."""
        self._conn = conn
        commits = list(list_said(conn))[skip_newest:]
        self._ids = [commit.id for commit in commits]
        self._text = "\n".join(commit.terms for commit in commits)
        self._starts = list(accumulate((len(commit.terms) + 1 for commit in commits), initial=0))[:-1]
        self._files = [commit.file_ids for commit in commits]
        self._shares = [max(commit.files_changed, 1) ** -0.5 for commit in commits]
        self._sizes = [commit.terms.count(":") for commit in commits]
        newest = max((commit.seconds for commit in commits), default=0)
        self._ages = [max(newest - commit.seconds, 0) / DAY for commit in commits]
        self._counted: list[list[int]] = []
        self._of_file: dict[int, list[int]] = {}
        self._lengths: dict[int, float] = {}
        for position, file_ids in enumerate(self._files):
            counted = []
            length = self._shares[position] * self._sizes[position]
            for file_id in file_ids:
                positions = self._of_file.setdefault(file_id, [])
                positions.append(position)
                if len(positions) <= MAX_COMMITS:
                    counted.append(file_id)
                    self._lengths[file_id] = self._lengths.get(file_id, 0.0) + length
            self._counted.append(counted)
        self._found: dict[str, list[tuple[int, int]]] = {}
        self._mentions: dict[str, dict[int, float]] = {}

    def length(self, file_id: int) -> float:
        """How many terms the messages of a file's commits have, weighted."""
        return self._lengths.get(file_id, 0.0)

    def mean_length(self, files: int) -> float:
        """The mean of `length` over so many files, those without commits included."""
        return sum(self._lengths[file_id] for file_id in sorted(self._lengths)) / max(files, 1)

    def mentions(self, term: str) -> Mapping[int, float]:
        """How often the term occurs in the messages of each file's commits, weighted."""
        found = self._mentions.get(term)
        if found is None:
            found = self._mentions[term] = {}
            for position, times in self._find(term):
                for file_id in self._counted[position]:
                    found[file_id] = found.get(file_id, 0.0) + self._shares[position] * times
        return found

    def votes(self, terms: Mapping[str, float]) -> dict[int, Vote]:
        """The files touched by the past commits whose messages are nearest (BM25) to the weighted terms.

        A newer commit counts for more, and more for each of few files than of many.
        """
        scores: dict[int, float] = {}
        commits = len(self._ids)
        mean = sum(self._sizes) / max(commits, 1) or 1.0
        for term, weight in terms.items():
            found = self._find(term)
            gain = weight * math.log(1 + (commits - len(found) + 0.5) / (len(found) + 0.5)) * (K1 + 1)
            for position, times in found:
                norm = K1 * (1 - B + B * self._sizes[position] / mean)
                scores[position] = scores.get(position, 0.0) + gain * times / (times + norm)
        nearest = sorted(scores, key=lambda position: (-scores[position], position))[:NEAREST]
        votes: dict[int, Vote] = {}
        for position in nearest:
            nearness = (scores[position] / scores[nearest[0]]) ** SHARPNESS
            weight = nearness * 2 ** (-self._ages[position] / VOTE_HALF_LIFE_DAYS) * self._shares[position]
            for file_id in self._files[position]:
                votes.setdefault(file_id, Vote()).add(weight, position)
        return votes

    def co_changed(self, scores: Mapping[int, float]) -> dict[int, Vote]:
        """The files that changed together with the best of these, by how good those are, how lately and how exclusively."""
        best = sorted(scores, key=lambda file_id: (-scores[file_id], file_id))[:SEEDS]
        votes: dict[int, Vote] = {}
        for seed in best:
            weight = (scores[seed] / scores[best[0]]) ** 2
            for position in self._of_file.get(seed, ()):
                together = self._files[position]
                if len(together) > 1:
                    others = self._shares[position] ** -2 - 1
                    share = weight * 2 ** (-self._ages[position] / CO_CHANGE_HALF_LIFE_DAYS) / others
                    for file_id in together:
                        if file_id != seed:
                            votes.setdefault(file_id, Vote()).add(share, seed)
        return votes

    def commit(self, position: int) -> tuple[str, str]:
        """The hash and the message of the commit at a position that a vote names."""
        return read_message(self._conn, self._ids[position])

    def _find(self, term: str) -> list[tuple[int, int]]:
        """The commits whose messages hold the term: position, and how often."""
        found = self._found.get(term)
        if found is None:
            found = self._found[term] = []
            needle = json.dumps(term) + ":"
            at = self._text.find(needle)
            while at >= 0:
                at += len(needle)
                number = NUMBER.match(self._text, at)
                found.append((bisect_right(self._starts, at) - 1, int(number[0]) if number else 1))
                at = self._text.find(needle, at)
        return found
