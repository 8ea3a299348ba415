"""Training datasets on disk: what a row is, and the folder that trainers load.

```
<folder>/README.md                     `configs:` for `datasets.load_dataset(folder, <prompt>)`, and the card for people
<folder>/card.json                     the same card for programs: criteria, counts, exclusions, licences, hashes
<folder>/<prompt>/train.jsonl          supervised rows; also validation.jsonl and test.jsonl; no file where no row
<folder>/<prompt>/dpo_train.jsonl      pairs of answers to one prompt, the better one first
<folder>/<prompt>/kto_train.jsonl      single answers with their outcome, good and bad
```

A supervised file holds good answers alone: trainers ignore labels there, and would learn the bad ones.

What each trainer needs besides these files, in its own format or as a file that refers to them:

- TRL reads the common files: `prompt` and `completion`; `prompt`, `chosen` and `rejected`; `prompt`, `completion`, `label`.
- Axolotl reads them, too; `axolotl.yaml` says how.
- LLaMA-Factory finds files in `dataset_info.json`; pairs and labelled rows have formats of their own.
- Unsloth's recipes read `conversations`.
- OpenAI's fine-tuning refuses any key that it does not know.
"""

import hashlib
import json
import secrets
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from clean_room_agent.artifacts.names import task_of
from clean_room_agent.db.raw.training import Source
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import sync_file, sync_folder
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.llm.transports.openai import TEMPLATE_KWARGS
from clean_room_agent.safe_open import open_named

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


class RowOrigin(Struct, frozen=True, kw_only=True):
    """Where a row comes from. No field is ever None: a column of nulls has another type than the same one elsewhere."""

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


