"""`cra index`: builds, refreshes, and says which file it cannot read."""

import contextlib
import json
import os
import re
import subprocess
import sys

from testing.repositories import write
from testing.runs.solving import Project

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.indexing import GENERATED
from clean_room_agent.db.raw.runs import EVENTS
from clean_room_agent.workspace import Workspace

NEEDED_ONLY_TO_READ = {
    *("tree_sitter", "docstring_parser", "pydantic", "shutil", "bz2", "ctypes", "random", "hmac", "base64"),
    *(
        "clean_room_agent.indexer.extract",
        "clean_room_agent.indexer.workers",
        "clean_room_agent.db.curated.postings",
    ),
}


def test_it_needs_no_configuration_and_says_what_it_did(till: Project) -> None:
    told = till.cra("index")
    assert told.code == 0
    assert re.fullmatch(r"5 files, 5 changed, 0 gone; \d+ symbols, 1 commit; [\d.]+ s\n", told.out)
    assert told.err == ""
    assert told.traces == {}


def test_where_nothing_changed_little_is_loaded(till: Project) -> None:
    for path in till.top.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))  # what was just written would be read again
    till.cra("index")
    program = (
        "import json, sys; from clean_room_agent.cli.main import run; run(['index'])\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=till.top,
        env=till.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(told.stdout.splitlines()[-1]))
    assert "clean_room_agent.indexer.build" in loaded
    assert sorted(loaded & NEEDED_ONLY_TO_READ) == []


def test_the_second_time_only_what_changed_is_read(till: Project) -> None:
    till.cra("index")
    (till.top / "till" / "more.py").write_text("def more():\n    pass\n")
    (till.top / "till" / "receipt.py").unlink()
    told = till.cra("index", "--json")
    answer = json.loads(told.out)
    # Files written within two seconds of the scan are read again; only one of them has other content.
    assert (answer["files_changed"], answer["files_deleted"], answer["failures"]) == (1, 1, [])


def test_full_reads_everything_anew(till: Project) -> None:
    till.cra("index")
    with contextlib.closing(connect_file("curated", Workspace(repo=till.top).curated)) as conn:
        conn.execute("UPDATE symbols SET signature = 'def other():'")
    told = json.loads(till.cra("index", "--full", "--json").out)
    assert (told["files_scanned"], told["files_changed"]) == (5, 0)
    with contextlib.closing(connect_file("curated", Workspace(repo=till.top).curated)) as conn:
        assert (
            conn.execute("SELECT count(*) FROM symbols WHERE signature = 'def other():'").fetchone()[0] == 0
        )


def test_the_first_unreadable_file_stops_it_and_is_named(till: Project) -> None:
    (till.top / "till" / "odd.py").write_bytes(b'# coding: no-such-coding\nname = "\xff"\n')
    told = till.cra("index")
    assert (told.code, told.out) == (1, "")
    assert "till/odd.py" in told.err
    assert "--continue-on-error" in told.err


def test_what_is_left_out_is_named_with_the_reason_when_it_is_met(till: Project) -> None:
    (till.top / "till" / "large.py").write_text("x = 1\n" * 400_000)
    (till.top / "till" / "binary.py").write_bytes(b"x = 1\n\0")
    (till.top / "till" / "picture.png").write_bytes(b"\x89PNG\0")
    told = till.cra("index")
    assert told.code == 0
    assert told.err.splitlines() == [
        "left out till/binary.py: binary: it holds NUL bytes",
        "left out till/large.py: 2,400,000 bytes are more than [index] max_file_bytes",
    ]
    assert till.cra("index").err == ""
    assert [name for name, _ in json.loads(till.cra("index", "--json").out)["left_out"]] == [
        "till/binary.py",
        "till/large.py",
    ]


def test_a_source_file_that_makes_no_sense_is_text_and_named(till: Project) -> None:
    (till.top / "till" / "deep.py").write_text("(" * 100_000)
    told = till.cra("index")
    assert told.code == 0
    assert told.err.startswith("no symbols in till/deep.py: ")
    assert len(told.err.splitlines()) == 1


def test_a_changed_configuration_is_read_and_an_unchanged_one_remembered(till: Project) -> None:
    till.cra("index")
    config = Workspace(repo=till.top).config
    config.write_text("[index]\nmax_file_bytes = 40\n")
    assert "left out" in till.cra("index").err
    assert till.cra("index").err == ""
    config.write_text("[index]\nmax_file_bytes = 0\n")
    told = till.cra("index")
    assert told.code == 2
    assert "[index] max_file_bytes" in told.err


def test_folders_that_tools_made_are_left_out_named_and_recorded(till: Project) -> None:
    write(till.top, {".venv/pyvenv.cfg": "home = /usr\n", ".venv/lib/six.py": "def six():\n    pass\n"})
    told = till.cra("index")
    assert told.out.startswith("5 files, 5 changed")
    assert told.err == (
        "left out, made by tools and not tracked: .venv/ (a Python environment); "
        "to include a folder, track a file in it (git add)\n"
    )
    answer = json.loads(till.cra("index", "--json").out)
    assert answer["generated"] == [{"path": ".venv", "what": "a Python environment"}]
    with contextlib.closing(connect_file("raw", Workspace(repo=till.top).raw, read_only=True)) as conn:
        kept = [event.detail for event in EVENTS.select(conn, "WHERE kind = ?", (GENERATED,))]
    assert [json.loads(detail) for detail in kept] == [[[".venv", "a Python environment"]]] * 2
