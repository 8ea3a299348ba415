"""Valid examples, mangled: each door of the program takes them, or refuses them as what they are.

What any reader must do; what each must make of its input is tested beside it. `--hypothesis-profile=fuzz` tries many more.
"""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.client.chat_request import chat_request
from testing.client.model_client import models_config
from testing.packages import package, shown_file

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.plans import MetaPlan, Part, TargetFile
from clean_room_agent.errors import CraError
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.parse import parse_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.plan_file import load_plan
from clean_room_agent.indexer.extract import extract
from clean_room_agent.llm.transports.ollama import OllamaTransport
from clean_room_agent.llm.transports.openai import OpenAiTransport
from clean_room_agent.llm.transports.replay import load_calls
from clean_room_agent.llm.transports.server_errors import read_refusal

RECORDING = Path(__file__).parents[2] / "src/clean_room_agent/app/demo_assets/recording.jsonl"
LINES = RECORDING.read_text(encoding="utf-8").split("\n")
PYTHON = '"""Boxes."""\n\n\nclass Box:\n    def open(self, *, at: int = 1) -> int:\n        """Open.\n\n        :param at: x\n        """\n        return at\n'
SCRIPT = 'import { a, type B } from "@app/a";\n/** A box. @param {x} y */\nexport class Box<T> { #in = 1; open(x: number): T { return `${x}` } }\n'
FILES = {"a.py": PYTHON, "src/box.ts": SCRIPT, "mixed.txt": "first\r\nsecond\nthird\r\n"}
EDITS = (
    '<edit file="a.py">\n<search>\n        return at\n</search>\n<replacement>\n        return 1\n</replacement>\n</edit>\n',
    '<edit file="a.py" symbol="Box.open">\n<replacement>\ndef open(self):\n    return 2\n</replacement>\n</edit>\n',
    '<insert file="src/box.ts" in="Box">\nlock() {}\n</insert>\n<create file="new.py">\nx = 1\n</create>\n<delete file="mixed.txt"/>\n',
    '<edit file="mixed.txt"><search>second\nthird</search><replacement>2\n3</replacement></edit>',
)
PLAN = MetaPlan(task_summary="x", parts=(Part(id="p1", description="Do.", affected_files=("a.py",)),))
CONFIG = """\
[models]
base_url = "http://127.0.0.1:11434"
coding = "coder:3b"
reasoning = "thinker:4b"
overrides = {implement = "other:7b"}
[models.timeouts]
connect = 5.0
[budget]
context_window = 8192
reserved_tokens = 2048
[testing]
test_command = "pytest -q"
[edit]
protected = ["*.lock"]
"""
OLLAMA = (
    '{"message": {"content": "yes"}, "done": false, "logprobs": [{"token": "yes", "logprob": -0.1}]}\n'
    '{"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 9}\n'
)
OPENAI = (
    'data: {"choices": [{"delta": {"content": "yes"}, "finish_reason": null}]}\n\n'
    'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}}\n\ndata: [DONE]\n\n'
)
ERROR = json.dumps({"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 4096}})
WORDS = (
    "", "\0", "\r\n", "\n", "\x1b[31m", "\u2028", "\ufeff", "\ud800", "{", "}", "[" * 3000, '"', "'''", "```", "<edit file='../x'>", "</edit>",
    '<create file=".git/config">', "null", "1e999", "9" * 5000, "[models]\n", "inf", "data: ", "def ", "=>", "`", "# coding: utf-7\n", "...",
)  # fmt: skip
TARGETS = (
    TargetFile(path="a.py"),
    TargetFile(path="src/box.ts"),
    TargetFile(path="new.py", role="create"),
    TargetFile(path="mixed.txt", role="delete"),
)


@st.composite
def mangled(draw: st.DrawFn, *seeds: str) -> str:
    """One of the texts with pieces cut out, copied elsewhere, or replaced by words of some grammar."""
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start, to = draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from((0, 1, 4, 30, len(text)))))
        put = draw(st.one_of(st.sampled_from(WORDS), st.text(max_size=4)))
        kept = text[:start] + put + text[end:]
        text = draw(st.sampled_from((kept, text[:to] + text[start:end] + text[to:])))
    return text


def read_answers(text: str, _: Path) -> None:
    for prompt in PROMPTS:
        prompt.parse(text)


def read_edits(text: str, _: Path) -> None:
    edits = parse_edits(text)
    if not isinstance(edits, tuple):
        return
    before = dict(FILES)
    shown = package(*(shown_file(path, held) for path, held in FILES.items()))
    applied = apply_edits(edits, FILES, shown, EditRules(targets=TARGETS))
    assert before == FILES
    assert applied.result.success or not applied.texts, "some edits of a refused answer were applied"
    assert set(applied.texts) <= {target.path for target in TARGETS}


def read_plan(text: str, _: Path) -> None:
    plan = load_plan(text, "plan.json")
    assert load_plan(plan.model_dump_json(), "plan.json") == plan


def read_settings(text: str, folder: Path) -> None:
    file = folder / "config.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    settings = load_settings(file, Overrides())
    if "models" in settings.data and not settings.models.allow_remote:
        host = httpx.URL(settings.models.base_url).host
        assert host in {"localhost", "::1"} or host.startswith(("127.", "::ffff:")) or ".localhost" in host


def read_source(name: str) -> Callable[[str, Path], None]:
    def read(text: str, folder: Path) -> None:
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        facts = extract(folder, name, max_bytes=200_000)
        assert "a bug" not in repr(facts)

    return read


def ask(kind: type[OllamaTransport] | type[OpenAiTransport]) -> Callable[[str, Path], None]:
    def read(text: str, _: Path) -> None:
        content = text.encode("utf-8", "surrogatepass")
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
        url = "http://127.0.0.1:11434"
        with httpx.Client(base_url=url, transport=transport) as client:
            server = cast("OllamaTransport", kind(models_config(url), client))
            server.send(chat_request(wants_logprobs=True))

    return read


def read_recording(text: str, _: Path) -> None:
    load_calls(text, source="r")


READERS = {
    "answers": (read_answers, (*EDITS, *(prompt.example for prompt in PROMPTS))),
    "edits": (read_edits, EDITS),
    "plans": (read_plan, (PLAN.model_dump_json(),)),
    "configuration": (read_settings, (CONFIG,)),
    "Python": (read_source("a.py"), (PYTHON,)),
    "TypeScript": (read_source("a.ts"), (SCRIPT,)),
    "Ollama": (ask(OllamaTransport), (OLLAMA, ERROR)),
    "OpenAI": (ask(OpenAiTransport), (OPENAI, ERROR)),
    "refusals": (lambda text, _: read_refusal(text), (ERROR,)),
    "recordings": (read_recording, ("\n".join(LINES[:2]),)),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_mangled_is_read_or_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    read, seeds = READERS[name]
    folder = tmp_path_factory.mktemp("fuzzed")

    @given(text=mangled(*seeds))
    def attempt(text: str) -> None:
        with contextlib.suppress(CraError):
            read(text, folder)

    attempt()
