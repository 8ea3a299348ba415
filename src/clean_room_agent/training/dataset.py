"""Training datasets on disk: what a row is, and the folder that trainers load.

```
<folder>/README.md                     `configs:` for `datasets.load_dataset(folder, <prompt>)`, and the card for people
<folder>/card.json                     the same card for programs: criteria, counts, exclusions, licences, hashes
<folder>/<prompt>/train.jsonl          supervised rows; also validation.jsonl and test.jsonl; no file where no row
<folder>/<prompt>/dpo_train.jsonl      pairs of answers to one prompt, the better one first
<folder>/<prompt>/kto_train.jsonl      single answers with their outcome, good and bad
```

A supervised file holds good answers alone: trainers ignore labels there, and would learn the bad ones.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from msgspec import Struct, field

from clean_room_agent.artifacts.names import task_of
from clean_room_agent.db.raw.training import Source
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import sync_file, sync_folder
from clean_room_agent.json_values import to_plain
from clean_room_agent.llm.transports.openai import TEMPLATE_KWARGS

Split = Literal["train", "validation", "test"]
Kind = Literal["sft", "dpo", "kto"]
"""sft: supervised; dpo: preference pairs; kto: answers labelled by outcome."""
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
PREFIXES: Mapping[Kind, str] = {"sft": "", "dpo": "dpo_", "kto": "kto_"}
ID_DIGITS = 16


class Message(Struct, frozen=True, kw_only=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Origin(Struct, frozen=True, kw_only=True):
    """Where a row comes from. No field is ever None: a column with only nulls would have a different type from the same
    column in another file.
    """

    stage: str
    """The prompt's name, which is also the name of its folder and of the adapter that learns from it."""
    source: Source
    repo: str
    """The repository's folder or URL."""
    commit: str = ""
    """The commit that the prompt's code comes from; "" if it is unknown."""
    timestamp: str
    """Of the call, or of the commit; UTC, ISO 8601. Decides which split the row is in."""
    license: str = ""
    """SPDX name; "" if it is unknown."""
    model: str = ""
    """The model that answered; "" for answers made from commits."""
    task_id: str = ""
    call_id: int = 0
    """In the record that it comes from; 0 if there was no call."""

    @property
    def group(self) -> tuple[str, str]:
        """The group that must stay in one split: all rows of one task, or of one commit, of a repository."""
        return (self.repo, task_of(self.task_id) or self.commit)


class Row(Struct, frozen=True, kw_only=True):
    """A prompt and an answer to it."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    origin: Origin
    label: bool = True
    """Whether the answer is a good example."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat."""
        return self.prompt + self.completion

    @property
    def id(self) -> str:
        """The same for the same content of the same origin."""
        return _digest(self.origin, self.messages)

    def as_object(self) -> dict[str, Any]:
        """The row as a flat object."""
        return {
            "id": self.id,
            "prompt": chat(self.prompt),
            "completion": chat(self.completion),
            "messages": chat(self.messages),
            **to_plain(self.origin),
            "label": self.label,
        }


