import json

import pytest

from clean_room_agent.errors import ModelError, ModelNotFound, ServerBusy, ServerFailed
from clean_room_agent.llm.transport import WindowRefusal
from clean_room_agent.llm.transports.server_errors import (
    OLLAMA,
    OPENAI,
    RequestTarget,
    read_refusal,
    reported,
)

TARGET = RequestTarget(server="http://127.0.0.1:8000", tag="coder:3b", dialect=OPENAI)
MOST = "This model's maximum context length is 4096 tokens."
WORDINGS = {
    f"{MOST} However, you requested 9100 tokens (9000 in the messages, 100 in the completion). Please": (
        9000,
        4096,
    ),
    "This model's maximum context length is 4096 tokens, however you requested 9100 tokens (9000 in your prompt; 100": (
        9000,
        4096,
    ),
    f"{MOST} However, you requested 9000 tokens in the messages, Please reduce the length of the messages.": (
        9000,
        4096,
    ),
    f"{MOST} However, your request has 9000 input tokens. Please reduce the length": (9000, 4096),
    f"{MOST} However, your messages resulted in 9000 tokens. Please reduce the length": (9000, 4096),
    f"'max_tokens' is too large: 900. {MOST[:-1]} and your request has 4000 input tokens (900 > 4096 - 4000).": (
        4000,
        4096,
    ),
    f"{MOST} However, you requested 100 output tokens and your prompt contains at least 3997 input tokens": (
        None,
        4096,
    ),
    "You passed 3997 input tokens and requested 100 output tokens. However, the model's context length is only 4096 "
    "tokens, resulting in a maximum input length of 3996 tokens.": (None, 4096),
    "You passed 90000 input characters and requested 1 output tokens. However, the model's context length is only 4096": (
        None,
        4096,
    ),
    "The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that": (
        9000,
        4096,
    ),
    "Requested tokens (9000) exceed context window of 4096": (9000, 4096),
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length "
    "of only 4096 tokens, which is not enough.": (9000, 4096),
    "Error: Input length 9000 exceeds context length 4096": (9000, 4096),
    "Reached context length of 4096 tokens with model (arch: x) that does not currently support mid-generation": (
        None,
        4096,
    ),
    "The number of tokens to keep from the initial prompt is greater than the context length": (None, None),
    "Context size has been exceeded.": (None, None),
    "the request exceeds the available context size, try increasing it": (None, None),
    "max_tokens must be at least 1, got -186.": (None, None),
    "context_length_exceeded": (None, None),
}
OLLAMA_TARGET = RequestTarget(server="http://127.0.0.1:11434", tag="coder:3b", dialect=OLLAMA)


@pytest.mark.parametrize("words", WORDINGS)
def test_every_servers_words_for_a_prompt_that_is_too_long_are_known(words: str) -> None:
    prompt, window = WORDINGS[words]
    assert read_refusal(words) == WindowRefusal(prompt_tokens=prompt, window=window)
    for body in ({"error": {"message": words}}, {"object": "error", "message": words}, {"detail": words}):
        error, refusal = reported(TARGET, 400, json.dumps(body))
        assert refusal == WindowRefusal(prompt_tokens=prompt, window=window)
        assert "refused a prompt" in error.message


@pytest.mark.parametrize(
    "words",
    [
        "model not loaded",
        "top_logprobs must be at most 20",
        "Invalid 'messages': field required",
        "max_tokens must be at least 1, got 0.",
    ],
)
def test_other_words_are_no_overflow(words: str) -> None:
    assert read_refusal(words) is None


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
        (
            502,
            "<!DOCTYPE HTML>\n<html><head>\n<title>Error</title></head>\n<p>Bad\ngateway</p></html>",
            ServerFailed,
            "status 502: Bad gateway",
        ),
        (500, "[" * 100_000, ServerFailed, "[[["),
    ],
)
def test_a_status_is_one_class_of_error_with_a_hint(
    status: int, body: str, kind: type[ModelError], said: str
) -> None:
    error, refusal = reported(OLLAMA_TARGET, status, body)
    assert type(error) is kind
    assert said in error.message
    assert error.hint
    assert error.exit_code == 3
    assert refusal is None
