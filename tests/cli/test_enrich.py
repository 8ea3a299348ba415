"""`cra enrich`: what is asked, what is kept, what a second run asks, and what comes into the index."""

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testing.forked import Forked
from testing.repositories import copy_repository
from testing.runs.solving import MONEY, TILL, Project, Told, make_project, project_at
from testing.servers.describing import DescribingModel
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import CALLS, READINGS
from clean_room_agent.db.raw.indexing import ENRICHMENT_OUTPUTS, EnrichmentRow
from clean_room_agent.enrichment.prompt import ENRICHMENT
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.workspace import Workspace, hold

MONEY_PATH = "till/money.py"
TESTS_PATH = "tests/test_money.py"
RECEIPT_PATH = "till/receipt.py"
ORDER = [MONEY_PATH, TESTS_PATH, RECEIPT_PATH]
"""The most imported first, then by path; the empty files are not asked about."""
ONE_AT_A_TIME = {"models": {"parallel": 1}}
CLOSED = "http://127.0.0.1:9"


@pytest.fixture
def till(indexed: Project) -> Project:
    return indexed


def enrich(
    till: Project, model: DescribingModel, *flags: str, server: dict[str, Any] | None = None, **tables: Any
) -> Told:
    """The command against a server of its own, one request at a time unless `tables` say otherwise."""
    with OllamaServer(model, **(server or {})) as running:
        till.configure(running.base_url, **{**ONE_AT_A_TIME, **tables})
        return till.cra("enrich", *flags)


def asked(till: Project) -> list[str]:
    """The files that a run asks about."""
    model = DescribingModel()
    enrich(till, model)
    return model.asked


@pytest.fixture(scope="module")
def described_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository all of whose files are described, and nothing of it in the index."""
    till = make_project(tmp_path_factory.mktemp("described"))
    assert enrich(till, DescribingModel()).code == 0
    return till.top


@pytest.fixture(scope="module")
def promoted_once(described_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the descriptions in the index."""
    top = copy_repository(described_once, tmp_path_factory.mktemp("promoted") / "till")
    assert enrich(project_at(top, TILL), DescribingModel(), "--promote").code == 0
    return top


@pytest.fixture
def described(till: Project, described_once: Path) -> Project:
    shutil.rmtree(till.top)
    copy_repository(described_once, till.top)
    return till


@pytest.fixture
def promoted(till: Project, promoted_once: Path) -> Project:
    shutil.rmtree(till.top)
    copy_repository(promoted_once, till.top)
    return till


def outputs(till: Project) -> tuple[EnrichmentRow, ...]:
    with contextlib.closing(connect_file("raw", Workspace(repo=till.top).raw, read_only=True)) as conn:
        return ENRICHMENT_OUTPUTS.select(conn, "ORDER BY path, id")


@contextlib.contextmanager
def index(till: Project) -> Iterator[KnowledgeBase]:
    path = Workspace(repo=till.top).curated
    with contextlib.closing(connect_file("curated", path, read_only=True)) as conn:
        yield KnowledgeBase(conn)


def domain_of_money(till: Project) -> list[str]:
    with index(till) as kb:
        return [file.path for file in kb.search_files_by_metadata(domain="money")]


TAKEN_SECONDS = 0.3
"""In which the main thread takes a signal, also on a busy machine; a worker goes on with the answer at once."""


def press(_: ChatCall, right: str, number: signal.Signals = signal.SIGINT) -> str:
    """Ctrl-C while the model writes, or another signal; it has been taken when the answer comes."""
    signal.pthread_kill(threading.main_thread().ident or 0, number)
    time.sleep(TAKEN_SECONDS)
    return right


def test_each_file_with_symbols_is_described_the_most_imported_first(till: Project) -> None:
    model = DescribingModel()
    told = enrich(till, model)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("3 files described by thinker:4b; 4 calls, ")
    assert model.asked == ORDER
    rows = {row.path: row for row in outputs(till)}
    assert sorted(rows) == sorted(ORDER)
    money = rows[MONEY_PATH]
    assert (money.purpose, money.domain, money.concepts) == (
        "Do what till/money.py does.",
        "money",
        ("cents", "sums"),
    )
    assert (money.model, money.promoted, money.public_api_surface) == ("thinker:4b", False, ("split",))
    assert money.raw_prompt == model.prompts[0]
    assert told.traces == {}
    assert told.sessions == ()


def test_every_call_and_its_reading_are_in_the_record(described: Project) -> None:
    with contextlib.closing(connect_file("raw", Workspace(repo=described.top).raw, read_only=True)) as conn:
        calls = CALLS.select(conn, "WHERE call_type = 'enrichment' ORDER BY id")
        readings = READINGS.select(conn, "ORDER BY id")
    assert [call.site.item for call in calls] == ORDER
    assert {call.model.role for call in calls} == {"reasoning"}
    assert {reading.reading for reading in readings} == {"parsed"}
    assert {reading.call_id for reading in readings} == {call.id for call in calls}