class Preference(Struct, frozen=True, kw_only=True):
    """Two answers to one prompt, of which the first is better."""

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    origin: Origin

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages of the row."""
        return self.prompt + self.chosen + self.rejected

    @property
    def id(self) -> str:
        """The same for the same content of the same origin."""
        return _digest(self.origin, self.messages)

    def as_object(self) -> dict[str, Any]:
        """The row as a flat object."""
        return {
            "id": self.id,
            "prompt": chat(self.prompt),
            "chosen": chat(self.chosen),
            "rejected": chat(self.rejected),
            **to_plain(self.origin),
        }


class Entry(Struct, frozen=True, kw_only=True):
    """A row with its place in a dataset."""

    split: Split
    kind: Kind
    row: Row | Preference

    def as_object(self) -> dict[str, Any]:
        """The row as it is written to a file; TRL refuses labelled rows that contain the whole chat in addition to
        prompt and answer.
        """
        return {
            name: value
            for name, value in self.row.as_object().items()
            if not (self.kind == "kto" and name == "messages")
        }


class Card(Struct, frozen=True, kw_only=True):
    """The contents of a dataset card."""

    title: str
    base_model: str
    plan: Mapping[str, Any]
    """The plan that asked for it."""
    criteria: Mapping[str, Any]
    split_rule: str
    exclusions: Mapping[str, int] = field(default_factory=dict)
    """How many were left out, by reason."""


class FileFacts(Struct, frozen=True, kw_only=True):
    """One file of a dataset."""

    path: str
    """Relative to the folder."""
    stage: str
    split: Split
    kind: Kind
    rows: int
    sha256: str


class Written(Struct, frozen=True, kw_only=True):
    """A dataset that was written."""

    folder: Path
    trainer: str
    """The format's name."""
    files: tuple[FileFacts, ...]
    """By path, without those of a trainer's own format."""

    def count(self, kind: Kind, stage: str = "") -> int:
        """Rows of this kind, of one prompt or of all."""
        return sum(entry.rows for entry in self.files if entry.kind == kind and stage in {"", entry.stage})


class TrainerFormat(Protocol):
    """What one trainer needs besides the rows."""

    @property
    def name(self) -> str:
        """The word for `--format`."""

    def line(self, entry: Entry) -> Mapping[str, Any] | None:
        """The entry as a line of the trainer's own files; None if it reads the common file, or does not read such rows."""

    def settings(self, files: tuple[FileFacts, ...]) -> Mapping[str, str]:
        """The trainer's own files, by name."""


def chat(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The messages as trainers read them."""
    return [{"role": message.role, "content": message.content} for message in messages]


def require_free(folder: Path) -> None:
    """Check that a dataset can be written there.

    Raises:
        UsageError: there is something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", hint="name another folder with -o, or remove it")


def write_dataset(folder: Path, entries: Iterable[Entry], card: Card, trainer: TrainerFormat) -> Written:
    """Write the entries to the folder, in order, with README and card; a failure leaves nothing.

    Raises:
        UsageError: the folder is not empty, or cannot be written.
        ValueError: a bad answer is among the supervised rows.
    """
    require_free(folder)
    place = folder.absolute()
    building = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        building.mkdir()
        files, tallies = _write_rows(building, entries, trainer)
        about = _about(card, files, tallies, trainer)
        texts = {
            **trainer.settings(files),
            "card.json": _pretty(about),
            "README.md": _readme(card, files, about),
        }
        for name, text in texts.items():
            (building / name).write_text(text, encoding="utf-8")
            sync_file(building / name)
        if place.exists():
            place.rmdir()
        building.rename(place)
        sync_folder(place.parent)
    except OSError as exc:
        raise UsageError(
            f"cannot write {folder}: {exc.strerror or exc}", hint="free some space, or name another place"
        ) from exc
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Written(folder=place, trainer=trainer.name, files=files)


class _OpenFile(Struct):
    """A file that is being written, with its counts so far."""

    file: IO[bytes]
    rows: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, line: Mapping[str, Any]) -> None:
        content = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self.file.write(content)
        self.digest.update(content)
        self.rows += 1


