"""Names: ids of tasks, passes, parts, steps and calls, and names of files and their pieces in prompts and reports.

A file or a piece of it is `path`, `path :: Class.method` or `path :: name (lines 3-9)`.

A task id is a UUID4. A pass extends it with colons, so that a pass id always begins with its task's id:
`<task>:meta_plan`, `<task>:part_plan:<part>[:replan_<n>]`, `<task>:impl:<part>:<step>[:retry_<n>]`,
`<task>:adjust:<part>:after_<step>`.

People name a run by the beginning of its id (`1f3a`), by its branch (`cra/1f3a…`), or by its age (`@` is the newest, `@~1` the
one before), a place in it as `RUN/PLACE`, and one of its model calls as `call:15`, a line of its prompt as `call:15:3`.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

ID_LENGTH = 32
ID_PATTERN = rf"[a-z0-9_-]{{1,{ID_LENGTH}}}\Z"
SHORT_LENGTH = 8
NEWEST_RUN = "@"
"""Used instead of an id; `@~1` is the run before."""
ROW_NUMBER = r"[0-9]{1,18}"
RUN_BY_AGE = r"@(?:~([0-9]{1,9}))?"
BRANCHES = "cra"
"""The folder of the branches of results."""
CALL = rf"call:(?P<call>{ROW_NUMBER})(?::(?P<line>{ROW_NUMBER}))?"
RETRY = ":retry_"
SEPARATOR = " :: "
LINES = r" \(lines (\d+)-(\d+)\)"
REMARKS = r"(?: \((?:lines \d+-\d+|about \d+ tokens)\))+\Z"
MAX_LINE = 200
"""Characters of a line that stands for a whole text."""
UNQUOTED = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"


class RunReference(Struct, frozen=True, kw_only=True):
    """A run as a person names it."""

    prefix: str
    """The beginning of its id; "" if it is named by its age."""
    age: int | None = None
    """How many runs are newer."""


class CallReference(Struct, frozen=True, kw_only=True):
    """A model call as a person names it, or a line of its prompt."""

    call_id: int
    line: int | None = None
    """1-based."""


def first_line(text: str) -> str:
    """The first line that is not blank, or the beginning of a very long one; "" if there is none."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 2].rstrip()} …"


def new_task_id() -> str:
    """A fresh UUID4 in its usual text form."""
    import uuid  # noqa: PLC0415 - most commands make no task

    return str(uuid.uuid4())


def is_plan_id(text: str) -> bool:
    """Whether `text` may name a part or a step."""
    return re.match(ID_PATTERN, text) is not None


def meta_plan_pass(task_id: str) -> str:
    """The pass that divides the task into parts."""
    return f"{task_id}:meta_plan"


def part_plan_pass(task_id: str, part_id: str, replan: int = 0) -> str:
    """The pass that divides one part into steps, for the first time or (`replan` 1, 2, …) again."""
    base = f"{task_id}:part_plan:{part_id}"
    return base if replan == 0 else f"{base}:replan_{replan}"


def implement_pass(task_id: str, part_id: str, step_id: str, attempt: int = 1) -> str:
    """The pass of one attempt (1-based) at one step; the first has no suffix, the second is `retry_1`."""
    base = f"{task_id}:impl:{part_id}:{step_id}"
    return base if attempt == 1 else f"{base}:retry_{attempt - 1}"


def adjustment_pass(task_id: str, part_id: str, step_id: str) -> str:
    """The pass that revises what remains of a part after one of its steps."""
    return f"{task_id}:adjust:{part_id}:after_{step_id}"


def attempt_of(pass_id: str) -> int:
    """Which attempt at a step the pass is (1-based); 1 for any other pass."""
    _, retried, number = pass_id.rpartition(RETRY)
    return int(number) + 1 if retried and number.isdecimal() else 1


def attempts_up_to(pass_id: str) -> tuple[str, ...]:
    """The passes of all attempts at the step up to this one, oldest first; any other pass alone."""
    attempt = attempt_of(pass_id)
    if attempt == 1:
        return (pass_id,)
    base = pass_id.rpartition(RETRY)[0]
    return (base, *(f"{base}{RETRY}{number}" for number in range(1, attempt)))


