"""Measurements of models: tokens per text, answers to empty questions, and whether the server enforces its window."""

from msgspec import Struct

from clean_room_agent.db.rows import Connection, Table

LOOKED_AT = 2_000
"""Calls of a model are searched among so many of the newest calls of all models."""
# Usable are calls that a server answered and counted: not replayed, not failed, not the probe.
USEFUL = f"""
id > (SELECT max(id) FROM retrieval_llm_calls) - {LOOKED_AT} AND model = ? AND replayed_from IS NULL AND provider NOT IN ('replay', 'none') AND finish NOT LIKE 'error:%'
    AND call_type <> 'window_probe' AND prompt_tokens > 0
"""  # noqa: S608 - a constant
PAIRS = f"""
SELECT max(id), system_prompt, prompt, prompt_tokens, model_digest FROM retrieval_llm_calls
WHERE {USEFUL} GROUP BY prompt_hash ORDER BY max(id) DESC LIMIT ?
"""  # noqa: S608 - a constant condition
COUNT_SINCE = f"SELECT count(DISTINCT prompt_hash) FROM retrieval_llm_calls WHERE id > ? AND {USEFUL}"  # noqa: S608


class LoggedPair(Struct, frozen=True, kw_only=True):
    """A prompt, and its number of tokens as the server counted them."""

    call_id: int
    system_prompt: str
    prompt: str
    prompt_tokens: int
    model_digest: str


class CalibrationRow(Struct, frozen=True, kw_only=True):
    """One fitted estimator."""

    id: int = 0
    model: str
    model_digest: str
    pairs: int
    newest_call_id: int
    margin: float
    weights: tuple[float, ...]
    words: tuple[tuple[str, float], ...]
    timestamp: str


class TaskEstimatorRow(Struct, frozen=True, kw_only=True):
    """The estimator that a task's prompts for one model were measured with."""

    id: int = 0
    task_id: str
    model: str
    calibration_id: int | None
    start_factor: float
    timestamp: str


CALIBRATIONS = Table("token_calibrations", CalibrationRow)
TASK_ESTIMATORS = Table("task_gauges", TaskEstimatorRow)


def append_calibration(conn: Connection, row: CalibrationRow) -> int:
    """Insert the calibration and return its id."""
    return CALIBRATIONS.insert(conn, row)


def append_task_estimators(conn: Connection, rows: tuple[TaskEstimatorRow, ...]) -> None:
    """Insert the rows."""
    for row in rows:
        TASK_ESTIMATORS.insert(conn, row)


def newest_calibration(conn: Connection, model: str) -> CalibrationRow | None:
    """The model's latest calibration."""
    return CALIBRATIONS.first(conn, "WHERE model = ? ORDER BY id DESC", (model,))


def get_calibration(conn: Connection, calibration_id: int) -> CalibrationRow | None:
    """The calibration with this id."""
    return CALIBRATIONS.first(conn, "WHERE id = ?", (calibration_id,))


def list_task_estimators(conn: Connection, task_id: str) -> tuple[TaskEstimatorRow, ...]:
    """The task's estimators, one per model, by id."""
    return TASK_ESTIMATORS.select(conn, "WHERE task_id = ? ORDER BY id", (task_id,))


def count_pairs_since(conn: Connection, model: str, call_id: int) -> int:
    """Number of distinct prompts, with a token count, that the model was sent after that call."""
    return int(conn.execute(COUNT_SINCE, (call_id, model)).fetchone()[0])


def list_pairs(conn: Connection, model: str, *, limit: int) -> tuple[LoggedPair, ...]:
    """The newest distinct prompts sent to the model's current version (by digest), oldest first."""
    rows = conn.execute(PAIRS, (model, limit)).fetchall()
    pairs = (
        LoggedPair(
            call_id=row[0], system_prompt=row[1], prompt=row[2], prompt_tokens=row[3], model_digest=row[4]
        )
        for row in reversed(rows)
    )
    return tuple(pair for pair in pairs if pair.model_digest == rows[0][4])


class AnswerBiasRow(Struct, frozen=True, kw_only=True):
    """One measurement."""

    id: int = 0
    base_url: str
    model: str
    model_digest: str
    prompt: str
    prompt_hash: str
    shares: tuple[tuple[str, float], ...]
    call_id: int
    timestamp: str


ANSWER_BIASES = Table("answer_biases", AnswerBiasRow)


def append_bias(conn: Connection, row: AnswerBiasRow) -> int:
    """Insert the measurement and return its id."""
    return ANSWER_BIASES.insert(conn, row)


def newest_bias(
    conn: Connection, *, base_url: str, model: str, model_digest: str, prompt: str, prompt_hash: str
) -> AnswerBiasRow | None:
    """The latest measurement of this model with this prompt."""
    return ANSWER_BIASES.first(
        conn,
        "WHERE base_url = ? AND model = ? AND model_digest = ? AND prompt = ? AND prompt_hash = ? ORDER BY id DESC",
        (base_url, model, model_digest, prompt, prompt_hash),
    )


class WindowProofRow(Struct, frozen=True, kw_only=True):
    """One proof."""

    id: int = 0
    provider: str
    base_url: str
    model: str
    model_digest: str
    window: int
    call_id: int
    timestamp: str


WINDOW_PROOFS = Table("window_proofs", WindowProofRow)


def append_proof(conn: Connection, row: WindowProofRow) -> int:
    """Insert the proof and return its id."""
    return WINDOW_PROOFS.insert(conn, row)


def newest_proof(
    conn: Connection, *, provider: str, base_url: str, model: str, model_digest: str, window: int
) -> WindowProofRow | None:
    """The latest proof for this server, model and window."""
    return WINDOW_PROOFS.first(
        conn,
        "WHERE provider = ? AND base_url = ? AND model = ? AND model_digest = ? AND window = ? ORDER BY id DESC",
        (provider, base_url, model, model_digest, window),
    )