def _write_rows(
    folder: Path, entries: Iterable[Entry], trainer: TrainerFormat
) -> tuple[tuple[FileFacts, ...], dict[str, Counter[str]]]:
    tallies: dict[str, Counter[str]] = {
        "sources": Counter(),
        "licences": Counter(),
        "repositories": Counter(),
    }
    known: dict[str, tuple[_OpenFile, Entry]] = {}
    with contextlib.ExitStack() as stack:

        def opened(path: str, entry: Entry) -> _OpenFile:
            if path not in known:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                known[path] = (_OpenFile(stack.enter_context((folder / path).open("wb"))), entry)
            return known[path][0]

        for entry in entries:
            origin = entry.row.origin
            if entry.kind == "sft" and not (isinstance(entry.row, Row) and entry.row.label):
                raise ValueError(
                    f"row {entry.row.id} of {origin.stage} is not a good answer, which supervised rows have to be"
                )
            name = f"{origin.stage}/{PREFIXES[entry.kind]}{entry.split}.jsonl"
            opened(name, entry).add(entry.as_object())
            own = trainer.line(entry)
            if own is not None:
                opened(f"{trainer.name}/{name}", entry).add(own)
            tallies["sources"][origin.source] += 1
            tallies["licences"][origin.license or "unknown"] += 1
            tallies["repositories"][origin.repo] += 1
        for open_file, _ in known.values():
            open_file.file.flush()
            os.fsync(open_file.file.fileno())
    return tuple(_facts(known, trainer)), tallies


def _facts(known: Mapping[str, tuple[_OpenFile, Entry]], trainer: TrainerFormat) -> Iterator[FileFacts]:
    for path, (open_file, entry) in sorted(known.items()):
        if not path.startswith(f"{trainer.name}/"):
            yield FileFacts(
                path=path,
                stage=entry.row.origin.stage,
                split=entry.split,
                kind=entry.kind,
                rows=open_file.rows,
                sha256=open_file.digest.hexdigest(),
            )


def _about(
    card: Card, files: tuple[FileFacts, ...], tallies: Mapping[str, Counter[str]], trainer: TrainerFormat
) -> dict[str, Any]:
    return {
        **to_plain(card),
        "format": trainer.name,
        "chat_template_kwargs": TEMPLATE_KWARGS,
        **{name: dict(sorted(tally.items())) for name, tally in tallies.items()},
        "files": [to_plain(entry) for entry in files],
    }


def _readme(card: Card, files: tuple[FileFacts, ...], about: Mapping[str, Any]) -> str:
    lines = ["---", "configs:", *_configs(files), "---", "", f"# {card.title}", ""]
    lines += [f"For adapters of `{card.base_model}`. Load a part: `datasets.load_dataset(FOLDER, NAME)`.", ""]
    lines += ["Give the chat template what it is given when the agent asks:", ""]
    lines += [f"`chat_template_kwargs={json.dumps(TEMPLATE_KWARGS)}` (no thinking).", ""]
    lines += _table(("file", "rows", "SHA-256"), [(each.path, str(each.rows), each.sha256) for each in files])
    for head, key in (("Sources", "sources"), ("Repositories", "repositories"), ("Licences", "licences")):
        lines += [f"## {head}", "", *_table(("", "rows"), [(name, str(n)) for name, n in about[key].items()])]
    lines += ["## Criteria", "", "```json", _pretty(card.criteria).rstrip("\n"), "```", ""]
    lines += ["## Splits", "", card.split_rule, "", "## Left out", ""]
    left_out = [(reason, str(count)) for reason, count in sorted(card.exclusions.items())]
    lines += _table(("reason", "rows"), left_out) if left_out else ["Nothing.", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _configs(files: tuple[FileFacts, ...]) -> Iterator[str]:
    """The YAML that names each part; strings are written as JSON, which YAML reads the same way."""
    parts = {(each.stage, each.kind) for each in files}
    for stage, kind in sorted(parts, key=lambda part: (part[1] != "sft", part)):
        yield f"- config_name: {json.dumps(stage if kind == 'sft' else f'{stage}-{kind}')}"
        yield "  data_files:"
        of_part = {each.split: each for each in files if (each.stage, each.kind) == (stage, kind)}
        for split in SPLITS:
            if split in of_part:
                yield f"  - split: {split}"
                yield f"    path: {json.dumps(of_part[split].path)}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [*(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines), ""]


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _digest(origin: Origin, messages: tuple[Message, ...]) -> str:
    content = json.dumps([to_plain(origin), chat(messages)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:ID_DIGITS]
