"""A model call as `llm` hands it over, as the row that `db` keeps: neither of the two knows the other."""

from clean_room_agent.db.raw import calls
from clean_room_agent.llm.sink import CallRecord


def call_row(call: CallRecord) -> calls.CallRow:
    """A call as a row of the record."""
    return calls.CallRow(
        task_id=call.pass_id,
        call_type=call.call_type,
        stage_name=call.stage_name,
        model=call.model,
        prompt=call.prompt,
        response=call.response,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        latency_ms=call.latency_ms,
        timestamp=call.timestamp,
        system_prompt=call.system_prompt,
        request_body=call.request_body,
        provider=call.provider,
        model_digest=call.model_digest,
        finish=call.finish,
        role=call.role,
        item=call.item,
        attempt=call.attempt,
        prompt_hash=call.prompt_hash,
        estimated_tokens=call.estimated_tokens,
        thinking=call.thinking,
        logprobs=call.logprobs,
        error=call.error,
        replayed_from=call.replayed_from,
    )
