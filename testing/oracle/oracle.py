"""The stand-in server's second mode: a model that knows a real commit, and reads only what its prompt shows it.

It judges as a perfect model would and writes edits cut from the commit, but only with search texts that stand in its
prompt. What such a model cannot do, the harness has lost.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.parse import render_edits
from clean_room_agent.execute.forms import worded
from clean_room_agent.execute.goal_prompts import GOAL_TEST
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_STEP_VIABILITY,
    CHANGE_POINTS,
    GOAL_CHECK,
    META_PLAN,
    PART_DEPENDENCY,
    PART_PLAN,
    SAME_PART,
    STEP_DEPENDENCY,
    STEP_DESIGN,
    SYMBOL_TARGETS,
)
from clean_room_agent.llm.prompt import INSTRUCTIONS
from clean_room_agent.retrieval.prompts import (
    PIECE_JUDGMENT,
    PRECISION_BATCH,
    REFILTER,
    SCOPE_BATCH,
    SCOPE_JUDGMENT,
    TASK_ANALYSIS,
)
from clean_room_agent.training.gold_edits import GoldFile, edits_for, lines_of, shown_in, touches
from testing.oracle.forms import function_for, lines_for, text_of_gap
from testing.servers.ollama_script import Answer, ChatCall

OPTION = re.compile(r"^={5,} candidate(?: (\d+))?: (.+)$", re.MULTILINE)
TARGET = re.compile(r"\b(modify|create|delete) ([^,\s][^,\n]*)")
LINES = re.compile(r"\(lines (\d+)-(\d+)\)(?: \(about \d+ tokens\))?$")
LINES_ALLOWED = re.compile(r"at most (\d+) lines")
LINES_AROUND = 10
"""Tags and unchanged lines of an edit."""
SMALLER = 4
"""By so much shorter are the steps of a plan after one whose step could not be done."""
MOST_NAMED = re.compile(r"Name at most (\d+)\.")
PLACE = re.compile(r"^(\d+)\. (?:modify|create|delete) (?:(\S+) in )?(\S+)$", re.MULTILINE)
SOME_CHANGES = re.compile(r"[:;] change ((?:\d+, )*\d+) of ([^\s;]+)")
PROSE = (".md", ".rst", ".txt", ".adoc")


class Oracle:
    """Answers every prompt of a run that is to repeat one commit."""

    def __init__(self, files: Sequence[GoldFile]) -> None:
        """`files` are those of the commit that are to be changed: its tests are in the tree already."""
        self.files = {file.path: file for file in files if not is_prose(file.path)}
        self._answers: Mapping[str, Callable[[str], str]] = {
            TASK_ANALYSIS.title: self._analyse,
            SCOPE_JUDGMENT.title: self._judge_file,
            SCOPE_BATCH.title: self._choose_files,
            PRECISION_BATCH.title: self._choose_pieces,
            PIECE_JUDGMENT.title: self._judge_piece,
            REFILTER.title: self._keep_pieces,
            META_PLAN.title: self.plan_parts,
            PART_PLAN.title: self.plan_steps,
            CHANGE_POINTS.title: self._name_points,
            SAME_PART.title: lambda _: "yes",  # it is one commit
            PART_DEPENDENCY.title: lambda _: "no",
            SYMBOL_TARGETS.title: self._name_targets,
            STEP_DESIGN.title: self._design_steps,
            STEP_DEPENDENCY.title: lambda _: "no",
            ADJUSTMENT_STEP_VIABILITY.title: lambda _: "yes",
            ADJUSTMENT_ROOT_CAUSE.title: lambda prompt: "no" if "## The remaining step" in prompt else "yes",
            ADJUSTMENT_NEW_STEP.title: lambda _: "no",
            ADJUSTMENT_FINALIZE.title: self._adjust,
            GOAL_CHECK.title: self._keeps_goal,
            IMPLEMENT.title: self._write_edits,
            GOAL_TEST.title: lambda _: "I cannot say.",
            worded.FUNCTION.title: lambda prompt: function_for(self.files, prompt),
            worded.LINES.title: lambda prompt: lines_for(self.files, prompt),
            ADJUSTMENT.title: self._adjust,
        }

    def __call__(self, call: ChatCall) -> Answer | str:
        """The answer to one prompt.

        Raises:
            KeyError: the prompt is not one that this oracle knows.
        """
        if call.gap is not None:
            return text_of_gap(self.files, call.gap)
        # Where a server cut the question off, a model says something all the same.
        if not call.title:
            return "yes"
        if call.title not in self._answers:
            raise KeyError(f"the oracle has no answer to {call.title!r}: give it one in `Oracle.__init__`")
        return self._answers[call.title](call.prompt)

    def _analyse(self, prompt: str) -> str:
        task = section(prompt, "Task")
        words = re.findall(r"[A-Za-z_][A-Za-z_0-9.]{3,}", task)
        return json.dumps(
            {"intent": task.split("\n")[0][:200], "areas": [], "keywords": words[:5], "symbols": []}
        )

    def _judge_file(self, prompt: str) -> str:
        return "yes" if path_of(judged(prompt)) in self._asked(prompt) else "no"

    def _choose_files(self, prompt: str) -> str:
        asked = self._asked(prompt)
        return json.dumps({"relevant": [n for n, text in options(prompt) if path_of(text) in asked]})

    def _choose_pieces(self, prompt: str) -> str:
        asked = self._asked(prompt)
        changed = [n for n, text in options(prompt) if self._is_changed_piece(text, asked)]
        return json.dumps({"change": changed, "read": []})

    def _judge_piece(self, prompt: str) -> str:
        return "change" if self._is_changed_piece(judged(prompt), self._asked(prompt)) else "skip"

    def _keep_pieces(self, prompt: str) -> str:
        asked = self._asked(prompt)
        return json.dumps({"keep": [n for n, text in options(prompt) if self._is_changed_piece(text, asked)]})

    def plan_parts(self, prompt: str) -> str:
        """The commit as one part."""
        known = self._nameable(prompt)
        part = {"description": summary_of(prompt), "files": known, "id": "p1", "needs": []}
        return json.dumps({"analysis": "as the task says", "parts": [part], "summary": summary_of(prompt)})

    def plan_steps(self, prompt: str) -> str:
        """The commit as one step; where its edits have more lines than the prompt allows, as several."""
        known = self._nameable(prompt)
        limit = LINES_ALLOWED.search(prompt)
        made = frozenset(section(prompt, "Changes made so far").split("\n"))
        left = {path: self._left(path, made) for path in known}
        most = int(limit[1]) if limit else 10**9
        if "no_edits" in section(
            prompt, "An earlier plan was refused"
        ):  # a step could not see all that it changes
            most //= SMALLER
        chunks = self._chunks(left, most)
        whole = len(chunks) == 1 and not made - {""}
        steps = []
        for number, chunk in enumerate(chunks, 1):
            targets = [{"path": path, "role": self.files[path].role} for path in chunk]
            symbols = [
                name for path in chunk for name in self._changed_symbols(self.files[path], chunk[path])
            ]
            step = {
                "description": summary_of(prompt) if whole else described(summary_of(prompt), chunk),
                "files": targets,
                "id": f"s{number}",
                "needs": [f"s{number - 1}"] if number > 1 else [],
                "symbols": symbols[:10],
            }
            steps.append(step)
        return json.dumps({"analysis": "as the task says", "steps": steps, "summary": summary_of(prompt)})

    def _name_points(self, prompt: str) -> str:
        """The places that the commit changes."""
        points = [
            {"change": summary_of(prompt), "file": path, "symbol": symbol}
            for path, symbol in self._places(self._nameable(prompt), int(MOST_NAMED.search(prompt)[1]))  # type: ignore[index]
        ]
        return json.dumps({"analysis": "as the task says", "points": points, "summary": summary_of(prompt)})

    def _name_targets(self, prompt: str) -> str:
        """The same, of what is not done yet."""
        made = frozenset(section(prompt, "Changes made so far").split("\n"))
        left = [path for path in self._nameable(prompt) if self._left(path, made) is not None]
        targets = [
            {"file": path, "role": self.files[path].role, "symbol": symbol}
            for path, symbol in self._places(left, int(MOST_NAMED.search(prompt)[1]))  # type: ignore[index]
        ]
        return json.dumps({"analysis": "as the task says", "targets": targets})

    def _places(self, paths: Sequence[str], most: int) -> list[tuple[str, str]]:
        """Path and name of what the commit changes; whole files where that is too many."""
        found = []
        for path in paths:
            file = self.files[path]
            named = self._changed_symbols(file, range(len(file.groups))) if file.role == "modify" else []
            found += [(path, symbol) for symbol in named] or [(path, "")]
        return found if len(found) <= most else [(path, "") for path in paths]

    def _design_steps(self, prompt: str) -> str:
        """The steps of `plan_steps`, over the places that the prompt numbers."""
        numbered = PLACE.findall(section(prompt, "Places that it changes"))
        planned = json.loads(self.plan_steps(prompt))
        steps = []
        for step in planned["steps"]:
            own = {file["path"] for file in step["files"]}
            inside = [
                int(number)
                for number, symbol, path in numbered
                if path in own and (not symbol or symbol in step["symbols"])
            ]
            whole = [int(number) for number, _, path in numbered if path in own]
            steps.append({"description": step["description"], "targets": inside or whole})
        return json.dumps({"steps": steps, "summary": summary_of(prompt)})

    def _keeps_goal(self, prompt: str) -> str:
        """Whether each file that is to be changed is in the revised steps, or in a diff."""
        seen = section(prompt, "Revised steps") + section(prompt, "Changes made so far")
        before = section(prompt, "Steps before")
        return "yes" if all(path in seen for path in self.files if path in before) else "no"

    def _left(self, path: str, made: frozenset[str]) -> list[int] | None:
        """Which of the file's changes (0-based places in `GoldFile.groups`) are not in the diff; None if all its work is."""
        file = self.files[path]
        if file.before is None or file.after is None:
            return None if f"+++ b/{path}" in made or f"--- a/{path}" in made else []
        before, after = lines_of(file.before), lines_of(file.after)
        left = []
        for place, (i1, i2, j1, j2) in enumerate(file.groups):
            lines = {f"-{line}" for line in before[i1:i2]} ^ {f"+{line}" for line in after[j1:j2]}
            unchanged = {line[1:] for line in lines if f"-{line[1:]}" in lines and f"+{line[1:]}" in lines}
            if not {line for line in lines if line[1:] not in unchanged} <= made:
                left.append(place)
        return left or None

    def _chunks(self, left_over: Mapping[str, list[int] | None], limit: int) -> list[dict[str, list[int]]]:
        """For each step, which changes of which files it makes."""
        whole = {
            path: places for path in self._in_order_of_use() if (places := left_over.get(path)) is not None
        }
        if sum(self._lines(path, places) for path, places in whole.items()) <= limit:
            return [whole]
        chunks: list[dict[str, list[int]]] = []
        for path, places in whole.items():
            left = limit
            chunks.append({path: []})
            for place in places:
                size = self._lines(path, [place])
                if chunks[-1][path] and size > left:
                    chunks.append({path: []})
                    left = limit
                chunks[-1][path].append(place)
                left -= size
        return chunks

    def _in_order_of_use(self) -> list[str]:
        """The files, those that bring a name before those that begin to use it; in the commit's order where that is all the
        same, or where they use each other's.
        """
        brings = {path: added_names(file) for path, file in self.files.items()}
        uses = {}
        for path, file in self.files.items():
            before = frozenset(lines_of(file.before or ""))
            added = "\n".join(line for line in lines_of(file.after or "") if line not in before)
            words = frozenset(re.findall(r"\w+", added))
            uses[path] = {other for other, names in brings.items() if other != path and names & words}
        ordered: list[str] = []
        while left := [path for path in self.files if path not in ordered]:
            ordered.append(next((path for path in left if uses[path] <= set(ordered)), left[0]))
        return ordered

    def _lines(self, path: str, places: Sequence[int]) -> int:
        """About how many lines an answer with these changes has."""
        file = self.files[path]
        if file.before is None or file.after is None:
            return len((file.after or "").splitlines()) + 2
        groups = file.groups
        return sum(i2 - i1 + j2 - j1 + LINES_AROUND for i1, i2, j1, j2 in (groups[place] for place in places))

    def _adjust(self, prompt: str) -> str:
        steps = [json.loads(line) for line in section(prompt, "Remaining steps").split("\n") if line]
        return json.dumps({"analysis": "the steps still fit", "changes": [], "steps": steps})

    def _write_edits(self, prompt: str) -> str:
        step = section(prompt, "The step to do now")
        package = shown_in(prompt)
        wanted = [path for _, path in TARGET.findall(step) if path in self.files]
        if not SOME_CHANGES.search(step):
            wanted += [shown.path for shown in package if shown.editable and shown.path in self.files]
        edits: list[PatchEdit] = []
        targets = {path for _, path in TARGET.findall(step)}
        named = changes_named(step)
        for path in dict.fromkeys(wanted):
            pieces = [shown for shown in package if shown.editable or path in targets]
            edits.extend(edits_for(self.files[path], pieces, named.get(path)))
        return render_edits(tuple(edits)) if edits else "The code that has to change is not shown to me."

    def _asked(self, prompt: str) -> Mapping[str, Sequence[int]]:
        """The files to be changed now, with the places of their changes: all, unless a step names some."""
        named = changes_named(section(prompt, "The part of it to do now"))
        return {path: places for path, places in named.items() if path in self.files} or {
            path: range(len(file.groups)) for path, file in self.files.items()
        }

    def _is_changed_piece(self, text: str, asked: Mapping[str, Sequence[int]]) -> bool:
        path = path_of(text)
        file = self.files.get(path)
        if file is None or path not in asked:
            return False
        lines = LINES.search(text)
        if lines is None or file.before is None:
            return True
        groups = file.groups
        return touches([groups[place] for place in asked[path]], int(lines[1]), int(lines[2]))

    def _changed_symbols(self, file: GoldFile, places: Sequence[int]) -> list[str]:
        """The innermost definitions that hold the changes."""
        groups = file.groups
        named = []
        for name, (start, end) in file.spans.items():
            own = [groups[place] for place in places if touches([groups[place]], start, end)]
            inner = [span for other, span in file.spans.items() if other.startswith(name + ".")]
            if any(not any(touches([group], *span) for span in inner) for group in own):
                named.append(name)
        return named

    def _nameable(self, prompt: str) -> list[str]:
        """The commit's files whose paths the prompt shows, and those that it creates, which a task can ask for."""
        return [path for path, file in sorted(self.files.items()) if path in prompt or file.before is None]


