"""Faults that any model server can have, and what every client must make of them."""

import json
from collections.abc import Mapping

import pytest
from msgspec import Struct

from clean_room_agent.errors import ModelError, ServerFailed, ServerTimeout, ServerUnreachable
from testing.client.memory_sink import MemorySink
from testing.servers.ollama_script import Answer

LONG = "abcdefgh " * 40
IMPATIENT = {"first_byte": 0.3, "idle": 0.2}
"""Time-outs that the faults below outlast, in seconds."""


class Fault(Struct, frozen=True, kw_only=True):
    """An answer that goes wrong, and what must come of it."""

    answer: Answer
    error: type[ModelError]
    said: str
    hint: str
    kept: str = ""
    """The start of the response that the record holds."""


COMMON: Mapping[str, Fault] = {
    "abrupt close in the answer": Fault(
        answer=Answer(text=LONG, close="in_answer"),
        error=ServerFailed,
        said="broke off in the middle of coder:3b's answer",
        hint="may have died",
        kept="abcdefgh abcdefgh",
    ),
    "abrupt close without a byte": Fault(
        answer=Answer(close="before_headers"),
        error=ServerUnreachable,
        said="broke before the first token",
        hint="run out of memory",
    ),
    "abrupt close before the first token": Fault(
        answer=Answer(close="before_token"),
        error=ServerUnreachable,
        said="broke before the first token",
        hint="run out of memory",
    ),
    "load too slow": Fault(
        answer=Answer(text="late", load_seconds=60),
        error=ServerTimeout,
        said="did not begin to answer within 0.3 s",
        hint="raise first_byte",
    ),
}
"""By name; whatever the protocol."""


def check_fault(
    fault: Fault, caught: pytest.ExceptionInfo[ModelError], sink: MemorySink, *, base_url: str, sent: object
) -> None:
    """The caller saw the fault's error with its remedy, and the record holds one row with what came.

    Args:
        fault: what went wrong in the one call that `sink` recorded.
        caught: what the caller saw.
        sink: the record.
        base_url: of the server.
        sent: the request's body, as the server read it.
    """
    assert type(caught.value) is fault.error
    assert fault.said.format(port=base_url.rsplit(":", 1)[1]) in caught.value.message
    assert fault.hint in caught.value.hint
    assert caught.value.exit_code == 3
    (row,) = sink.asked()
    assert row.ending.finish == f"error:{fault.error.__name__}"
    assert row.ending.error == caught.value.message
    assert row.answer.response.startswith(fault.kept)
    assert bool(row.answer.response) == bool(fault.kept)
    assert json.loads(row.request.request_body) == sent
    assert sink.readings == []
