"""A pair's prompt is what a run sends, its answer is right, and nothing of the commit's own future is in it."""

from pathlib import Path

import pytest
from msgspec import structs
from testing import repositories
from testing.histories import KEEP_CENTS, KEY, make_history, mined, plain_making
from testing.runs.solving import PROBE, project_at
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.training.pairs import STAGES
from clean_room_agent.training.shards import Shard, cut_units, make_shard, read_shard


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("history") / "till"
    make_history(top)
    return top


@pytest.fixture(scope="module")
def made(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the history's one unit."""
    commits, _ = mined(history / ".git")
    (unit,) = cut_units("till", history / ".git", commits)
    return make_shard(tmp_path_factory.mktemp("shard"), unit, plain_making())


@pytest.fixture(scope="module")
def shard(made: Path) -> Shard:
    return read_shard(made)


def test_a_run_at_the_parent_sends_the_same_bytes(history: Path, shard: Shard, tmp_path: Path) -> None:
    task = next(row["task_id"] for row in shard.rows if KEEP_CENTS in row["prompt"])
    pairs = {(row["system"], row["prompt"]): row for row in shard.rows if row["task_id"] == task}
    top = tmp_path / "live" / "till"
    top.parent.mkdir()
    repositories.git(tmp_path, "clone", "-q", str(history), str(top))
    parent = next(row["commit"] for row in shard.rows if row["task_id"] == task)
    repositories.git(top, "checkout", "-q", "-B", "main", parent)
    sent: dict[tuple[str, str], str] = {}

    def answer(call: ChatCall) -> str:
        if call.prompt.startswith(PROBE):
            return "x"
        known = pairs.get((call.system, call.prompt))
        sent[call.system, call.prompt] = call.title
        return known["answer"] if known else "no"

    project = project_at(top, {}, {}, task=KEEP_CENTS)
    with OllamaServer(answer) as server:
        told = project.solve(server, judgments={"route": "each"}, solve={"max_attempts": 1})
    assert told.recorded.calls, told.err
    titles = {prompt.title: prompt.name for prompt in PROMPTS}
    unknown = [titles[title] for key, title in sent.items() if key not in pairs and titles[title] in STAGES]
    # A file that the changed one imports, of which nobody knows whether it must be read, makes no pair.
    assert set(unknown) <= {"scope_judgment"}
    live = {key for key, row in pairs.items() if row["found_by"] in {"", "ranking"}}
    assert live <= set(sent)
    assert {pairs[key]["stage"] for key in live} >= {"task_analysis", "meta_plan", "part_plan", "implement"}


def test_every_answer_reads(shard: Shard) -> None:
    prompts = {prompt.name: prompt for prompt in PROMPTS}
    read = [prompts[row["stage"]].parse(row["answer"]) for row in shard.rows]
    assert shard.rows
    assert not [value for value in read if isinstance(value, ParseFault)]


def test_a_secret_in_the_history_reaches_no_pair(shard: Shard) -> None:
    assert shard.counts["pair with a secret"] > 0
    assert not [row for row in shard.rows if KEY in "".join(row[name] for name in ("prompt", "answer"))]


def test_verdicts_are_those_of_the_commit(shard: Shard) -> None:
    about = {
        (row["item"], row["answer"])
        for row in shard.rows
        if row["stage"] == "scope_judgment" and KEEP_CENTS in row["prompt"]
    }
    assert ("till/money.py", "no") not in about
    assert not [item for item, answer in about if answer == "yes" and item == "shop/names.py"]


def test_edits_make_the_commits_file(history: Path, shard: Shard) -> None:
    rows = [row for row in shard.rows if row["stage"] == "implement" and KEEP_CENTS in row["prompt"]]
    assert len(rows) == 1
    assert "divmod(cents, people)" in rows[0]["answer"]
    assert "divmod" not in rows[0]["prompt"]


def test_the_same_commits_give_the_same_file_and_it_is_made_once(
    history: Path, made: Path, tmp_path: Path
) -> None:
    commits, _ = mined(history / ".git")
    (unit,) = cut_units("till", history / ".git", commits)
    first = make_shard(tmp_path / "a", unit, plain_making())
    assert first.name == made.name
    assert first.read_bytes() == made.read_bytes()
    first.write_bytes(b"made already")
    assert make_shard(tmp_path / "a", unit, plain_making()).read_bytes() == b"made already"


def test_noes_beyond_the_rankings_come_from_neighbours_and_from_anywhere(shard: Shard) -> None:
    drawn = [row for row in shard.rows if row["found_by"] in {"neighbour", "random"}]
    assert {row["answer"] for row in drawn} <= {"no", "skip"}
    ranked = [row for row in shard.rows if row["found_by"] == "ranking" and row["answer"] in {"no", "skip"}]
    assert len(drawn) <= len(ranked)
    folders = {"till/"}
    near = [row for row in drawn if row["found_by"] == "neighbour" and KEEP_CENTS in row["prompt"]]
    assert all(row["item"].startswith(tuple(folders)) for row in near)


def test_a_commit_that_names_its_file_gives_analysis_alone(tmp_path: Path) -> None:
    top = tmp_path / "till"
    make_history(top)
    repositories.commit(
        top,
        {"shop/names.py": "def title(name):\n    return name.upper()\n"},
        "Write titles in capitals in names.py of the shop",
    )
    commits, _ = mined(top / ".git")
    (unit,) = cut_units("till", top / ".git", [one for one in commits if one.names_gold])
    rows = read_shard(make_shard(tmp_path, unit, plain_making())).rows
    assert {row["stage"] for row in rows} == {"task_analysis"}


def test_code_under_a_licence_that_is_not_on_the_list_is_not_read(history: Path, tmp_path: Path) -> None:
    commits, _ = mined(history / ".git")
    (unit,) = cut_units("till", history / ".git", commits)
    none = structs.replace(plain_making(), licences=("ISC",))
    shard = read_shard(make_shard(tmp_path, unit, none))
    assert (shard.rows, shard.counts) == ([], {"licence: MIT": len(commits)})


def test_a_commit_that_also_ends_its_file_otherwise_gives_its_edit(tmp_path: Path) -> None:
    """The format keeps a file's end as it is: whether a last line break comes with the change is no part of the edit."""
    top = tmp_path / "till"
    make_history(top)
    money = (top / "till/money.py").read_text(encoding="utf-8")
    repositories.commit(top, {"till/money.py": money.rstrip("\n")}, "No line break at the end")
    ended = money.replace("in cents.", "in whole cents.", 1)
    repositories.commit(top, {"till/money.py": ended}, "Say that sums of shares are whole cents now")
    commits, _ = mined(top / ".git")
    (unit,) = cut_units("till", top / ".git", [one for one in commits if one.task.startswith("Say that")])
    rows = read_shard(make_shard(tmp_path, unit, plain_making())).rows
    (edit,) = [row["answer"] for row in rows if row["stage"] == "implement"]
    assert "in whole cents." in edit
