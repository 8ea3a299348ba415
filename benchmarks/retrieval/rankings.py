"""The orders of files that are compared: ours, BM25 over whole files, and aider's repository map."""

import json
import math
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from pydantic import BaseModel, ConfigDict
from testing.processes import environment

from benchmarks.retrieval.ours import candidates, open_index
from benchmarks.retrieval.tasks import Task
from clean_room_agent.indexer.terms import count_terms

AIDER = Path(__file__).with_name("aider_map.py")
K1 = 1.2
B = 0.75


class Answer(BaseModel):
    """An order of files for a task, best first, and what it took to find it."""

    model_config = ConfigDict(frozen=True)

    id: str
    ranked: tuple[str, ...]
    wall_ms: float
    cpu_ms: float
    """Processor time, which other programs on the machine do not change."""


def ask_ours(top: Path, tasks: Sequence[Task]) -> tuple[Answer, ...]:
    """What `cra retrieve TASK --no-model` chooses from, in its order; the index is open from the first task on."""
    kb = open_index(top)
    return _timed(tasks, lambda text: candidates(kb, top, text))


class Bm25(Struct, frozen=True):
    """Okapi BM25 over whole files: each file is its path and its text; what a word is, is what it is for `cra`."""

    gains: Mapping[str, Sequence[tuple[str, float]]]
    """For each term, the files that have it, with what they gain by it."""

    @classmethod
    def over(cls, texts: Mapping[str, str]) -> "Bm25":
        """Of the files of these texts, by path."""
        counts = {path: count_terms(f"{path}\n{text}") for path, text in texts.items()}
        lengths = {path: sum(terms.values()) for path, terms in counts.items()}
        mean = sum(lengths.values()) / max(len(lengths), 1) or 1.0
        holders: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for path in sorted(counts):
            for term, count in counts[path].items():
                holders[term].append((path, count))
        gains = {}
        for term, held in holders.items():
            rarity = math.log(1 + (len(counts) - len(held) + 0.5) / (len(held) + 0.5))
            gains[term] = [
                (path, rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[path] / mean)))
                for path, count in held
            ]
        return cls(gains)

    def rank(self, text: str) -> tuple[str, ...]:
        """The files that share a term with `text`, best first, then by path."""
        scores: defaultdict[str, float] = defaultdict(float)
        for term, times in count_terms(text).items():
            for path, gain in self.gains.get(term, ()):
                scores[path] += times * gain
        return tuple(sorted(scores, key=lambda path: (-scores[path], path)))


def ask_bm25(top: Path, paths: Sequence[str], tasks: Sequence[Task]) -> tuple[Answer, ...]:
    """BM25 over these files of the checkout, held in memory; making it is not counted."""
    texts = {path: (top / path).read_bytes().decode("utf-8", "replace") for path in paths}
    return _timed(tasks, Bm25.over(texts).rank)


def ask_aider(python: Path, top: Path, work: Path, tasks: Sequence[Task]) -> tuple[Answer, ...]:
    """The order of aider's map, from `work` where it has answered before: it is slow on large repositories."""
    folder = work / "aider" / top.parent.name / top.name
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "answers.jsonl"
    known = {answer.id: answer for answer in read_answers(kept)}
    missing = [json.dumps({"id": task.id, "text": task.task}) for task in tasks if task.id not in known]
    if missing:
        # It thinks itself at home: what it keeps for its user goes where the checkouts are.
        env = environment(work) | {"HOME": os.fspath(work), "PYTHONHASHSEED": "0"}
        with kept.open("a", encoding="utf-8") as answers:
            subprocess.run(
                (python, AIDER, top, folder / "tags"),
                input="\n".join(missing) + "\n",
                stdout=answers,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
                env=env,
                cwd=folder,
            )
        known = {answer.id: answer for answer in read_answers(kept)}
    return tuple(known[task.id] for task in tasks)


def aider_version(python: Path) -> str:
    """The version that this interpreter has."""
    code = "from importlib.metadata import version; print(version('aider-chat'))"
    return subprocess.run((python, "-c", code), capture_output=True, text=True, check=True).stdout.strip()


def read_answers(path: Path) -> Iterator[Answer]:
    """The whole lines of a file of answers; none where there is no file. A line that was cut off is no answer."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("}\n"):
                yield Answer.model_validate_json(line)


def _timed(tasks: Sequence[Task], rank: Callable[[str], tuple[str, ...]]) -> tuple[Answer, ...]:
    answers = []
    for task in tasks:
        began, worked = time.perf_counter(), time.process_time()
        ranked = rank(task.task)
        wall, cpu = time.perf_counter() - began, time.process_time() - worked
        answers.append(Answer(id=task.id, ranked=ranked, wall_ms=wall * 1000, cpu_ms=cpu * 1000))
    return tuple(answers)
