"""`cra tonight` as it is typed: with a scripted trainer, and a llama-server that is started as a process of its own."""

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing import repositories
from testing.histories import FILES
from testing.runs.solving import MENDED_MONEY, Project, project_at
from testing.servers.openai_server import OpenAiServer
from tests.training.test_training_time import gguf

from clean_room_agent.app.planting import plant
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.synthetic_data import making_of
from clean_room_agent.git.command import git, one_line
from clean_room_agent.training import convert
from clean_room_agent.training.commit_sources import Source
from clean_room_agent.training.shards import Shard, shard_path, write_shard
from clean_room_agent.workspace import Workspace

SOUND: repositories.Files = {**FILES, "LICENSE": "All rights reserved.", "till/money.py": MENDED_MONEY}
CODER = "coder:0.01b"
TRAINER = """\
#!{python}
import json, pathlib, sys
if sys.argv[1] == "-c":
    print("@" + json.dumps({{"missing": [], "gpu": False}})); sys.exit()
top = pathlib.Path({top!r})
with (top / "trainings").open("a") as file:
    file.write("x")
job = json.loads(pathlib.Path(sys.argv[2]).read_text())
work, rows = pathlib.Path(job["work"]), pathlib.Path(job["rows"]).read_text().count("\\n")
tell = lambda **event: print("@" + json.dumps(event), flush=True)
tell(event="tokenised", what="train", rows=rows, tokens=99)
tell(event="step", step=1, total=2, loss=2.5)
if (top / "breaks").exists() and not (work / "checkpoint-1").exists():
    (work / "checkpoint-1").mkdir(); sys.exit("killed")
(work / "adapter").mkdir()
(work / "adapter/adapter_config.json").write_text("{{}}")
(work / "adapter" / (work.name.removesuffix(".training") + ".gguf")).write_text("lora")
tell(event="done", rows=rows, steps=2, seconds=61.0, first_loss=2.5, last_loss=0.5,
     resumed_from="checkpoint-1" if (work / "checkpoint-1").exists() else "")
"""
SERVER = """\
#!{python}
import json, os, pathlib, random, signal, sys, time
if sys.argv[1] == "--version":
    print("version: 1"); sys.exit()
top = pathlib.Path({top!r})
if (top / "refuses").exists():
    sys.exit("no such device")
sys.path[:0] = {path!r}
from testing.servers.ollama_script import Answer, gap_of
from testing.servers.openai_server import OpenAiServer

given = dict(zip(sys.argv[1::1], sys.argv[2::1]))
lines = (top / "night/data/fill/test.jsonl").read_text().splitlines()
rows = [json.loads(line) for line in lines]
right = {{row["prompt"][-1]["content"]: row["completion"][-1]["content"] for row in rows}}

def answer(call):
    if (top / "fails").exists():
        return Answer(status=500, error="broken")
    asked = "<<GAP>>".join(gap_of(call.body))
    applied = any(each["scale"] for each in call.body["lora"])
    time.sleep(0 if applied else 0.01)  # the machine's own noise never makes the adapter look slower
    share = 0.95 if applied else 0.4
    return right[asked] if random.Random(asked).random() < share else "pass"

(top / "server.pid").write_text(str(os.getpid()))
with OpenAiServer(answer, models=(given["--alias"],), window=int(given["-c"]), fills="rightly",
                  adapters=(given["--lora"],), port=int(given["--port"])):
    signal.pause()
"""


