"""Names to offer for shell completion: read quickly, and from an index."""

from clean_room_agent.db.rows import OF_TASK, Connection, task_range

Named = tuple[tuple[str, str], ...]
"""Names, each with a description."""

RUNS = """
SELECT task_id, command || ', ' || replace(status, '_', ' ') || ': ' || substr(task_description, 1, 400)
FROM orchestrator_runs WHERE substr(task_id, 1, length(?1)) = ?1 AND (?3 OR command <> 'replay')
ORDER BY timestamp DESC, id DESC LIMIT ?2
"""
PATHS = f"""
SELECT path, CASE max(included) WHEN 1 THEN 'shown' ELSE 'left out' END FROM retrieval_decisions
WHERE {OF_TASK} AND path <> '' GROUP BY path ORDER BY max(included) DESC, path
"""  # noqa: S608 - a constant condition
PASSES = f"""
SELECT t.task_id, coalesce(p.pass_type, ''), coalesce(p.part_id, ''), coalesce(p.step_id, '')
FROM task_runs AS t LEFT JOIN orchestrator_passes AS p ON p.task_run_id = t.id
WHERE {OF_TASK.replace("task_id", "t.task_id")} ORDER BY p.sequence_order, t.id
"""  # noqa: S608
ADAPTERS = """
SELECT model_tag, stage_name || CASE deployed WHEN 1 THEN ', deployed' ELSE '' END FROM adapter_registry ORDER BY id DESC
"""


def name_runs(conn: Connection, prefix: str, *, limit: int, replays: bool = True) -> Named:
    """The newest runs whose id begins with `prefix`, with their tasks; without `replays`, those that have an age."""
    return tuple((row[0], row[1]) for row in conn.execute(RUNS, (prefix, limit, replays)))


def name_paths(conn: Connection, task_id: str) -> Named:
    """The files that a task decided about, those shown to a model first."""
    return tuple((row[0], row[1]) for row in conn.execute(PATHS, task_range(task_id)))


def name_places(conn: Connection, task_id: str) -> Named:
    """What may follow `RUN/`: passes in order, and the parts and steps that they belong to."""
    places: dict[str, str] = {}
    for pass_id, kind, part, step in conn.execute(PASSES, task_range(task_id)):
        if kind != "implement":
            places.setdefault(pass_id.partition(":")[2], kind.replace("_", " "))
            continue
        places.setdefault(part, "a part")
        places.setdefault(f"{part}/{step}", "a step")
    return tuple((place, told) for place, told in places.items() if place)


def name_adapters(conn: Connection) -> Named:
    """Tags of trained adapters, newest first, with the prompt that each is for."""
    return tuple((row[0], row[1]) for row in conn.execute(ADAPTERS))
