"""What the index benchmarks are built from: processes seen from outside, and the changes that are measured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.commits.checkouts import git
from benchmarks.index.copies import (
    before_pull,
    choose_edits,
    with_name,
)
from testing.index_dump import index
from testing.processes import adopting_orphans, descendants, memory_of
from testing.repositories import commit, make_repository

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


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


def test_a_name_is_changed_where_it_is_defined() -> None:
    source = b"run()\n@prerun\ndef run(run): pass\n"
    assert with_name(source, "run", 2) == b"run()\n@prerun\ndef runMeasured(run): pass\n"


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
