import json

import pytest

from clean_room_agent.errors import ModelError, ModelNotFound, ServerBusy, ServerFailed, WindowExceeded
from clean_room_agent.llm.transport import Refusal
from clean_room_agent.llm.transports.server_errors import OLLAMA, Target, reported

TARGET = Target(server="http://127.0.0.1:11434", tag="coder:3b", dialect=OLLAMA)
CONTEXT = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096}


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (
            404,
            '{"error":"model \'coder:3b\' not found"}',
            ModelNotFound,
            "does not have the model 'coder:3b'",
        ),
        (404, "404 page not found", ServerFailed, "does not speak Ollama's protocol: status 404"),
        (301, "", ServerFailed, "does not speak Ollama's protocol: status 301"),
        (403, "", ServerFailed, "status 403: (no message)"),
        (499, '{"error":"request cancelled"}', ServerFailed, "status 499: request cancelled"),
        (400, '{"error":"invalid options: num_ctx"}', ServerFailed, "status 400: invalid options"),
        (503, "{}", ServerBusy, "is busy: (no message)"),
        (
            500,
            '{"error":"llama runner process has unexpectedly stopped"}',
            ServerFailed,
            "unexpectedly stopped",
        ),
        (200, '{"error":"boom"}', ServerFailed, "in the middle of its answer: boom"),
        (502, "<html>Bad gateway</html>", ServerFailed, "<html>"),
        (500, "[" * 100_000, ServerFailed, "[[["),
    ],
)
def test_a_status_is_one_class_of_error_with_a_hint(
    status: int, body: str, kind: type[ModelError], said: str
) -> None:
    error, refusal = reported(TARGET, status, body)
    assert type(error) is kind
    assert said in error.message
    assert error.hint
    assert error.exit_code == 3
    assert refusal is None


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ('{"error":"the input length exceeds the context length"}', Refusal()),
        (json.dumps({"error": json.dumps({"error": CONTEXT})}), Refusal(prompt_tokens=9000, window=4096)),
        (
            json.dumps({"error": "do request: " + json.dumps(CONTEXT)}),
            Refusal(prompt_tokens=9000, window=4096),
        ),
        (json.dumps({"error": CONTEXT}), Refusal(prompt_tokens=9000, window=4096)),
        ('{"error":"exceed_context_size_error"}', Refusal()),
    ],
)
def test_an_overflow_is_known_in_each_of_its_forms(body: str, refusal: Refusal) -> None:
    error, found = reported(TARGET, 400, body)
    assert isinstance(error, WindowExceeded)
    assert found == refusal
    if refusal.window:
        assert "of 9000 tokens" in error.message
        assert "window of 4096" in error.message
    assert "token_factor" in error.hint


def test_a_missing_model_is_told_with_the_ones_there_are() -> None:
    error, _ = reported(TARGET, 404, '{"error":"model not found"}', known=("a:1b", "b:2b"))
    assert "http://127.0.0.1:11434" in error.message
    assert "`ollama pull coder:3b`" in error.hint
    assert "it has: a:1b, b:2b" in error.hint