def added_names(file: GoldFile) -> set[str]:
    """Names, without those of their classes, of all that the commit defines in the file and that was not there."""

    def names(text: str | None) -> set[str]:
        return {one.symbol.rpartition(".")[2] for one in definitions(file.path, text or "")}

    return names(file.after) - names(file.before)


def is_prose(path: str) -> bool:
    """Whether the file is documentation, which a task does not ask for."""
    return PurePosixPath(path).suffix in PROSE or path.startswith("docs/")


def options(prompt: str) -> list[tuple[int, str]]:
    """The number (1 where there is but one) and the name of each candidate that a prompt frames."""
    return [(int(number or 1), text) for number, text in OPTION.findall(prompt)]


def judged(prompt: str) -> str:
    """What a question with one verdict is about, as it would stand in a list."""
    return options(prompt)[0][1]


def path_of(option: str) -> str:
    """The path that an option begins with."""
    return re.split(r" :: | \| | \(| - |: |\s", option.strip(), maxsplit=1)[0]


def section(prompt: str, title: str) -> str:
    """The text under the last heading `## title`, or `## title (a remark)`, up to the next heading; without the prompt's
    closing question.
    """
    parts = re.split(rf"^## {re.escape(title)}(?: \([^()\n]*\))?$", prompt, flags=re.MULTILINE)
    body = re.split(rf"^(?:## |{INSTRUCTIONS})", parts[-1], flags=re.MULTILINE)[0] if len(parts) > 1 else ""
    paragraphs = body.strip().split("\n\n")
    last = paragraphs[-1] if paragraphs else ""
    if len(paragraphs) > 1 and last.endswith(("JSON object.", "this step.", "yes or no.", "failed before.")):
        paragraphs.pop()
    return "\n\n".join(paragraphs).strip()


def summary_of(prompt: str) -> str:
    """The first line of the task that a prompt shows."""
    return section(prompt, "Task").split("\n")[0].strip()[:200] or "do the task"


def described(summary: str, chunk: Mapping[str, Sequence[int]]) -> str:
    """What a step that makes some of its files' changes says of itself, so that whoever does it knows which."""
    named = []
    for path, places in chunk.items():
        numbers = ", ".join(str(place + 1) for place in places)
        named.append(f"change {numbers} of {path}" if numbers else path)
    return f"{summary}: {'; '.join(named)}"


def changes_named(step: str) -> dict[str, list[int]]:
    """The places (0-based) of each file's changes that `described` named in a step."""
    return {
        path: [int(number) - 1 for number in numbers.split(", ")]
        for numbers, path in SOME_CHANGES.findall(step)
    }