def test_the_prompt_shows_what_the_index_knows_and_the_whole_file(till: Project) -> None:
    model = DescribingModel()
    enrich(till, model, "--limit", "1")
    (prompt,) = model.prompts
    assert f"<text>\n{MONEY}</text>" in prompt
    assert "## Files that import it\n- tests/test_money.py\n- till/receipt.py\n" in prompt
    assert "## Newest changes to it\n- Begin\n" in prompt
    assert "def split(cents, people):\n" in prompt.split("## Its text")[0]


def test_a_second_run_asks_nothing(described: Project) -> None:
    again = DescribingModel()
    told = enrich(described, again)
    assert (told.code, again.asked) == (0, [])
    assert told.out == "3 of 3 files were described already\n"


def test_nothing_is_asked_so_no_server_is_needed(described: Project) -> None:
    described.configure(CLOSED)
    assert described.cra("enrich", "--promote").code == 0


def test_one_changed_file_asks_about_one(described: Project) -> None:
    (described.top / RECEIPT_PATH).write_text("def receipt():\n    return []\n")
    assert asked(described) == [RECEIPT_PATH]


def test_a_content_that_was_described_before_is_not_asked_about_again(described: Project) -> None:
    (described.top / MONEY_PATH).write_text("def split():\n    return []\n")
    enrich(described, DescribingModel())
    (described.top / MONEY_PATH).write_text(MONEY)
    assert asked(described) == []


def test_a_limit_leaves_the_rest_for_another_time(till: Project) -> None:
    first, second = DescribingModel(), DescribingModel()
    told = enrich(till, first, "--limit", "2")
    assert told.code == 0
    assert "1 file left for another time\n" in told.out
    enrich(till, second)
    assert (first.asked, second.asked) == (ORDER[:2], ORDER[2:])


def test_all_takes_other_text_files_after_the_others(till: Project) -> None:
    (till.top / "README.md").write_text("# Till\n")
    (till.top / ".env").write_text("TOKEN=1\n")
    model = DescribingModel()
    enrich(till, model, "--all")
    assert model.asked == [*ORDER, "README.md"]


def test_several_requests_are_under_way_where_the_configuration_says_so(till: Project) -> None:
    slow = {path: (lambda _, right: Answer(text=right, peers=3)) for path in ORDER}
    model = DescribingModel(slow)
    with OllamaServer(model) as server:
        till.configure(server.base_url, models={"parallel": 3})
        assert till.cra("enrich").code == 0
        assert server.peak == 3
    assert sorted(model.asked) == sorted(ORDER)


def test_killed_in_the_middle_it_goes_on_where_it_stopped(till: Project) -> None:
    child: list[Forked] = []

    def kill(_: ChatCall, right: str) -> str:
        child[0].send_signal(signal.SIGKILL)
        return right

    with OllamaServer(DescribingModel({TESTS_PATH: kill})) as server:
        till.configure(server.base_url, **ONE_AT_A_TIME)
        with Forked(till, "enrich") as process:
            child.append(process)
            assert process.wait() == -signal.SIGKILL
    assert [row.path for row in outputs(till)] == [MONEY_PATH]
    again = DescribingModel()
    assert enrich(till, again).code == 0
    assert again.asked == ORDER[1:]


def test_ctrl_c_keeps_the_answer_that_was_under_way(till: Project) -> None:
    told = enrich(till, DescribingModel({MONEY_PATH: press}))
    assert (told.code, told.out, told.traces) == (130, "", {})
    assert "error: interrupted: 0 of 3 files described" in told.err
    assert asked(till) == ORDER[1:]


def test_too_many_unreadable_answers_in_a_row_end_it_with_the_cause(till: Project) -> None:
    cut = Answer(text='{"purpose": "t t t t', done_reason="length")
    spoiled = (TESTS_PATH, *(f"till/{name}.py" for name in "abcde"))
    for path in spoiled[1:]:
        (till.top / path).write_text("def a():\n    pass\n")
    model = DescribingModel(dict.fromkeys(spoiled, cut))
    told = enrich(till, model, "--promote")
    assert told.code == 4
    assert model.asked == [MONEY_PATH, *(path for path in spoiled[:5] for _ in range(2))]
    lines = told.out.splitlines()
    assert lines[0].startswith("1 file described by thinker:4b; ")
    assert lines[1:5] == [
        "gave up: too many files in a row got no description; what was described is kept",
        "  10 of 11 answers to enrichment ran to their limit",
        "  this model is too weak to describe files at this window; try a larger one: enrichment in [models.overrides]",
        "2 files left for another time",
    ]
    assert "1 promoted, 0 were in the index already" in lines
    assert domain_of_money(till) == [MONEY_PATH]


def test_an_answer_that_cannot_be_read_is_named_and_the_others_go_on(till: Project) -> None:
    model = DescribingModel({MONEY_PATH: "I cannot say."})
    told = enrich(till, model)
    assert told.code == 4
    assert "1 without a description:\n  till/money.py: the answer cannot be read: " in told.out
    assert told.err.startswith("till/money.py: the answer cannot be read: ")
    assert len(model.asked) == 4, "one repair"
    assert [row.path for row in outputs(till)] == [TESTS_PATH, RECEIPT_PATH]
    again = DescribingModel()
    assert enrich(till, again).code == 0
    assert again.asked == [MONEY_PATH]


