"""Stores and reads each model's measured answer bias, and the example answers that it copied."""

from clean_room_agent.artifacts.ids import task_of
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.db.raw import answer_biases
from clean_room_agent.db.raw.calls import copying_models, get_call
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.bias import Measured
from clean_room_agent.llm.window_probe import still_holds


class RecordedBiases:
    """Keeps measurements in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, measured: Measured, now: str) -> ModelCall | None:
        """The call by which it was last measured; None where it never was, or by what may have been another model."""
        row = self._record.write(
            answer_biases.newest_bias,
            base_url=measured.base_url,
            model=measured.model,
            model_digest=measured.model_digest,
            prompt=measured.prompt,
            prompt_hash=measured.prompt_hash,
        )
        if row is None or not still_holds(row.model_digest, row.timestamp, now):
            return None
        return self._record.write(get_call, row.call_id)

    def keep(self, measured: Measured, call_id: int, choice: Choice) -> None:
        """Store the measurement."""
        row = answer_biases.AnswerBiasRow(
            base_url=measured.base_url,
            model=measured.model,
            model_digest=measured.model_digest,
            prompt=measured.prompt,
            prompt_hash=measured.prompt_hash,
            shares=choice.shares,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(answer_biases.append_bias, row)


class RecordedCopies:
    """Knows from the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def copiers(self, pass_id: str) -> tuple[str, ...]:
        """The tags of the models that copied an example in other passes of this pass's task."""
        return self._record.write(copying_models, task_of(pass_id), beside=pass_id)
