"""What each trainer needs besides the common rows: files in its own format, or a file that refers to ours.

- TRL reads the common files: `prompt` and `completion`; `prompt`, `chosen` and `rejected`; `prompt`, `completion`, `label`.
- Axolotl reads them, too; `axolotl.yaml` says how.
- LLaMA-Factory finds files in `dataset_info.json`; pairs and labelled rows have formats of their own.
- Unsloth's recipes read `conversations`.
- OpenAI's fine-tuning refuses any key that it does not know.
"""

import json
from collections.abc import Mapping
from typing import Any

from clean_room_agent.training.dataset import Entry, FileFacts, Format

Line = Mapping[str, Any] | None
TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}


def _axolotl_settings(files: tuple[FileFacts, ...]) -> Mapping[str, str]:
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


def _llama_factory_line(entry: Entry) -> Line:
    row = entry.row
    if entry.kind == "dpo":
        return {"messages": row.prompt, "chosen": row.completion[-1], "rejected": row.rejected[-1]}
    return {"messages": row.messages, "label": row.label} if entry.kind == "kto" else None


def _llama_factory_settings(files: tuple[FileFacts, ...]) -> Mapping[str, str]:
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


def _unsloth_line(entry: Entry) -> Line:
    return {"conversations": entry.row.messages} if entry.kind == "sft" else None


def _openai_line(entry: Entry) -> Line:
    row = entry.row
    if entry.kind == "dpo":
        pair = {"preferred_output": row.completion, "non_preferred_output": row.rejected}
        return {"input": {"messages": row.prompt}, **pair}
    return {"messages": row.messages} if entry.kind == "sft" else None


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format("trl"),
        Format("axolotl", settings=_axolotl_settings),
        Format("llama-factory", _llama_factory_line, _llama_factory_settings),
        Format("unsloth", _unsloth_line),
        Format("openai", _openai_line),
    )
}
"""By the value of `--format`. A new format is one line here."""