class Evening:
    """A project with passing tests, and all that a night needs."""

    def __init__(self, top: Path, server: OpenAiServer) -> None:
        self.top, self.server = top, server
        self.project: Project = project_at(repositories.make_repository(top / "shop", SOUND), {}, {})
        self.project.configure(
            server.base_url, models={"provider": "openai", "coding": CODER}, solve={"route": "auto"}
        )
        (top / "base.gguf").write_bytes(gguf((5_000_000, 2)))
        path = [str(Path(__file__).parents[2]), *(entry for entry in sys.path if entry)]
        for name, text in (("trainer", TRAINER), ("llama-server", SERVER)):
            program = top / name
            program.write_text(text.format(python=sys.executable, top=str(top), path=path))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(self, *flags: str) -> tuple[int, str, str]:
        programs = ("--python", str(self.top / "trainer"), "--server", str(self.top / "llama-server"))
        given = ("--base", str(self.top / "base.gguf"), "-o", str(self.top / "night"), "--faults", "2")
        return self.project.run_here("tonight", *given, *programs, *flags)

    def make_up(self, functions: int) -> None:
        """Put made-up rows, five of each function, where those of the faults are looked for."""
        workspace = Workspace(repo=self.project.top)
        workspace.create()
        settings = load_settings(workspace.config, Overrides())
        making = making_of(settings, None, of_faults=True)
        head = one_line(git("rev-parse", "HEAD", cwd=workspace.repo))
        name = "/".join(workspace.repo.parts[-2:])
        source = Source(
            name=name, git_dir=workspace.repo / ".git", head=head, tests=self.project.test_command
        )
        work = workspace.folder / "bootstrap"
        nobody = lambda _done, _total: None  # noqa: E731
        (unit,) = plant([source], work, making, settings, nobody, most=2, per_function=2).units
        rows = [
            {
                "repo": name, "commit": head, "timestamp": "2026-01-01T00:00:00Z", "license": "",
                "task_id": f"f{number}", "stage": "fill", "item": "", "label": "", "found_by": "", "system": "",
                "prompt": f"def f{number}(a{number}):\n    b{line} = a{number} * {number}{line}\n    return<<GAP>>\n",
                "answer": f" b{line} + {number}", "change": f"f{number} a{number} is {number}",
            }
            for number in range(functions) for line in range(5)
        ]  # fmt: skip
        write_shard(shard_path(work / "shards", unit, making), Shard(rows=rows, counts={"pairs": len(rows)}))

    @property
    def trainings(self) -> int:
        place = self.top / "trainings"
        return len(place.read_text()) if place.exists() else 0

    def server_runs(self) -> bool:
        return Path(f"/proc/{(self.top / 'server.pid').read_text()}").exists()


