"""`cra bootstrap`: histories in, a dataset out, the same whoever makes its parts."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from testing import repositories
from testing.forked import program
from testing.histories import KEY, LICENCE, make_history
from testing.runs.solving import Project, project_at

from clean_room_agent.app.package_extras import EXTRAS
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS
from clean_room_agent.training.train_plan import plan_of

BUDGET = ("--context-window", "16384", "--reserved-tokens", "4096", "--unit-commits", "2")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("mined") / "till"
    make_history(top)
    return top


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project_at(repositories.make_repository(tmp_path / "home-repo", {"a.py": "A = 1\n"}), {}, {})


def digest(folder: Path) -> str:
    """Of all rows."""
    files = sorted(folder.rglob("*.jsonl"))
    assert files
    return hashlib.sha256(
        b"".join(str(path.relative_to(folder)).encode() + path.read_bytes() for path in files)
    ).hexdigest()


@pytest.fixture(scope="module")
def made(history: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, Any]]:
    """Where the dataset of the history was made, in one process, and what was said."""
    top = repositories.make_repository(tmp_path_factory.mktemp("made") / "home-repo", {"a.py": "A = 1\n"})
    home = project_at(top, {}, {})
    code, out, err = home.run_here(
        "bootstrap", str(history), "-o", str(home.home / "data"), "--jobs", "1", "--json", *BUDGET
    )
    assert (code, err.replace("no window is configured", "")) == (0, ""), err
    return home, json.loads(out)


def test_a_history_becomes_a_dataset_with_its_rows_in_the_record(
    made: tuple[Project, dict[str, Any]],
) -> None:
    home, told = made
    assert told["commits_seen"] == 8
    assert told["left_out"]["commit: bump, release or formatting"] == 2
    assert told["left_out"]["pair with a secret"] > 0
    assert told["pairs"] == sum(entry["rows"] for entry in told["files"])
    texts = [path.read_text() for path in Path(told["dataset"]).rglob("*") if path.is_file()]
    assert not any(KEY in text for text in texts)
    ids = tuple(told["dataset_ids"].values())
    with get_connection("raw", repo_path=home.top, read_only=True) as conn:
        datasets = [row for row in TRAINING_DATASETS.select(conn, "ORDER BY id") if row.id in ids]
        of_these = {row.training_plan_id for row in datasets}
        plans = [plan for plan in TRAINING_PLANS.select(conn, "ORDER BY id") if plan.id in of_these]
    assert {plan.source for plan in plans} == {"synthetic"}
    assert {row.stage_name for row in datasets} == {entry["stage"] for entry in told["files"]}
    assert all(row.example_count == row.positive_count + row.negative_count for row in datasets)
    assert told["dataset_ids"] == {row.stage_name: row.id for row in datasets}
    ranks = {plan.target_stage: plan_of(plan).hyperparameters.rank for plan in plans}
    assert ranks["scope_judgment"] == 8
    assert ranks["task_analysis"] == 16


def test_two_processes_and_two_shards_give_the_same_rows_as_one(
    history: Path, home: Project, made: tuple[Project, dict[str, Any]]
) -> None:
    def again(name: str, *flags: str) -> tuple[int, str, str]:
        place = ("--work", str(home.home / f"work-{name}"), "-o", str(home.home / name))
        return home.run_here("bootstrap", str(history), *place, *BUDGET, *flags)

    with patch.dict(sys.modules, program()):
        code, out, _ = again("parts", "--shard", "1/2", "--jobs", "2")
    assert (code, "units are made" in out) == (0, True)
    assert not (home.home / "parts").exists()
    assert again("parts", "--shard", "2/2", "--jobs", "1")[0] == 0
    one = digest(Path(made[1]["dataset"]))
    assert one == digest(home.home / "parts")


def test_what_was_made_is_told_in_a_line_a_prompt_and_not_made_again(
    history: Path, made: tuple[Project, dict[str, Any]]
) -> None:
    home, told = made
    shards = sorted((home.top / ".clean_room" / "bootstrap" / "shards").iterdir())
    before = [(path.name, path.stat().st_mtime_ns) for path in shards]
    code, out, _ = home.run_here(
        "bootstrap", str(history), "-o", str(home.home / "second"), "--jobs", "1", *BUDGET
    )
    assert code == 0
    assert [(path.name, path.stat().st_mtime_ns) for path in shards] == before
    assert digest(Path(told["dataset"])) == digest(home.home / "second")
    lines = [line.split() for line in out.splitlines()]
    assert ["number", "prompt", "train", "validation", "test"] in lines
    (scope,) = [line for line in lines if line[1:2] == ["scope_judgment"]]
    rows = (home.home / "second/scope_judgment/train.jsonl").read_text().count("\n")
    assert (scope[0].isdecimal(), int(scope[2])) == (True, rows)


def test_nothing_is_begun_where_the_dataset_could_not_be_written(history: Path, home: Project) -> None:
    (home.home / "data").mkdir()
    (home.home / "data" / "mine.txt").write_text("mine")
    code, out, err = home.run_here("bootstrap", str(history), "-o", str(home.home / "data"), *BUDGET)
    assert (code, out) == (2, "")
    assert "is not empty" in err
    assert not (home.top / ".clean_room" / "bootstrap").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "no repository is given"),
        (("/nowhere/at/all",), "no folder"),
        (("--shard", "3/2"), "I/N"),
        (("--stages", "scoop"), "scoop"),
    ],
)
def test_bad_input_is_named_and_ends_with_two(home: Project, flags: tuple[str, ...], words: str) -> None:
    code, out, err = home.run_here("bootstrap", "-o", str(home.home / "data"), *flags)
    assert (code, out) == (2, "")
    assert words in err


def test_a_history_without_tasks_writes_nothing_and_says_why(tmp_path: Path, home: Project) -> None:
    top = repositories.make_repository(tmp_path / "bare", {"a.py": "A = 1\n"})
    code, out, _ = home.run_here("bootstrap", str(top), "-o", str(home.home / "data"))
    assert code == 1
    assert "first commit" in out
    assert not (home.home / "data").exists()


def test_a_missing_extra_is_named_with_how_to_install_it(
    history: Path, home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXTRAS, "cluster", ("no_such_module",))
    code, out, err = home.run_here(
        "bootstrap", str(history), "-o", str(home.home / "data"), "--engine", "ray"
    )
    assert (code, out) == (2, "")
    assert "not installed: no_such_module" in err
    assert "pip install 'clean-room-agent[data,cluster]'" in err


def test_a_manifest_and_a_list_of_what_is_excluded(history: Path, home: Project) -> None:
    manifest, exclude = home.home / "list.toml", home.home / "exclude.txt"
    manifest.write_text(f'[[repository]]\nsource = "{history}"\nrevision = "HEAD~1"\nname = "shop/till"\n')
    exclude.write_text("shop/TILL\n")
    flags = ("--manifest", str(manifest), "-o", str(home.home / "data"), "--json", *BUDGET)
    code, out, _ = home.run_here("bootstrap", *flags, "--exclude", str(exclude))
    assert code == 1
    assert json.loads(out)["repositories_excluded"] == ["shop/till"]
    code, out, _ = home.run_here("bootstrap", *flags, "--jobs", "1")
    assert code == 0
    assert json.loads(out)["commits_seen"] == 7
    rows = [
        json.loads(line)
        for path in (home.home / "data").rglob("train.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert {row["repo"] for row in rows} == {"shop/till"}
    assert {row["source"] for row in rows} == {"synthetic"}


def add_odd_commit(top: Path, message: bytes, when: str = "1700000000 +0000", file: str = "") -> None:
    """A commit that git would not make, by default without a change; `file` is added."""
    change = f"M 100644 inline {file}\ndata 6\nX = 1\n\n" if file else ""
    head = f"commit refs/heads/main\ncommitter Ada <ada@example.org> {when}\ndata {len(message)}\n"
    start = "from refs/heads/main^0\n" if repositories.list_refs(top) else ""
    feed = head.encode() + message + f"\n{start}{change}\n".encode()
    repositories.git(top, "fast-import", "--quiet", "--date-format=raw-permissive", feed=feed)


def test_odd_commits_and_repositories_are_counted_and_named(
    home: Project, tmp_path: Path, made: tuple[Project, dict[str, Any]]
) -> None:
    history = tmp_path / "mined" / "till"
    make_history(history)
    add_odd_commit(history, b"The year is one that no calendar has", "253402300800 +0000")
    add_odd_commit(history, b"The hours are none that a clock has", "1700000000 +9999999")
    add_odd_commit(history, "Ren\u00e9e has written this in Latin-1 here".encode("latin-1"))
    add_odd_commit(history, b"The tree is deeper than a path may be", file="deep/" * 1500 + "x.py")
    repositories.git(history, "read-tree", "HEAD^{tree}")
    (history / "till/stock.py").write_text("def count(items):\n    return sum(1 for _ in items)\n")
    repositories.git(history, "add", "till/stock.py")
    repositories.git(history, "commit", "-qm", "Count the items of the stock one by one")
    other = tmp_path / "sha256"
    other.mkdir()
    repositories.git(other, "init", "-q", "--object-format=sha256", "-b", "main")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        repositories.git(other, "config", name, value)
    repositories.commit(other, {"LICENSE": LICENCE}, "Begin")
    repositories.commit(
        other,
        {"names.py": "def title(name):\n    return name\n"},
        "Add a function that gives the title of a name",
    )
    data = home.home / "data"
    code, out, err = home.run_here(
        "bootstrap", str(history), str(other), "-o", str(data), "--jobs", "1", "--json", *BUDGET
    )
    assert code == 0, err
    told = json.loads(out)
    assert (told["commits_seen"], told["commits_used"]) == (15, made[1]["commits_used"] + 1)
    assert not told["repositories_not_read"]
    wanted = {
        "commit: date after the year 9999": 1,
        "commit: message or author not in UTF-8, or with control characters": 1,
        "parent that cannot be checked out or indexed": 1,
    }
    assert told["left_out"].items() >= wanted.items()
    card = (data / "README.md").read_text()
    assert all(reason in card for reason in wanted)


@pytest.mark.skipif("CRA_RAY" not in os.environ, reason="needs the extra `cluster`; CRA_RAY=1 runs it")
def test_a_cluster_with_a_worker_killed_gives_the_same_rows(
    history: Path, home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--work", str(home.home / "work-here"), "-o", str(home.home / "here"), "--unit-commits", "1")
    assert home.run_here("bootstrap", str(history), *BUDGET, *place, "--jobs", "1")[0] == 0
    work = home.home / "work-ray"
    there = [
        "--work",
        str(work),
        "-o",
        str(home.home / "ray"),
        "--unit-commits",
        "1",
        "--repo",
        str(home.top),
    ]
    script = (sys.executable, "-m", "testing.ray_cluster", str(work / "shards"))
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        monkeypatch.setenv("RAY_ADDRESS", cluster.stdout.readline().strip())
        told = home.cra_process(
            "bootstrap", str(history), *BUDGET, *there, "--engine", "ray", "--json", timeout=240
        )
        assert told.code == 0, told.err
        assert json.loads(told.out)["units_left"] == 0, "nothing else on standard output, whatever Ray says"
        assert cluster.stdout.readline() == "killed\n"
        cluster.communicate()
    assert digest(home.home / "here") == digest(home.home / "ray")
