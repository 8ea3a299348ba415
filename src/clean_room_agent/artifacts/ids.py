"""Names of tasks, passes, parts and steps.

A task id is a UUID4. A pass extends it with colons, so that a pass id always begins with its task's id:
`<task>:meta_plan`, `<task>:part_plan:<part>[:replan_<n>]`, `<task>:impl:<part>:<step>[:retry_<n>]`,
`<task>:adjust:<part>:after_<step>`.
"""

import re
import uuid

ID_LENGTH = 32
ID_PATTERN = re.compile(rf"[a-z0-9_-]{{1,{ID_LENGTH}}}\Z")
SHORT_LENGTH = 8
NEWEST_RUN = "@"
"""In place of an id; `@~1` is the run before."""


def new_task_id() -> str:
    """A fresh UUID4 in its usual text form."""
    return str(uuid.uuid4())


def is_plan_id(text: str) -> bool:
    """Whether `text` may name a part or a step."""
    return ID_PATTERN.match(text) is not None


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


def task_of(pass_id: str) -> str:
    """The task that a pass belongs to."""
    return pass_id.split(":", 1)[0]


def relative_pass(pass_id: str) -> str:
    """The pass without its task: what stays the same when the task is run again; "" for the task itself."""
    return pass_id.partition(":")[2]


def short_id(task_id: str) -> str:
    """What people type and branches carry: the first eight characters."""
    return task_id[:SHORT_LENGTH]
