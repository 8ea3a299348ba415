"""Schemas whose answers end, and guards that end those which do not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, Note, model_client, models_config
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.model_server import connect
from clean_room_agent.llm.answer_rules import (
    BRIEF_CHARS,
    COPIED,
    JUDGED_CHARS,
    LEAST_CHARS,
    MARK,
    STALE_CHARS,
    TIMES,
    CopyGuard,
    JsonSchema,
    RepetitionGuard,
    brief,
    describe_repetition,
    longest,
    mentions,
    opening_of,
)
from clean_room_agent.llm.model_config import ModelsConfig

ENTRY: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^s[0-9]$"},
        "role": {"enum": ["modify", "create"]},
        "text": {"type": "string", "maxLength": 600},
    },
}
STEPS: JsonSchema = {
    "$defs": {"Entry": ENTRY},
    "type": "object",
    "properties": {"steps": {"type": "array", "maxItems": 12, "items": {"$ref": "#/$defs/Entry"}}},
}
RECORDING = Path(__file__).parents[2] / "src/clean_room_agent/app/demo_assets/recording.jsonl"
SOURCES = sorted(Path(__file__).parents[2].glob("src/**/*.py"))
RUNAWAY = '{"name": "red", "shades": [' + "1, 2, " * 2000
EXAMPLE = '{"name": "the brown of a quokka in the evening sun of its first summer", "shades": [1, 2]}'
PAINTED = replace(COLOUR, example=EXAMPLE, template=f"{COLOUR.template}\nExample: {{{{ example }}}}")
COPY = EXAMPLE.replace('": "', '":\n  "') + " and so on" * 500


def steps(schema: JsonSchema) -> int:
    return int(schema["properties"]["steps"]["maxItems"])


@pytest.mark.parametrize(("tokens", "entries"), [(1200, 8), (500, 4), (300, 2), (150, 1), (10, 1)])
def test_a_brief_answer_has_as_many_entries_as_end_in_time(tokens: int, entries: int) -> None:
    shortened = brief(STEPS, tokens)
    assert steps(shortened) == entries
    assert shortened["$defs"]["Entry"]["properties"]["text"]["maxLength"] == BRIEF_CHARS
    assert steps(STEPS) == 12


def test_no_value_is_longer_than_the_longest() -> None:
    entry = {"id": "s1", "role": "modify", "text": "x" * 600}
    value = json.dumps({"steps": [entry] * 12})
    assert len(value) <= longest(STEPS, STEPS) < len(value) * 1.2


def fed(text: str, size: int, shown: str = "") -> int:
    """How much of the text a guard lets pass that gets pieces of that size."""
    guard = RepetitionGuard(shown)
    for start in range(0, len(text), size):
        if guard.feed(text[start : start + size]):
            return start + size
    return len(text)


@pytest.mark.parametrize(
    "unit",
    [
        "t",
        "\n",
        '"t", ',
        "x = x + 1\n",
        "A sentence that comes again and again, longer. ",
        "".join(
            f'<{kind} file="a.py">\n    def read{"_it" * 40}(self):\n</{kind}>\n'
            for kind in ("create", "delete")
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 300])
def test_a_text_that_repeats_itself_is_closed_soon(unit: str, size: int) -> None:
    text = "Once. " + unit * 5000
    least = max(LEAST_CHARS, TIMES * len(unit))
    assert least <= fed(text, size) < least + LEAST_CHARS + size
    assert text[-20:] not in describe_repetition(text)


def test_a_text_that_counts_on_is_closed() -> None:
    definition = "def test_a_table_of_nothing():\n    assert read(time({n}h)) == timedelta(seconds=1)\n\n"
    text = "# Tests\n" + "".join(definition.replace("{n}", str(n)) for n in range(400))
    assert JUDGED_CHARS <= fed(text, 5) < JUDGED_CHARS * 1.5


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 60,
        "".join(f"    self.assertEqual(f({n}), {n * n})\n" for n in range(400)),
        "".join(f"    ({n}, 0, 0, 0, 0, 0, 0, 0),\n" for n in range(400)),
        "# " + "-" * 400 + "\n",
        "".join(f'"s{n}", ' for n in range(900)),
    ],
)
def test_what_code_repeats_passes(text: str) -> None:
    assert fed(text, 5) == len(text)


def test_no_source_of_this_repository_is_closed() -> None:
    assert SOURCES
    for path in SOURCES[::8]:
        text = path.read_text(encoding="utf-8")
        assert fed(text, 16) == len(text), path


def lines(count: int, word: str = "value") -> str:
    """As many different lines of code."""
    return "".join(f"    {word}_{n} = read_{word}(source[{n}], at={n * n})\n" for n in range(count))


FUNCTION = "def parse(source):\n" + lines(35)


@pytest.mark.parametrize(
    "between", ["", "</replacement>\n</edit>\n<edit file='a.py' symbol='parse'>\n<replacement>\n"]
)
@pytest.mark.parametrize("size", [1, 40, 5000])
def test_a_function_that_is_written_again_and_again_is_closed(between: str, size: int) -> None:
    text = (FUNCTION + between) * 40
    assert 3 * len(FUNCTION) < fed(text, size) < 5 * len(FUNCTION) + 5000


def test_a_text_that_copies_what_it_is_not_about_is_closed() -> None:
    shown = "# Context\n\n" + lines(400, "test") + FUNCTION
    text = "<edit file='a.py'>\n<search>\n" + shown
    assert fed(text, 7, shown) < STALE_CHARS * 1.2
    assert fed(text.replace("    test_", "test_"), 7, shown) < STALE_CHARS * 1.2
    assert fed(text, 7) == len(text)


def test_what_an_answer_is_about_may_stand_in_it_twice() -> None:
    body = "class Parser:\n" + lines(300)
    text = f"<edit file='a.py'>\n<search>\n{body}</search>\n<replacement>\n{body}</replacement>\n</edit>\n"
    assert fed(text, 9, shown=lines(300, "other")) == len(text)


def test_a_text_is_judged_in_linear_time_and_bounded_memory() -> None:
    guard = RepetitionGuard("x" * 3_000_000)
    for n in range(300):
        assert not guard.feed("".join(f"{n * 1000 + m:07d}" for m in range(1000)))
    assert len(guard._lines._line) < 10_000


def test_the_recorded_answers_of_the_demo_pass_whatever_was_shown() -> None:
    recorded = [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines()[1:]]
    assert any(len(call["response"]) > 1000 for call in recorded)
    for call in recorded:
        assert fed(call["response"], 3, shown=call["prompt"]) == len(call["response"])


def answer(call: ChatCall) -> Answer:
    """Without end at first, and as wanted once the fault was shown."""
    return Answer(text=COLOUR.example if "An earlier answer" in call.prompt else RUNAWAY)


@pytest.fixture(params=["ollama", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[OllamaServer, ModelsConfig]]:
    kind = OllamaServer if request.param == "ollama" else OpenAiServer
    with kind(answer) as started:
        yield started, models_config(started.base_url, provider=request.param)


def test_a_stream_that_repeats_itself_is_closed_and_asked_again_warm(
    server: tuple[OllamaServer, ModelsConfig],
) -> None:
    _, config = server
    sink = MemorySink()
    client = model_client(connect(config), sink, config=config)
    reply = client.ask(COLOUR, Note(text="the sky"), pass_id="t:p", max_answer_tokens=2500)
    first, second = sink.asked()
    assert (first.ending.finish, second.ending.finish) == ("repeated", "stop")
    assert LEAST_CHARS <= len(first.answer.response) < len(RUNAWAY) / 4
    assert reply.value is not None
    assert '"temperature":0.0' in first.request.request_body
    assert '"temperature":0.6' in second.request.request_body
    assert '"seed":2' in second.request.request_body
    assert "repeated itself" in second.request.prompt
    assert sink.readings[0][1:] == ("unreadable", describe_repetition(first.answer.response))


@given(st.lists(st.text(alphabet=' \n{"quoka', max_size=9)), st.sampled_from(["", opening_of(EXAMPLE), "qu"]))
def test_a_copy_is_known_however_it_comes_in_pieces(pieces: list[str], opening: str) -> None:
    guard = CopyGuard(opening)
    for piece in pieces:
        guard.feed(piece)
    whole = "".join("".join(pieces).split())
    assert guard.tripped is (bool(opening) and whole.startswith(opening))


@given(st.lists(st.text(alphabet="quokKa ", max_size=9)))
def test_free_text_copies_wherever_it_speaks_of_the_zoo(pieces: list[str]) -> None:
    guard = CopyGuard(MARK)
    for piece in [*pieces, "", *'<edit file="a.py" symbol="Quo']:
        guard.feed(piece)
    assert guard.tripped is mentions("".join(pieces))
    for piece in ("kkaPen", ".open"):
        guard.feed(piece)
    assert guard.tripped


def shown_example(call: ChatCall) -> Answer:
    return Answer(text='{"name": "blue"}' if "An earlier answer" in call.prompt else COPY)


@pytest.fixture(params=["ollama", "openai"])
def config(request: pytest.FixtureRequest) -> Iterator[ModelsConfig]:
    kind = OllamaServer if request.param == "ollama" else OpenAiServer
    with kind(shown_example) as started:
        yield models_config(started.base_url, provider=request.param)


def test_a_copy_is_closed_and_asked_again(config: ModelsConfig) -> None:
    sink = MemorySink()
    client = model_client(connect(config), sink, config=config)
    reply = client.ask(PAINTED, Note(text="the sky"), pass_id="t:p", max_answer_tokens=2500)
    first, second = sink.asked()
    assert (first.ending.finish, second.ending.finish) == ("copied", "stop")
    assert len(first.answer.response) < len(EXAMPLE) + 20
    assert sink.readings[0][1:] == ("unreadable", COPIED)
    assert reply.value is not None


def test_where_the_task_is_about_quokkas_no_copy_is_suspected(config: ModelsConfig) -> None:
    sink = MemorySink()
    client = model_client(connect(config), sink, config=config)
    client.ask(PAINTED, Note(text="a quokka"), pass_id="t:p", max_answer_tokens=2500, repair=False)
    assert sink.asked()[0].ending.finish != "copied"
