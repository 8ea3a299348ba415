import contextlib
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from testing.index_dump import dump, dump_of, index
from testing.repositories import commit, git, init_repository, make_repository, write

from clean_room_agent.db.connection import get_connection
from clean_room_agent.errors import IndexingError, RecordError
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.indexer.update import ALONE_BYTES, update_paths
from clean_room_agent.workspace import Workspace, hold

FILES = {
    "app/__init__.py": "from .core import run\n",
    "app/core.py": 'def run():\n    "Runs."\n    return 1\n',
    "main.py": "from app import run\n\nrun()\n",
    "web/a.ts": "import { b } from './b'\n",
    "web/b.ts": "export const b = 1\n",
    "README.md": "# How to run\n",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", FILES)


def paths(top: Path) -> list[object]:
    return [row[0] for row in dump_of(top)["files"]]


def age(top: Path) -> None:
    """All files were written long ago, so that no stamp is racy."""
    for path in top.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            os.utime(path, ns=(0, 1_000_000_000))


def test_an_index_holds_files_symbols_imports_and_history(top: Path) -> None:
    summary = index(top)
    rows = dump_of(top)
    assert [(row[0], row[1]) for row in rows["files"]] == [
        ("README.md", "markdown"),
        ("app/__init__.py", "python"),
        ("app/core.py", "python"),
        ("main.py", "python"),
        ("web/a.ts", "typescript"),
        ("web/b.ts", "typescript"),
    ]
    assert [row[1] for row in rows["symbols"]] == ["run", "b"]
    assert [row[:2] for row in rows["dependencies"]] == [
        ("app/__init__.py", "app/core.py"),
        ("main.py", "app/__init__.py"),
        ("main.py", "app/core.py"),
        ("web/a.ts", "web/b.ts"),
    ]
    assert [row[2:] for row in rows["commits"]] == [("Begin", "2023-11-14T22:13:20+00:00", 6)]
    assert len(rows["co_changes"]) == 15
    assert (summary.files_scanned, summary.files_changed, summary.symbols, summary.commits) == (6, 6, 2, 1)


def test_nothing_is_read_again_when_nothing_changed(top: Path) -> None:
    age(top)
    index(top)
    before = dump_of(top)
    os.chmod(top / "main.py", 0o000)  # noqa: PTH101 - would fail for an ordinary user who read it
    summary = index(top)
    assert (summary.files_scanned, summary.files_changed, summary.files_deleted) == (6, 0, 0)
    assert dump_of(top) == before


def test_a_change_that_keeps_size_and_time_is_found_while_it_is_racy(top: Path) -> None:
    # Later than any scan, however slow the machine is.
    written = time.time_ns() + 600 * 10**9
    os.utime(top / "web/b.ts", ns=(written, written))
    index(top)
    (top / "web/b.ts").write_text("export const c = 1\n")
    os.utime(top / "web/b.ts", ns=(written, written))
    assert index(top).files_changed == 1
    assert [row[1] for row in dump_of(top)["symbols"]] == ["run", "c"]


def test_files_come_and_go_and_imports_follow(top: Path) -> None:
    index(top)
    write(
        top,
        {
            "web/b.ts": None,
            "web/b/index.ts": "export const b = 2\n",
            "app/extra.py": "from app.core import run\n",
        },
    )
    summary = index(top)
    assert (summary.files_changed, summary.files_deleted) == (2, 1)
    edges = [row[:2] for row in dump_of(top)["dependencies"]]
    assert ("web/a.ts", "web/b/index.ts") in edges
    assert ("app/extra.py", "app/core.py") in edges


def test_a_package_that_passes_on_another_name_moves_the_edges_of_its_users(top: Path) -> None:
    write(top, {"app/other.py": "def run(): pass\n"})
    index(top)
    write(top, {"app/__init__.py": "from .other import run\n"})
    assert index(top).files_changed == 1
    assert [row[1] for row in dump_of(top)["dependencies"] if row[0] == "main.py"] == [
        "app/__init__.py",
        "app/other.py",
    ]


def test_the_number_of_processes_does_not_show(tmp_path: Path) -> None:
    files = {
        f"pkg/m{number}.py": f"import pkg.m{number // 2}\ndef f{number}(): pass  # {number}\n"
        for number in range(40)
    }
    one = make_repository(tmp_path / "one", files)
    index(one)
    with contextlib.closing(get_connection("curated", repo_path=one)) as conn:
        alone = [
            tuple(row)
            for row in conn.execute("SELECT id, file_id, name, parent_symbol_id FROM symbols ORDER BY id")
        ]
    before = dump_of(one)
    Workspace(repo=one).curated.unlink()
    index(one, jobs=3)
    with contextlib.closing(get_connection("curated", repo_path=one)) as conn:
        assert alone == [
            tuple(row)
            for row in conn.execute("SELECT id, file_id, name, parent_symbol_id FROM symbols ORDER BY id")
        ]
    assert dump_of(one) == before


def test_a_full_build_gives_the_same_rows_and_keeps_what_cannot_be_derived(top: Path) -> None:
    index(top)
    before = dump_of(top)
    with contextlib.closing(get_connection("curated", repo_path=top)) as conn:
        conn.execute(
            "INSERT INTO file_metadata (file_id, purpose) SELECT id, 'runs' FROM files WHERE path = 'main.py'"
        )
        conn.execute(
            "INSERT INTO file_metadata (file_id, purpose) SELECT id, 'web' FROM files WHERE path = 'web/a.ts'"
        )
        conn.execute(
            "INSERT INTO adapter_metadata (stage_name, base_model, model_tag, version, active, deployed_at)"
            " VALUES ('scope_judgment', 'reasoning', 'tag', '1', 1, '2026-01-01T00:00:00Z')"
        )
    (top / "web/a.ts").write_text("// another\n")
    index(top, full=True)
    git(top, "checkout", "-q", "web/a.ts")
    assert index(top).files_changed == 1
    assert dump_of(top) == before
    with contextlib.closing(get_connection("curated", repo_path=top)) as conn:
        assert [row[0] for row in conn.execute("SELECT purpose FROM file_metadata")] == ["runs"]
        assert conn.execute("SELECT count(*) FROM adapter_metadata").fetchone()[0] == 1


def test_other_bounds_make_the_next_run_a_full_one(top: Path) -> None:
    index(top)
    assert index(top, config=IndexConfig(max_file_bytes=20)).files_scanned == 2
    assert paths(top) == ["README.md", "web/b.ts"]
    assert index(top, config=IndexConfig(history=0)).commits == 0


def test_a_file_that_cannot_be_decoded_is_named_and_nothing_changes(top: Path) -> None:
    index(top)
    before = dump_of(top)
    write(top, {"main.py": "x = 2\n", "bad.py": b"# coding: nonsense\nx = '\xff'\n"})
    with pytest.raises(IndexingError, match=r"bad\.py cannot be decoded") as caught:
        index(top)
    assert "--continue-on-error" in caught.value.hint
    assert dump_of(top) == before


def test_a_first_build_that_fails_leaves_no_database(top: Path) -> None:
    write(top, {"bad.py": b"# coding: nonsense\nx = '\xff'\n"})
    with pytest.raises(IndexingError):
        index(top)
    assert not [path for path in Workspace(repo=top).folder.iterdir() if "curated" in path.name]


def test_what_cannot_be_read_can_be_skipped_and_is_named(top: Path) -> None:
    index(top)
    write(top, {"main.py": b"# coding: nonsense\nx = '\xff'\n"})
    summary = index(top, continue_on_error=True)
    assert [path for path, _ in summary.failures] == ["main.py"]
    assert "main.py" not in paths(top)
    write(top, {"main.py": FILES["main.py"]})
    assert index(top).files_changed == 1


def test_a_repository_without_commits_has_files_and_no_history(tmp_path: Path) -> None:
    top = init_repository(tmp_path / "new")
    assert index(top).files_scanned == 0
    write(top, {"a.py": "x = 1\n"})
    summary = index(top)
    assert (summary.files_scanned, summary.commits) == (1, 0)
    commit(top, {}, "First")
    assert index(top).commits == 1


def test_a_second_indexer_waits_no_longer_than_it_is_told(top: Path) -> None:
    index(top)
    said = f"process {os.getpid()} holds the index"
    with hold(Workspace(repo=top).index_lock), pytest.raises(RecordError, match=said):
        index(top, config=IndexConfig(lock_timeout=0.01))


def test_two_indexers_at_once_leave_one_good_index(top: Path) -> None:
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=index, args=(top,)) for _ in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join(30)
    assert [other.exitcode for other in others] == [0, 0, 0]
    before = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top)
    assert dump_of(top) == before


