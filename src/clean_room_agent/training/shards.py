"""Shards: some commits of one repository as a Parquet file, named by the hash of everything it depends on.

A file that exists is complete, so an interrupted run continues by making the missing ones.
"""

import contextlib
import errno
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, structs

from clean_room_agent.db.connection import connect_file
from clean_room_agent.errors import GitError, IndexingError, RepositoryError
from clean_room_agent.file_contents import NotTextError, atomic_write, decode
from clean_room_agent.folders import temporary_folder
from clean_room_agent.git.clones import Objects
from clean_room_agent.git.worktree import ParentCheckout
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.json_values import to_plain
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.redaction import Redactor
from clean_room_agent.training.commit_answers import Gold
from clean_room_agent.training.gold_edits import GoldFile, lines_of, touches
from clean_room_agent.training.licences import Licences, is_allowed
from clean_room_agent.training.mining import MinedCommit
from clean_room_agent.training.pairs import (
    MadePairs,
    Making,
    ParentState,
    TrainingPair,
    make_pairs,
    task_of_commit,
)
from clean_room_agent.workspace import Workspace, forget

UNIT_COMMITS = 400
"""Commits of a unit, at most."""
SURE = 0.5
"""Confidence from which on a reference counts as a use."""
VERSION = 1
"""Raised when this program makes other pairs of the same commits and the prompts' texts do not show it."""
NOT_SHOWN = "parent that cannot be checked out or indexed"
ODD_NAMES = frozenset(
    {errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ, errno.EINVAL, errno.ENOTDIR, errno.EISDIR}
)
"""Errors that a file's name, or what stands there, may be the reason for."""
COLUMNS = (
    "repo", "commit", "timestamp", "license", "task_id", "stage", "item", "label", "found_by", "system", "prompt", "answer",
    "change",
)  # fmt: skip


class Unit(Protocol):
    """What one shard is made from."""

    @property
    def repo(self) -> str:
        """The repository's name in rows."""

    @property
    def content(self) -> Any:
        """What tells it from other units of the repository, as JSON holds it."""


class WorkUnit(Struct, frozen=True, kw_only=True):
    """Some commits of one repository."""

    repo: str
    """The repository's name in rows."""
    git_dir: Path
    commits: tuple[MinedCommit, ...]
    """In the order of the history."""

    @property
    def content(self) -> Any:
        """As the protocol says."""
        return to_plain(self.commits)


class Shard(Struct, frozen=True, kw_only=True):
    """The contents of a shard's file."""

    rows: list[dict[str, str]]
    counts: Mapping[str, int]
    """Commits and pairs that were left out, by reason; `commits` and `pairs` are those that were used."""


def cut_units(
    repo: str, git_dir: Path, commits: Sequence[MinedCommit], size: int = UNIT_COMMITS
) -> tuple[WorkUnit, ...]:
    """The repository's commits in units of at most `size`."""
    return tuple(
        WorkUnit(repo=repo, git_dir=git_dir, commits=tuple(commits[start : start + size]))
        for start in range(0, len(commits), size)
    )


def digest_of(making: Making) -> str:
    """A digest of all that a shard depends on besides its commits; not of the model server's address."""
    said = to_plain(making)
    for name in ("base_url", "servers", "timeouts", "parallel", "api_key_env"):
        said["models"].pop(name, None)
    return hashlib.sha256(json.dumps([VERSION, COLUMNS, said], sort_keys=True).encode()).hexdigest()


def shard_path(folder: Path, unit: Unit, making: Making) -> Path:
    """The path of the unit's shard, whichever machine made it."""
    content = json.dumps([digest_of(making), unit.repo, unit.content])
    return folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.parquet"


def make_shard(folder: Path, unit: WorkUnit, making: Making) -> Path:
    """Create the unit's file atomically, unless it exists; the same commits give the same bytes.

    Raises:
        GitError: the repository cannot be read.
    """
    path = shard_path(folder, unit, making)
    if not path.exists():
        write_shard(path, _make_rows(unit, making))
    return path


def write_shard(path: Path, shard: Shard) -> None:
    """Write a shard atomically; the same rows give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, pa.string()) for name in COLUMNS], {"counts": json.dumps(dict(shard.counts), sort_keys=True)}
    )
    table = pa.Table.from_pylist(shard.rows, schema=schema)
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, content.getvalue().to_pybytes())


def read_shard(path: Path) -> Shard:
    """Read a shard."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    counts = json.loads((table.schema.metadata or {})[b"counts"])
    return Shard(rows=table.to_pylist(), counts=counts)