def test_a_server_that_fails_at_a_file_is_said_and_the_others_go_on(till: Project) -> None:
    failed = Answer(status=500, error="runner stopped")
    told = enrich(till, DescribingModel({MONEY_PATH: failed}))
    assert told.code == 4
    assert "runner stopped" in told.err
    assert [row.path for row in outputs(till)] == [TESTS_PATH, RECEIPT_PATH]


def test_a_server_that_goes_away_ends_the_run_and_what_is_described_is_kept(till: Project) -> None:
    gone = Answer(close="before_headers")
    told = enrich(till, DescribingModel({TESTS_PATH: gone, RECEIPT_PATH: gone}))
    assert (told.code, told.out) == (3, "")
    assert "1 of 3 files described, which are kept" in told.err
    assert asked(till) == ORDER[1:]


def test_a_file_that_changes_meanwhile_is_left_to_the_next_run(till: Project) -> None:
    def change(_: ChatCall, right: str) -> str:
        (till.top / RECEIPT_PATH).write_text("def receipt():\n    return []\n")
        return right

    told = enrich(till, DescribingModel({MONEY_PATH: change}))
    assert told.code == 4
    assert "  till/receipt.py: it changed meanwhile; the next run asks again\n" in told.out
    assert len(outputs(till)) == 2


def test_promoted_descriptions_can_be_searched(described: Project) -> None:
    assert domain_of_money(described) == []
    told = enrich(described, DescribingModel(), "--promote")
    assert told.code == 0
    assert "3 promoted, 0 were in the index already\n" in told.out
    assert domain_of_money(described) == sorted(ORDER)
    with index(described) as kb:
        overview = kb.get_repo_overview()
        assert overview is not None
        assert overview.described
        assert [file.path for file in kb.search_files_by_metadata(concept="cents", module="tests")] == [
            TESTS_PATH
        ]
    assert all(row.promoted for row in outputs(described))


def test_what_changed_since_is_not_promoted_and_loses_its_old_description(promoted: Project) -> None:
    (promoted.top / MONEY_PATH).write_text("def split():\n    return []\n")
    told = enrich(promoted, DescribingModel(), "--promote", "--limit", "0")
    assert told.code == 0
    assert "0 promoted, 2 were in the index already\n" in told.out
    assert "1 not promoted, because changed since described:\n  till/money.py\n" in told.out
    assert domain_of_money(promoted) == [TESTS_PATH, RECEIPT_PATH]
    asked = enrich(promoted, DescribingModel(), "--promote")
    assert "1 promoted, 2 were in the index already\n" in asked.out
    assert domain_of_money(promoted) == sorted(ORDER)


def test_the_index_that_was_thrown_away_is_promoted_into_again(promoted: Project) -> None:
    Workspace(repo=promoted.top).curated.unlink()
    model = DescribingModel()
    told = enrich(promoted, model, "--promote")
    assert "3 promoted, 0 were in the index already\n" in told.out
    assert model.asked == []


def test_json_answers_with_one_object(till: Project) -> None:
    told = enrich(till, DescribingModel({MONEY_PATH: "no"}), "--promote", "--json")
    answer = json.loads(told.out)
    assert told.code == 4
    assert answer.pop("duration_ms") >= 0
    assert answer.pop("tokens") > 0
    assert len(answer.pop("task_id")) == 36
    reason = answer["skipped"][0].pop("reason")
    assert reason.startswith("the answer cannot be read: ")
    assert answer.pop("ending")["lines"] == ["2 of 4 answers to enrichment could not be read"]
    assert answer == {
        "model": "thinker:4b",
        "files": 3,
        "already_described": 0,
        "described": 2,
        "skipped": [{"path": MONEY_PATH}],
        "gave_up": False,
        "left": 0,
        "promotion": {"promoted": 2, "unchanged": 0, "outdated": []},
        "calls": 5,
    }


def test_control_characters_of_an_answer_do_not_reach_the_terminal(till: Project) -> None:
    empty = {**dict.fromkeys(json.loads(ENRICHMENT.example), ""), "concepts": [], "public_api_surface": []}
    answer = json.dumps({**empty, "purpose": "Steer \x1b[2J the terminal."})
    told = enrich(till, DescribingModel({MONEY_PATH: answer}), "-v", "--limit", "1")
    assert told.err == "till/money.py: Steer \\x1b[2J the terminal.\n"


def test_two_at_once_do_not_ask_the_same(till: Project) -> None:
    workspace = Workspace(repo=till.top)
    workspace.create()
    with hold(workspace.folder / "enrich.lock"):
        told = enrich(till, DescribingModel())
    assert told.code == 1
    assert f"process {os.getpid()} holds the enrichment" in told.err