@pytest.fixture
def evening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evening]:
    monkeypatch.setattr(convert, "EXTRA", ())
    for name, folder in (("HOME", "h"), ("XDG_CACHE_HOME", "c")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    with OpenAiServer([], models=(CODER, "thinker:4b"), window=16384, fills="rightly") as server:
        yield Evening(tmp_path, server)


def test_a_night_ends_with_an_adapter_that_passed_and_a_page(evening: Evening) -> None:
    evening.make_up(90)
    code, out, err = evening.run()
    assert code == 0, err
    assert "1. data: 2 faults in 1 repository" in err
    assert "2. training: a base of 0.01B parameters" in err
    assert "training on 225 rows of `fill`" in err
    assert "coder:0.01b+fill-v1 is better than its base: 225 examples of 45 tasks" in out
    assert "loss 2.500 -> 0.500" in out
    assert "--models-preset" in out
    assert "next: cra adapters deploy 1" in out
    page = (evening.top / "night/tonight.html").read_text()
    assert "95 % interval" in page
    assert "every task" in page
    assert "http" not in page.replace("http-equiv", "")
    assert not evening.server_runs()
    again = evening.run("--json")
    assert again[0] == 0
    told = json.loads(again[1])
    assert (told["passed"], told["adapter_id"], told["data"]["rows"]) == (True, 1, 225)
    assert evening.trainings == 1
    other = evening.run("--hours", "2")
    assert other[0] == 2
    assert "another night was begun" in other[2]


def test_of_a_repository_under_any_licence_faults_are_planted(evening: Evening) -> None:
    code, out, err = evening.run("--faults", "6")
    assert code == 1, err
    assert "cannot be judged on so few examples" in out
    assert "next: cra tonight" in out


def test_each_stage_continues_where_it_was_interrupted(evening: Evening) -> None:
    evening.make_up(20)
    (evening.top / "breaks").touch()
    code, _, err = evening.run()
    assert (code, evening.trainings) == (1, 1)
    assert "the trainer failed" in err
    dataset = (evening.top / "night/tonight.json").read_text()
    (evening.top / "refuses").touch()
    code, _, err = evening.run()
    assert (code, evening.trainings) == (3, 2)
    assert "no such device" in err
    assert "1. data" not in err
    (evening.top / "refuses").unlink()
    (evening.top / "fails").touch()
    assert evening.run()[0] == 3
    assert not evening.server_runs()
    (evening.top / "fails").unlink()
    code, _, err = evening.run()
    assert (code, evening.trainings) == (1, 2), err
    assert (evening.top / "night/tonight.json").read_text() == dataset
    about = Workspace(repo=evening.project.top).adapters / "fill-v1/cra.json"
    assert json.loads(about.read_text())["result"]["resumed_from"] == "checkpoint-1"


def test_a_night_that_was_ended_while_it_made_data_goes_on_with_the_same_commits(evening: Evening) -> None:
    evening.make_up(20)
    (evening.top / "breaks").touch()
    assert evening.run()[0] == 1
    kept = evening.top / "night/tonight.json"
    before = json.loads(kept.read_text())
    kept.write_text(json.dumps(before | {"data": None}))
    repositories.git(evening.project.top, "commit", "-q", "--allow-empty", "-m", "The next morning")
    assert evening.run()[0] == 1
    after = json.loads(kept.read_text())
    assert after["request"] == before["request"]
    assert after["data"] == before["data"] | {"dataset": 2, "version": 2}


def test_what_gave_too_few_rows_can_be_tried_with_more_faults(evening: Evening) -> None:
    code, _, err = evening.run("--faults", "1")
    assert (code, evening.trainings) == (1, 0)
    assert "0 to test with are too few" in err
    assert evening.run("--faults", "6")[0] == 1
    assert evening.trainings == 1


def test_more_rows_than_the_hours_allow_are_left_out_and_told(evening: Evening) -> None:
    evening.make_up(20)
    code, out, err = evening.run("--hours", "0.0003", "--json")
    assert code == 1, err
    data = json.loads(out)["data"]
    assert 0 < data["rows"] < 50
    assert data["left_out"] == {"fill: would take more than 0.0003 hours to train on": 50 - data["rows"]}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--server", "no-such-server"), "there is no program no-such-server"),
        (("--base", "{top}/trainer"), "cannot be read as a model"),
        (("--base", "{top}/small.gguf"), "is not the model coder:0.01b"),
        (("--python", "{top}/bare"), "has no trl"),
        (("{top}/h",), "not a git repository"),
    ],
)
def test_what_would_waste_the_night_is_told_at_once(
    evening: Evening, flags: tuple[str, ...], words: str
) -> None:
    (evening.top / "small.gguf").write_bytes(gguf((1_000_000, 1)))
    bare = evening.top / "bare"
    bare.write_text('#!/bin/sh\necho \'@{"missing": ["trl"], "gpu": false}\'\n')
    bare.chmod(0o700)
    code, _, err = evening.run(*(flag.format(top=evening.top) for flag in flags))
    assert code == 2
    assert words in err
    assert not (evening.top / "night").exists()


def test_a_server_that_is_away_and_tests_that_fail_are_told_before_faults_are_planted(
    evening: Evening,
) -> None:
    (evening.project.top / "till/money.py").write_text("def split(cents, people):\n    return []\n")
    repositories.git(evening.project.top, "commit", "-qam", "Break it")
    code, _, err = evening.run()
    assert code == 2
    assert "no fault can be planted" in err
    evening.project.configure("http://127.0.0.1:1", models={"provider": "openai", "coding": CODER})
    assert evening.run()[0] == 3
    assert not list((evening.top / "night").iterdir())
