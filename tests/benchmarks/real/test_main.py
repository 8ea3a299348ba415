import sys
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.real.__main__ import all_results, done_by
from benchmarks.real.arms import Left, Model, Run, cra, require_own_build, stage_lost
from benchmarks.real.features import Addition, addition
from benchmarks.real.planted import Repository
from benchmarks.real.proxy import CountingProxy
from benchmarks.real.tasks import Bench, Task, commit_all
from msgspec.structs import replace
from testing.repositories import git
from testing.servers.openai_server import OpenAiServer

MODEL = Model(name="qwen", window=4096)


class JudgingBench(Bench, frozen=True):
    """Judges by what is in a file; makes no environment."""

    def solved(self, task: Task, tree: Path) -> bool:
        return (tree / "answer.txt").read_text(encoding="utf-8") == "yes"


def made(folder: Path) -> Task:
    (folder / "start").mkdir()
    (folder / "start" / "answer.txt").write_text("no", encoding="utf-8")
    return Task(
        id="t1",
        set="fixes",
        split="dev",
        words="Say yes.",
        command=("true",),
        judge_command=("true",),
        must_pass=(),
        changed=("answer.txt",),
    )


def asking(answers: list[str]) -> Callable[[Run], Left]:
    """An arm that writes what the model says."""

    def arm(run: Run) -> Left:
        body = {"model": "qwen", "messages": [{"role": "user", "content": run.task.words}]}
        url = f"{run.account.base_url}/v1/chat/completions"
        response = httpx.post(url, json=body | {"max_tokens": 50}, trust_env=False)
        answers.append(response.json()["choices"][0]["message"]["content"])
        (run.tree / "answer.txt").write_text(answers[-1], encoding="utf-8")
        return Left(claimed=True, attempts=1, applied=1)

    return arm


def test_an_arm_works_on_a_copy_and_is_not_asked_again(tmp_path: Path) -> None:
    bench = JudgingBench(work=tmp_path, mirrors="")
    task = bench.cached("t1", made)
    answers: list[str] = []
    with OpenAiServer(["yes"], models=("qwen",)) as server, CountingProxy(server.base_url) as proxy:
        results = [
            done_by("cra", asking(answers), bench, task, MODEL, proxy, bound) for bound in (1000, 1000)
        ]
    assert answers == ["yes"], "the second time, the first result was read"
    assert results[0] == results[1]
    assert (results[0].solved, results[0].answers, results[0].usage.written) == (True, 1, 1)
    assert (tmp_path / "tasks" / "t1" / "start" / "answer.txt").read_text(encoding="utf-8") == "no"
    assert all_results(bench, MODEL, 1000) == results[:1]
    assert all_results(bench, MODEL, 2000) == []
    place = tmp_path / "runs" / "qwen" / "bound-1000" / "cra" / "t1"
    assert "Say yes." in (place / "exchanges.jsonl").read_text(encoding="utf-8")


def test_what_could_not_be_set_up_is_no_result(tmp_path: Path) -> None:
    bench = JudgingBench(work=tmp_path, mirrors="")
    task = replace(bench.cached("t1", made), environment=sys.prefix)
    place = tmp_path / "runs" / "qwen" / "bound-1000" / "cra" / "t1"
    failed = pytest.raises(BenchmarkError, match=r"init -y .* ended with 2: .*log\.txt says why")
    with CountingProxy("http://127.0.0.1:9") as proxy, failed:
        done_by("cra", cra, bench, task, MODEL, proxy, 1000)
    assert not (place / "result.json").exists()
    assert "error: " in (place / "log.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("asks", ["v1/chat/completions", "v1/models"])
def test_where_the_server_fails_there_is_no_result(tmp_path: Path, asks: str) -> None:
    bench = JudgingBench(work=tmp_path, mirrors="")
    task = bench.cached("t1", made)

    def enduring(run: Run) -> Left:
        request = {"model": "qwen", "messages": [{"role": "user", "content": "Say yes."}]}
        answer = httpx.post(f"{run.account.base_url}/{asks}", json=request)
        assert answer.status_code == HTTPStatus.BAD_GATEWAY
        return Left(claimed=False, attempts=0, applied=0)

    failed = pytest.raises(BenchmarkError, match="cra, t1: the server left 1 questions unanswered")
    with CountingProxy("http://127.0.0.1:9") as proxy, failed:
        done_by("cra", enduring, bench, task, MODEL, proxy, 1000)
    assert all_results(bench, MODEL, 1000) == []


def test_the_stage_that_lost_a_task_is_told_by_its_attempts(tmp_path: Path) -> None:
    task = made(tmp_path)
    right, elsewhere = "--- a/answer.txt\n+++ b/answer.txt\n", "--- a/x.py\n+++ b/x.py\n"
    assert stage_lost(task, [("tests_failed", right)], claimed=True) == "judged wrong"
    assert stage_lost(task, [], claimed=False) == "no attempt"
    assert stage_lost(task, [("unreadable", "")], claimed=False) == "not applied"
    assert stage_lost(task, [("tests_failed", elsewhere)], claimed=False) == "place"
    assert (
        stage_lost(task, [("tests_failed", elsewhere), ("tests_failed", right)], claimed=False) == "candidate"
    )


def test_an_addition_is_told_by_its_signature(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text("def kept():\n    pass\n", encoding="utf-8")
    (tmp_path / "test_box.py").write_text("", encoding="utf-8")
    commit_all(tmp_path)
    (tmp_path / "box.py").write_text("def kept():\n    pass\n\ndef new(a=1):\n    pass\n", encoding="utf-8")
    (tmp_path / "test_box.py").write_text("import box\n", encoding="utf-8")
    commit_all(tmp_path)
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    repository = Repository(name="o/box", commit=commit, sources=("box.py",), command=())
    assert addition(tmp_path, repository, commit) == Addition(
        sources={"box.py": (tmp_path / "box.py").read_text(encoding="utf-8")},
        tests={"test_box.py": "import box\n"},
        signatures=("box.py: def new(a=1)",),
    )


def test_another_build_than_the_benchmarks_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_own_build(tmp_path)
    (tmp_path / "clean_room_agent").mkdir()
    other = tmp_path / "clean_room_agent" / "__init__.py"
    other.touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(BenchmarkError, match=r"would run .*, and not .*: pip install -e "):
        require_own_build(tmp_path / "clean_room_agent", other)


def test_results_with_other_settings_stand_apart(tmp_path: Path) -> None:
    bench = JudgingBench(work=tmp_path, mirrors="")
    task = bench.cached("t1", made)
    adapted = Model(name="qwen", window=4096, settings=("models.overrides.fill=qwen+own",))
    with OpenAiServer(["yes"], models=("qwen",)) as server, CountingProxy(server.base_url) as proxy:
        done_by("cra", asking([]), bench, task, adapted, proxy, 1000)
    assert [found.task for found in all_results(bench, adapted, 1000)] == ["t1"]
    assert not all_results(bench, MODEL, 1000)