def _make_rows(unit: WorkUnit, making: Making) -> Shard:
    rows: list[dict[str, str]] = []
    counts: Counter[str] = Counter()
    redactor = Redactor(bytes)
    objects = Objects(unit.git_dir)
    with temporary_folder("bootstrap") as scratch, contextlib.ExitStack() as stack:
        stack.callback(forget, Workspace(repo=scratch / "tree").folder)
        checkout = ParentCheckout(unit.git_dir, scratch / "tree")
        licences = Licences(objects)
        for commit in unit.commits:
            licence = licences.of(commit.parent)
            if not is_allowed(licence, making.licences):
                counts[f"licence: {licence or 'not known'}"] += 1
                continue
            files = _gold_files(objects, commit)
            if isinstance(files, str):
                counts[files] += 1
                continue
            # One odd commit in thousands is counted, and not the end; a full disk is.
            try:
                checkout.show(commit.parent)
                made = _make_pairs_at(checkout, commit, files, making, f"{unit.repo}@{commit.hash}")
            except (GitError, RepositoryError, IndexingError, RecursionError, UnicodeError, OSError) as exc:
                if isinstance(exc, OSError) and exc.errno not in ODD_NAMES:
                    raise
                counts[NOT_SHOWN] += 1
                continue
            counts.update(made.dropped)
            kept = without_secrets(made.pairs, redactor, counts)
            rows += [_pair_row(unit, commit, licence, files, pair) for pair in kept]
    return Shard(rows=rows, counts={reason: count for reason, count in sorted(counts.items()) if count})


def without_secrets(
    pairs: Sequence[TrainingPair], redactor: Redactor, counts: Counter[str]
) -> list[TrainingPair]:
    """The pairs that hold no secret; they, the others, and what they come from are counted."""
    kept = [pair for pair in pairs if not redactor.secrets_in(f"{pair.prompt}\n{pair.answer}")]
    counts["pair with a secret"] += len(pairs) - len(kept)
    counts["commits" if kept else "no pair left"] += 1
    counts["pairs"] += len(kept)
    return kept


def _make_pairs_at(
    checkout: ParentCheckout, commit: MinedCommit, files: Mapping[str, GoldFile], making: Making, name: str
) -> MadePairs:
    root = checkout.root
    index_repository(
        root, config=making.index, jobs=1, continue_on_error=True, progress=lambda _done, _total: None
    )
    with contextlib.closing(connect_file("curated", Workspace(repo=root).curated, read_only=True)) as index:
        kb = KnowledgeBase(index)
        gold = _commit_gold(kb, commit, files)
        state = ParentState(root=root, kb=kb, known=checkout.paths())
        return make_pairs(state, gold, making, name=name, analysis_only=commit.names_gold)


def _gold_files(objects: Objects, commit: MinedCommit) -> dict[str, GoldFile] | str:
    """The commit's files before and after, or why it is not used."""
    files: dict[str, GoldFile] = {}
    for path in commit.files:
        texts = [objects.read(f"{name}:{path}") for name in (commit.parent, commit.hash)]
        try:
            before, after = (None if data is None else decode(data).text for data in texts)
        except NotTextError:
            return "not plain text files"
        files[path] = GoldFile(path=path, before=before, after=after)
    if all(
        "".join((file.before or "").split()) == "".join((file.after or "").split()) for file in files.values()
    ):
        return "white space only"
    return files


def _commit_gold(kb: KnowledgeBase, commit: MinedCommit, files: Mapping[str, GoldFile]) -> Gold:
    """The commit as an answer, with what its changed definitions use according to the parent's index."""
    used: dict[str, set[tuple[int, int]]] = {}
    imported: set[str] = set()
    for path, file in files.items():
        row = kb.get_file_by_path(path)
        if row is None:
            continue
        imported |= {entry.file.path for entry in kb.get_dependencies(row.id)}
        for symbol in kb.get_symbols_for_file(row.id):
            if file.after is not None and not touches(file.groups, symbol.start_line, symbol.end_line):
                continue
            for neighbour in kb.get_symbol_neighbors(symbol.id, direction="callees"):
                target = kb.get_file_by_id(neighbour.symbol.file_id)
                if target is not None and neighbour.confidence >= SURE:
                    span = (neighbour.symbol.start_line, neighbour.symbol.end_line)
                    used.setdefault(target.path, set()).add(span)
    return Gold(
        task=commit.task,
        files=files,
        used={path: tuple(sorted(spans)) for path, spans in sorted(used.items())},
        dependencies=frozenset(imported - set(files)),
    )


def _pair_row(
    unit: WorkUnit, commit: MinedCommit, licence: str, files: Mapping[str, GoldFile], pair: TrainingPair
) -> dict[str, str]:
    return {
        "repo": unit.repo,
        "commit": commit.parent,
        "timestamp": commit.timestamp,
        "license": licence,
        "task_id": task_of_commit(f"{unit.repo}@{commit.hash}"),
        "change": _change_text(commit, files),
        **structs.asdict(pair),
    }


def _change_text(commit: MinedCommit, files: Mapping[str, GoldFile]) -> str:
    """The text that identifies the commit: its message and the lines that it changes."""
    lines = [commit.task]
    for file in files.values():
        before, after = lines_of(file.before or ""), lines_of(file.after or "")
        for i1, i2, j1, j2 in file.groups or [(0, len(before), 0, len(after))]:
            lines += before[i1:i2] + after[j1:j2]
    return "\n".join(lines)
