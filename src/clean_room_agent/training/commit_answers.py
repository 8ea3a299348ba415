"""The correct answers to the prompts of a commit's task, as a model that knew the commit would give them."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import parse_item_name
from clean_room_agent.execute.edits.parse import render_edits
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Transport
from clean_room_agent.retrieval.prompts import (
    CHANGE,
    KEEP,
    PIECE_JUDGMENT,
    READ,
    REFILTER,
    SCOPE_JUDGMENT,
    SKIP,
    TASK_ANALYSIS,
    BatchInputs,
    TaskAnalysisInputs,
)
from clean_room_agent.training.gold_edits import GoldFile, edits_for, lines_of, shown_in, touches

OPTION = re.compile(
    r"^={5,} candidate(?: (?P<number>\d+))?: (?P<name>.+?)(?: \(about \d+ tokens\))?$", re.MULTILINE
)
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{3,}")
MAX_NAMES = 10
PART, STEP = "p1", "s1"
NO_EDITS = "The code that has to change is not shown."
Span = tuple[int, int]


class Gold(Struct, frozen=True, kw_only=True, dict=True):
    """A commit as the answer to its own message."""

    task: str
    files: Mapping[str, GoldFile]
    """The source files that it changes, by path."""
    used: Mapping[str, tuple[Span, ...]]
    """Definitions that the changed ones use: path -> lines (1-based, inclusive)."""
    dependencies: frozenset[str]
    """Files that the changed ones import."""

    @cached_property
    def symbols(self) -> Mapping[str, tuple[str, ...]]:
        """Path -> the innermost definitions that contain its changes."""
        return {path: changed_symbols(file) for path, file in self.files.items()}

    @property
    def summary(self) -> str:
        """The task in one line."""
        return self.task.split("\n", 1)[0].strip()[:200]

    def label_of_file(self, path: str) -> str:
        """changed, used, dependency (imported, and nothing shows that it must be read) or not edited."""
        if path in self.files:
            return "changed"
        if path in self.used:
            return "used"
        return "dependency" if path in self.dependencies else "not edited"

    def label_of_piece(self, path: str, first: int, last: int) -> str:
        """change, read or skip, of the 1-based lines `first..last`."""
        file = self.files.get(path)
        if file is not None and (file.after is None or touches(file.groups, first, last)):
            return CHANGE
        used = any(start <= last and first <= end for start, end in self.used.get(path, ()))
        return READ if used else SKIP


def changed_symbols(file: GoldFile) -> tuple[str, ...]:
    """The innermost definitions of the file that contain its changes, in order."""
    named = []
    for name, span in file.spans.items():
        own = [group for group in file.groups if touches([group], *span)]
        inner = [other for key, other in file.spans.items() if key.startswith(f"{name}.")]
        if any(not any(touches([group], *other) for other in inner) for group in own):
            named.append(name)
    return tuple(named)


class GoldTransport(Transport):
    """Answers from the commit, in place of a model. `inputs` gives it the inputs of the prompt besides the text."""

    provider = "commit"
    live = False

    def __init__(self, gold: Gold) -> None:
        self.inputs: Any = None
        """Of the prompt that is asked; set before each request."""
        self._gold = gold
        self._answers: Mapping[str, Callable[[ChatRequest], str]] = {
            TASK_ANALYSIS.name: self._analyse_task,
            SCOPE_JUDGMENT.name: self._judge_file,
            PIECE_JUDGMENT.name: self._judge_piece,
            REFILTER.name: self._keep_changed,
            META_PLAN.name: self._plan_parts,
            PART_PLAN.name: self._plan_steps,
            IMPLEMENT.name: self._write_edits,
        }

    def send(self, request: ChatRequest) -> RawAnswer:
        """The right answer.

        Raises:
            KeyError: no such prompt belongs to training pairs.
        """
        return RawAnswer(request_body="", text=self._answers[request.identity.prompt](request))

    def _analyse_task(self, request: ChatRequest) -> str:  # noqa: ARG002 - all answers are made alike
        inputs: TaskAnalysisInputs = self.inputs
        gold = self._gold
        listed = (entry.removesuffix(")").rpartition(" (") for entry in inputs.symbols)
        symbols = [name for name, _, path in listed if name in gold.symbols.get(path, ())]
        code = {word for file in gold.files.values() for word in WORD.findall(_changed_text(file))}
        keywords = [word for word in dict.fromkeys(WORD.findall(gold.task)) if word in code]
        return _json_in_order(
            areas=[path for path in inputs.files if path in gold.files][:5],
            intent=gold.summary,
            keywords=keywords[:MAX_NAMES],
            symbols=symbols[:MAX_NAMES],
            like=TASK_ANALYSIS.example,
        )

    def _judge_file(self, request: ChatRequest) -> str:
        return "yes" if self._gold.label_of_file(request.identity.item) in {"changed", "used"} else "no"

    def _judge_piece(self, request: ChatRequest) -> str:  # noqa: ARG002
        return self._piece_label(OPTION.findall(self.inputs.option)[0][1])

    def _keep_changed(self, request: ChatRequest) -> str:  # noqa: ARG002
        inputs: BatchInputs = self.inputs
        named = [match for option in inputs.options for match in OPTION.findall(option)]
        keep = [int(number) for number, name in named if self._piece_label(name) == CHANGE]
        return json.dumps({KEEP: keep})

    def _piece_label(self, name: str) -> str:
        item = parse_item_name(name)
        if not item.symbol or item.lines is None:
            return CHANGE if name in self._gold.files else SKIP
        return self._gold.label_of_piece(item.path, *item.lines)

    def _plan_parts(self, request: ChatRequest) -> str:  # noqa: ARG002
        gold = self._gold
        part = {"description": gold.summary, "files": list(gold.files), "id": PART, "needs": []}
        return _json_in_order(
            analysis=self._change_location(), parts=[part], summary=gold.summary, like=META_PLAN.example
        )

    def _plan_steps(self, request: ChatRequest) -> str:  # noqa: ARG002
        gold = self._gold
        step = {
            "description": gold.summary,
            "files": [{"path": path, "role": file.role} for path, file in gold.files.items()],
            "id": STEP,
            "needs": [],
            "symbols": list(dict.fromkeys(name for names in gold.symbols.values() for name in names))[
                :MAX_NAMES
            ],
        }
        return _json_in_order(
            analysis=self._change_location(), steps=[step], summary=gold.summary, like=PART_PLAN.example
        )

    def _write_edits(self, request: ChatRequest) -> str:
        shown = shown_in(request.prompt)
        edits = []
        for file in self._gold.files.values():
            found = edits_for(file, shown)
            if len(found) < max(len(file.groups), 1):
                return NO_EDITS
            edits.extend(found)
        try:
            return render_edits(tuple(edits))
        except ValueError:
            return NO_EDITS

    def _change_location(self) -> str:
        """Where the change is, in a sentence."""
        places = []
        for path, file in self._gold.files.items():
            names = self._gold.symbols[path]
            verb = {"create": "a new file", "delete": "removed"}.get(file.role, ", ".join(names[:4]))
            places.append(f"{path} ({verb})" if verb else path)
        return f"The change is in {'; '.join(places)}."


def _json_in_order(*, like: str, **values: object) -> str:
    """One JSON object with its keys in the order of the prompt's example."""
    order = list(json.loads(like))
    return json.dumps({key: values[key] for key in sorted(values, key=order.index)}, ensure_ascii=False)


def _changed_text(file: GoldFile) -> str:
    """The lines that the commit removes or changes; "" for a new file."""
    if file.before is None:
        return ""
    before = lines_of(file.before)
    if file.after is None:
        return "\n".join(before[:200])
    return "\n".join(line for i1, i2, _, _ in file.groups for line in before[max(i1 - 1, 0) : i2 + 1])
