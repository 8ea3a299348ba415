"""Stores and reads which servers were proven not to truncate prompts."""

from clean_room_agent.db.raw import window_proofs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.window_probe import ProbedServer


class RecordedProofs:
    """Keeps proofs in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, server: ProbedServer) -> str | None:
        """When the server was last proven; None where it never was."""
        row = self._record.write(
            window_proofs.newest_proof,
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
        )
        return None if row is None else row.timestamp

    def keep(self, server: ProbedServer, call_id: int) -> None:
        """Store the proof."""
        row = window_proofs.WindowProofRow(
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(window_proofs.append_proof, row)
