import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from benchmarks.real.proxy import Account, CountingProxy, Usage

TIMINGS = {"prompt_n": 30, "cache_n": 12, "predicted_n": 4}


class Scripted(BaseHTTPRequestHandler):
    """Answers as llama-server does."""

    asked: list[dict[str, Any]]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.reply(json.dumps({"path": self.path}))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(request)
        if request.get("broken"):
            self.reply("no", status=500)
        elif self.path in {"/completion", "/infill"}:
            self.reply(json.dumps({"content": "plain", "timings": TIMINGS}))
        elif request.get("stream"):
            parts = [
                {"choices": [{"delta": {"content": text}}], "timings": TIMINGS | {"predicted_n": number}}
                for number, text in enumerate(("he", "llo"), 1)
            ]
            self.reply("".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n")
        else:
            usage = {
                "prompt_tokens": 42,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 2},
            }
            self.reply(json.dumps({"choices": [{"message": {"content": "whole"}}], "usage": usage}))

    def reply(self, body: str, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    Scripted.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with CountingProxy(f"http://127.0.0.1:{server.server_port}") as proxy:
            yield proxy.open_account("cra", "one", tmp_path / "one.jsonl", bound=100)
        server.shutdown()


def ask(account: Account, path: str = "/v1/chat/completions", **request: Any) -> httpx.Response:
    return httpx.post(account.base_url + path, json=request, trust_env=False)


def test_answers_come_through_and_are_counted_as_the_server_counts(account: Account) -> None:
    assert ask(account).json()["choices"][0]["message"]["content"] == "whole"
    assert account.usage == Usage(read=40, cached=2, written=4)
    assert ask(account, "/completion").json()["content"] == "plain"
    assert account.usage == Usage(read=70, cached=14, written=8)
    assert ask(account, "/infill").json()["content"] == "plain"
    assert account.usage == Usage(read=100, cached=26, written=12)
    assert (account.answers, account.refused) == (3, 0)


def test_a_stream_comes_through_event_by_event_and_says_its_counts(account: Account) -> None:
    lines = [line for line in ask(account, stream=True).text.splitlines() if line]
    assert [json.loads(line[6:])["choices"][0]["delta"]["content"] for line in lines[:-1]] == ["he", "llo"]
    assert lines[-1] == "data: [DONE]"
    assert account.usage == Usage(read=30, cached=12, written=2)
    assert Scripted.asked[0]["timings_per_token"], "else a stream that is closed early would not be counted"


def test_beyond_the_bound_the_model_is_not_asked(account: Account) -> None:
    for _ in range(3):
        assert ask(account).status_code == 200
    refused = ask(account)
    assert refused.status_code == 401
    assert "bound of this task is spent: 132 of 100 tokens" in refused.json()["error"]["message"]
    assert (len(Scripted.asked), account.refused) == (3, 1)


def test_every_exchange_is_a_line_of_the_file(account: Account, tmp_path: Path) -> None:
    ask(account, messages=[{"role": "user", "content": "hi"}])
    ask(account, broken=True)
    good, bad = map(json.loads, (tmp_path / "one.jsonl").read_text(encoding="utf-8").splitlines())
    assert good["request"] == {"messages": [{"role": "user", "content": "hi"}]}
    assert (good["answer"], good["read"], good["cached"], good["written"]) == ("whole", 40, 2, 4)
    assert (bad["answer"], bad["status"], bad["read"]) == ("no", 500, 0)
    assert account.answers == 1


def test_other_paths_are_passed_through_and_other_tasks_are_unknown(account: Account) -> None:
    assert httpx.get(account.base_url + "/props", trust_env=False).json() == {"path": "/props"}
    assert ask(account, "-other/v1/chat/completions").status_code == 404