def part_of(pass_id: str) -> str:
    """The part that a pass plans, adjusts or implements a step of."""
    return pass_id.split(":")[2]


def task_of(pass_id: str) -> str:
    """The task that a pass belongs to."""
    return pass_id.split(":", 1)[0]


def relative_pass(pass_id: str) -> str:
    """The pass without its task: what stays the same when the task is run again; "" for the task itself."""
    return pass_id.partition(":")[2]


def row_number(text: str) -> int | None:
    """The number of a row, or of a line, that the text is; None if it is none, or beyond any that there can be."""
    return int(text) if re.fullmatch(ROW_NUMBER, text) else None


def short_id(task_id: str) -> str:
    """The first eight characters, as used by people and in branch names."""
    return task_id[:SHORT_LENGTH]


def parse_run(text: str) -> RunReference:
    """The run that a person means by `text`."""
    text = text.removeprefix(f"{BRANCHES}/")
    by_age = re.fullmatch(RUN_BY_AGE, text)
    if by_age is not None:
        return RunReference(prefix="", age=int(by_age[1] or 0))
    return RunReference(prefix=text)


def split_place(text: str) -> tuple[str, str]:
    """`RUN[/PLACE]` as the run and the place in it, "" for the whole run. Example: `cra/1f3a/part/step`."""
    run, _, place = text.removeprefix(f"{BRANCHES}/").partition("/")
    return run, place


def parse_call(text: str) -> CallReference | None:
    """The call that `call:N` or `call:N:LINE` names; None if `text` does not name one."""
    match = re.fullmatch(CALL, text)
    if match is None:
        return None
    return CallReference(call_id=int(match["call"]), line=int(match["line"]) if match["line"] else None)


def call_place(call_id: int) -> str:
    """The name of a call."""
    return f"call:{call_id}"


class ItemName(Struct, frozen=True, kw_only=True):
    """The parts of a name."""

    path: str
    symbol: str = ""
    """"" for a whole file."""
    lines: tuple[int, int] | None = None
    """First and last, if they are given."""


def quoted(name: str) -> str:
    """A name as written in a prompt: as it is, or as a JSON string if it contains line breaks or control characters."""
    if not re.search(UNQUOTED, name):
        return name
    import json  # noqa: PLC0415 - few names need it, and every command imports this module

    return json.dumps(name)


def model_name(tag: str) -> str:
    """A model's tag for a person: of one that its server calls by the path of its file, the file's name."""
    return tag.rpartition("/")[2] if tag.startswith("/") else tag


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun: `1 file`, `2 files`, `1,000 files`; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Iterable[str], most: int) -> str:
    """The first `most` names, and how many more there are: `a, b and 2 more`."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def item_name(path: str, symbol: str | None = None, lines: tuple[int, int] | None = None) -> str:
    """The name of the file at `path`, or of a symbol or another piece of it. If the piece is called by the same lines,
    they are in it once.
    """
    name = f"{path}{SEPARATOR}{symbol}" if symbol else path
    remark = f" (lines {lines[0]}-{lines[1]})" if lines else ""
    return name if name.endswith(remark) else f"{name}{remark}"


def without_lines(symbol: str) -> str:
    """The name of a piece without the lines that it is called by; "" if there is nothing else."""
    return re.sub(rf"{LINES}\Z", "", f" {symbol}").strip()


def parse_item_name(name: str) -> ItemName:
    """Parse such a name; remarks in brackets after it (its lines, its size in tokens) are not part of the symbol.

    A piece without a name is called by its lines, in brackets, too: these are the symbol.
    """
    path, separated, symbol = name.partition(SEPARATOR)
    remarks = re.search(REMARKS, symbol if separated else path)
    if remarks is not None:
        path, symbol = (path, symbol[: remarks.start()]) if separated else (path[: remarks.start()], "")
    given = re.findall(LINES, remarks[0] if remarks else f" {symbol}")
    return ItemName(path=path, symbol=symbol, lines=(int(given[-1][0]), int(given[-1][1])) if given else None)