class TrainingRow(Struct, frozen=True, kw_only=True):
    """A prompt and an answer to it."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    rejected: tuple[Message, ...] = ()
    """A worse answer, where the row is a preference pair."""
    origin: RowOrigin
    label: bool = True
    """Whether the answer is a good example."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat; of a pair, with both answers."""
        return self.prompt + self.completion + self.rejected

    @property
    def id(self) -> str:
        """The same for the same content of the same origin."""
        content = json.dumps([to_plain(self.origin), to_plain(self.messages)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:ID_DIGITS]


class DatasetEntry(Struct, frozen=True, kw_only=True):
    """A row with its place in a dataset."""

    split: Split
    kind: Kind
    row: TrainingRow

    @property
    def path(self) -> str:
        """Its file, relative to the dataset's folder."""
        return f"{self.row.origin.stage}/{PREFIXES[self.kind]}{self.split}.jsonl"

    def as_object(self) -> dict[str, Any]:
        """The row as it is written to its file: flat. TRL refuses labelled rows that contain the whole chat besides."""
        row = self.row
        told: dict[str, Any] = {"id": row.id, "prompt": row.prompt}
        if self.kind == "dpo":
            return {**told, "chosen": row.completion, "rejected": row.rejected, **to_plain(row.origin)}
        told["completion"] = row.completion
        if self.kind == "sft":
            told["messages"] = row.messages
        return {**told, **to_plain(row.origin), "label": row.label}


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


class DatasetFile(Struct, frozen=True, kw_only=True):
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
    files: tuple[DatasetFile, ...]
    """By path, without those of a trainer's own format."""

    def count(self, kind: Kind, stage: str = "") -> int:
        """Rows of this kind, of one prompt or of all."""
        return sum(entry.rows for entry in self.files if entry.kind == kind and stage in {"", entry.stage})


class TrainerFormat(Struct, frozen=True):
    """What one trainer needs besides the rows."""

    name: str
    line: Callable[[DatasetEntry], Mapping[str, Any] | None] = lambda _entry: None
    """The entry as a line of the trainer's own files; None if it reads the common file, or no such rows."""
    settings: Callable[[tuple[DatasetFile, ...]], Mapping[str, str]] = lambda _files: {}
    """The trainer's own files, by name."""


def require_free(folder: Path) -> None:
    """Check that a dataset can be written there.

    Raises:
        UsageError: there is something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", hint="name another folder with -o, or remove it")


def write_dataset(
    folder: Path, entries: Iterable[DatasetEntry], card: Card, trainer: TrainerFormat
) -> Written:
    """Write the entries to the folder, in order, with README and card; a failure leaves nothing.

    Raises:
        UsageError: the folder is not empty, or cannot be written.
        ValueError: a bad answer is among the supervised rows.
    """
    require_free(folder)
    known = tuple(entries)
    contents = _row_files(known, trainer)
    files = _list_files(known, contents)
    about = _card_object(card, files, known, trainer)
    texts = {
        **trainer.settings(files),
        "card.json": _pretty_json(about),
        "README.md": _readme(card, files, about),
    }
    contents |= {name: text.encode() for name, text in texts.items()}
    place = folder.absolute()
    building = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        for name, content in contents.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            (building / name).write_bytes(content)
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


def read_rows(folder: Path, stage: str, *splits: Split) -> Iterator[TrainingRow]:
    """The supervised rows of one prompt, split by split; all splits if none is named, none of one without a file.

    Raises:
        UsageError: a file cannot be read, or holds something else.
    """
    for split in splits or SPLITS:
        path = folder / stage / f"{split}.jsonl"
        if not path.exists():
            continue
        try:
            with open_named(path) as file:
                for line in file:
                    value = msgspec.json.decode(line)
                    yield from_plain({**value, "origin": value}, TrainingRow)
        except (OSError, ValueError, TypeError) as exc:
            raise UsageError(f"{path} cannot be read as a dataset: {exc}") from exc


def _row_files(entries: Iterable[DatasetEntry], trainer: TrainerFormat) -> dict[str, bytes]:
    """The contents of the files of rows, by path; a trainer's own are in a folder of its name."""
    lines: defaultdict[str, list[bytes]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "sft" and not entry.row.label:
            raise ValueError(
                f"row {entry.row.id} of {entry.row.origin.stage} is not a good answer, "
                "which supervised rows have to be"
            )
        lines[entry.path].append(msgspec.json.encode(entry.as_object()))
        own = trainer.line(entry)
        if own is not None:
            lines[f"{trainer.name}/{entry.path}"].append(msgspec.json.encode(own))
    return {path: b"\n".join(own) + b"\n" for path, own in sorted(lines.items())}


def _list_files(entries: Iterable[DatasetEntry], contents: Mapping[str, bytes]) -> tuple[DatasetFile, ...]:
    rows: defaultdict[str, list[DatasetEntry]] = defaultdict(list)
    for entry in entries:
        rows[entry.path].append(entry)
    return tuple(
        DatasetFile(
            path=path,
            stage=own[0].row.origin.stage,
            split=own[0].split,
            kind=own[0].kind,
            rows=len(own),
            sha256=hashlib.sha256(contents[path]).hexdigest(),
        )
        for path, own in sorted(rows.items())
    )


def _card_object(
    card: Card, files: tuple[DatasetFile, ...], entries: Iterable[DatasetEntry], trainer: TrainerFormat
) -> dict[str, Any]:
    origins = [entry.row.origin for entry in entries]
    tallies: dict[str, Counter[str]] = {
        "sources": Counter(origin.source for origin in origins),
        "licences": Counter(origin.license or "unknown" for origin in origins),
        "repositories": Counter(origin.repo for origin in origins),
    }
    return {
        **to_plain(card),
        "format": trainer.name,
        "chat_template_kwargs": TEMPLATE_KWARGS,
        **{name: dict(sorted(tally.items())) for name, tally in tallies.items()},
        "files": to_plain(files),
    }


def _readme(card: Card, files: tuple[DatasetFile, ...], about: Mapping[str, Any]) -> str:
    """The card for people; its head tells `datasets` the parts."""
    head = "\n".join(["---", "configs:", *_config_lines(files), "---"])
    return f"""\
{head}

# {card.title}

For adapters of `{card.base_model}`. Load a part: `datasets.load_dataset(FOLDER, NAME)`. Give the chat template what it is
given when the agent asks: `chat_template_kwargs={json.dumps(TEMPLATE_KWARGS)}` (no thinking).

`criteria` says which rows were taken, `exclusions` how many were left out and why, `split_rule` how they were divided:

```json
{_pretty_json(about)}```
"""


def _config_lines(files: tuple[DatasetFile, ...]) -> Iterator[str]:
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


def _pretty_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


Line = Mapping[str, Any] | None
TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}


def _axolotl_settings(files: tuple[DatasetFile, ...]) -> Mapping[str, str]:
    """One file per kind, since `rl` applies to a whole configuration; `path` is relative to where Axolotl is started."""
    texts = {}
    for kind, name in (("sft", "axolotl.yaml"), ("dpo", "axolotl_dpo.yaml")):
        lines = [] if kind == "sft" else ["rl: dpo"]
        for head, split in (("datasets", "train"), ("test_datasets", "validation")):
            chosen = [each for each in files if (each.kind, each.split) == (kind, split)]
            lines += [f"{head}:"] if chosen else []
            for each in chosen:
                lines += [f"- path: {json.dumps(each.path)}", "  ds_type: json", "  split: train"]
                lines += _AXOLOTL[kind]
        if any(each.kind == kind for each in files):
            texts[name] = "\n".join(lines) + "\n"
    return texts


_AXOLOTL: Mapping[str, list[str]] = {
    "sft": [
        "  type: chat_template",
        "  field_messages: messages",
        "  roles_to_train: [assistant]",
        "  train_on_eos: turn",
    ],
    "dpo": [
        "  type: chat_template.default",
        "  field_messages: prompt",
        "  field_chosen: chosen",
        "  field_rejected: rejected",
    ],
}


def _llama_factory_line(entry: DatasetEntry) -> Line:
    row = entry.row
    if entry.kind == "dpo":
        return {"messages": row.prompt, "chosen": row.completion[-1], "rejected": row.rejected[-1]}
    return {"messages": row.messages, "label": row.label} if entry.kind == "kto" else None


def _llama_factory_settings(files: tuple[DatasetFile, ...]) -> Mapping[str, str]:
    known = {}
    for each in files:
        own: dict[str, Any] = {"file_name": each.path, "columns": {"messages": "messages"}}
        if each.kind != "sft":
            own["file_name"] = f"llama-factory/{each.path}"
        if each.kind == "dpo":
            own |= {
                "ranking": True,
                "columns": {"messages": "messages", "chosen": "chosen", "rejected": "rejected"},
            }
        if each.kind == "kto":
            own["columns"] = {"messages": "messages", "kto_tag": "label"}
        name = "_".join(
            part for part in (each.stage, "" if each.kind == "sft" else each.kind, each.split) if part
        )
        known[name] = {"formatting": "sharegpt", **own, "tags": TAGS}
    return {"dataset_info.json": json.dumps(known, indent=2) + "\n"}


def _unsloth_line(entry: DatasetEntry) -> Line:
    return {"conversations": entry.row.messages} if entry.kind == "sft" else None


def _openai_line(entry: DatasetEntry) -> Line:
    row = entry.row
    if entry.kind == "dpo":
        pair = {"preferred_output": row.completion, "non_preferred_output": row.rejected}
        return {"input": {"messages": row.prompt}, **pair}
    return {"messages": row.messages} if entry.kind == "sft" else None


FORMATS: Mapping[str, TrainerFormat] = {
    each.name: each
    for each in (
        TrainerFormat("trl"),
        TrainerFormat("axolotl", settings=_axolotl_settings),
        TrainerFormat("llama-factory", _llama_factory_line, _llama_factory_settings),
        TrainerFormat("unsloth", _unsloth_line),
        TrainerFormat("openai", _openai_line),
    )
}
"""By the value of `--format`. A new format is one line here."""
