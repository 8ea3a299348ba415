"""What the index benchmarks are built from: processes seen from outside, and the changes that are measured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.commits.checkouts import git
from benchmarks.index.copies import (
    Edit,
    before_pull,
    choose_edits,
    clone,
    edited,
    with_name,
    with_statement,
)
from testing.index_dump import index
from testing.parsed_files import with_function
from testing.processes import adopting_orphans, descendants, environment, memory_of, peak, spend
from testing.repositories import commit, make_repository

BUSY = "import os, time\nif os.fork() == 0:\n    a = b'x' * 30_000_000\n    time.sleep(.15)\n    os._exit(0)\nb = b'y' * 30_000_000\ntime.sleep(.15)\nos.wait()\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def test_a_process_is_measured_with_what_it_said(tmp_path: Path) -> None:
    spent = spend(
        (sys.executable, "-c", "print(sum(range(1_000_000)))"), cwd=tmp_path, env=environment(tmp_path)
    )
    assert spent.said == "499999500000\n"
    assert spent.wall > 0
    assert spent.processor > 0


def test_a_process_that_fails_ends_the_benchmark_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        spend(
            (sys.executable, "-c", "raise OSError('no such thing')"), cwd=tmp_path, env=environment(tmp_path)
        )


@linux
def test_memory_is_that_of_parent_and_child_together(tmp_path: Path) -> None:
    found = peak((sys.executable, "-c", BUSY), cwd=tmp_path, env=environment(tmp_path))
    assert 60 < found.total < 120
    assert found.files < found.total


@linux
def test_descendants_are_found_below_their_ancestor() -> None:
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as process:
        assert process.pid in descendants(os.getpid())
        assert memory_of(process.pid) > (0, 0)
        process.communicate(b"\n")
    assert memory_of(process.pid) == (0, 0)


@linux
def test_orphans_come_to_this_process_only_while_it_asks_for_them() -> None:
    def orphan() -> int:
        script = "sleep 0.3 > /dev/null & echo $!"
        return int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)

    with adopting_orphans():
        assert os.waitpid(orphan(), 0)[1] == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan(), 0)


def test_a_pull_brings_merged_commits_as_well(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    base = git(top, "rev-parse", "HEAD")
    git(top, "checkout", "-q", "-b", "side")
    for number in range(3):
        commit(top, {"b.py": f"y = {number}\n"}, "Side")
    git(top, "checkout", "-q", "main")
    kept = commit(top, {"a.py": "x = 2\n"}, "Main")
    git(top, "merge", "-q", "--no-edit", "side")
    assert before_pull(top, 1) == (kept, 4)
    assert before_pull(top, 5) == (base, 5)
    with pytest.raises(SystemExit):
        before_pull(top, 6)


def test_a_clone_is_clean_each_time(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    top = clone(source, tmp_path / "work" / "r")
    (top / "a.py").write_text("x = 2\n")
    (top / "more.py").write_text("")
    clone(source, top)
    assert (top / "a.py").read_text() == "x = 1\n"
    assert not (top / "more.py").exists()


def test_an_edit_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"old")
    with edited(tmp_path, Edit(path="a.py", before=b"old", after=b"new")):
        assert (tmp_path / "a.py").read_bytes() == b"new"
    assert (tmp_path / "a.py").read_bytes() == b"old"


def test_a_statement_comes_into_the_body_of_the_first_function() -> None:
    source = b"X = 1\n\ndef f(a):\n    b = (a,\n         2)\n    return b\n"
    assert with_statement(source, "a.py", []) == source.replace(
        b"    return", b"    measured = len(str())\n    return"
    )
    assert with_statement(b"X = 1\n", "a.py", []) is None


def test_a_name_is_changed_where_it_is_defined() -> None:
    source = b"run()\n@prerun\ndef run(run): pass\n"
    assert with_name(source, "run", 2) == b"run()\n@prerun\ndef runMeasured(run): pass\n"


def test_a_function_is_added_in_the_language_of_the_file() -> None:
    assert with_function(b"x = 1\n", "a.py").endswith(
        b"def measured_addition(first, second):\n    return first + second\n"
    )
    assert b"export function" in with_function(b"", "a.ts")


def test_changes_are_chosen_from_the_index(tmp_path: Path) -> None:
    hub = "".join(f"def f{number}():\n    return {number}\n" for number in range(5))
    users = {f"u{number}.py": "from hub import f3\n\ndef use():\n    return f3()\n" for number in range(4)}
    top = make_repository(tmp_path / "r", {"hub.py": hub, **users, "big.py": hub * 4})
    index(top)
    edits = choose_edits(top)
    assert (edits.hub.path, edits.importers) == ("hub.py", 4)
    assert (edits.renamed.path, edits.renamed_name) == ("hub.py", "f3")
    assert b"def f3Measured():" in edits.renamed.after
    assert edits.body.path == edits.added.path == "u0.py"
