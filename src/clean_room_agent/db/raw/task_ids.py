"""Finding what belongs to a task: its own id, and every pass id that extends it with a colon."""

OF_TASK = "(task_id = ? OR (task_id > ? AND task_id < ?))"
"""An SQL condition; its parameters are `task_range`. Unlike LIKE, it uses the index and knows no wildcards."""


def task_range(task_id: str) -> tuple[str, str, str]:
    """The parameters of `OF_TASK`: the id, and the bounds of all that begin with it and a colon."""
    return (task_id, f"{task_id}:", f"{task_id};")