def test_an_indexer_killed_at_any_moment_leaves_the_old_index_or_the_new(top: Path) -> None:
    index(top)
    for number in range(8):
        write(top, {"app/core.py": f"def run{number}(): pass\n"})
        other = multiprocessing.get_context("fork").Process(target=index, args=(top,))
        other.start()
        time.sleep(0.004 * number)
        other.kill()
        other.join(10)
        names = [row[1] for row in dump_of(top)["symbols"]]
        assert names in ([f"run{number}", "b"], [f"run{max(number - 1, 0)}", "b"], ["run", "b"])
        index(top)


def test_given_paths_are_indexed_again_in_an_open_database(top: Path) -> None:
    index(top)
    write(
        top,
        {
            "main.py": "import app.more\n",
            "app/more.py": "def more(): pass\n",
            "web/a.ts": None,
            ".env": "A=1\n",
        },
    )
    with contextlib.closing(get_connection("curated", repo_path=top)) as conn:
        update_paths(conn, top, ["main.py", "app/more.py", "web/a.ts", ".env", "never.py"])
        updated = dump(conn)
    index(top)
    fresh = dump_of(top)
    assert updated == fresh
    assert ("main.py", "app/more.py", "import") in fresh["dependencies"]


FOR_SEVERAL = ALONE_BYTES // 12
"""Bytes of each of 12 files that are more together than one process reads alone."""


def test_many_changed_files_are_read_by_several_processes_as_by_one(tmp_path: Path) -> None:
    def text(number: int, word: str) -> str:
        lines = (f"def {word}{number}_{line}(): return {word}{number - 1}_{line}\n" for line in range(60))
        return f"from m{number - 1} import *\n# {'x' * FOR_SEVERAL}\n" + "".join(lines)

    top = make_repository(tmp_path / "r", {f"m{number}.py": text(number, "f") for number in range(12)})
    index(top)
    write(top, {f"m{number}.py": text(number, "g") for number in range(3, 15)})
    summary = index(top, jobs=2)
    assert summary.files_changed == 12
    updated = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top)
    assert updated == dump_of(top)
