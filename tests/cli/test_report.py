"""`cra report`: one page of one real solve, and of records that no real run would leave."""

import base64
import contextlib
import hashlib
import itertools
import json
import re
import webbrowser
from pathlib import Path

import pytest
from testing.repositories import fingerprint, make_repository
from testing.runs.decision_rows import decision_row
from testing.seeded_record import SECRET
from tests.db.raw.samples import NOW, SAMPLES, TASK, call, run, task_run
from tests.report.page.read_page import ReadPage, read_page

from clean_room_agent.cli.main import run as cra
from clean_room_agent.cli.output import CONTROL
from clean_room_agent.cli.report import default_place, require_replaceable
from clean_room_agent.db.connection import get_connection, read_record
from clean_room_agent.db.raw.calls import append_call, list_calls
from clean_room_agent.db.raw.passes import append_decisions, append_task_run
from clean_room_agent.db.raw.runs import EventRow, append_event, append_orchestrator_run
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace

HOSTILE = (
    "</pre></script><script>alert(1)</script><img src=x onerror=y>\"'&\x1b[31m\u202e\x00\u2028\ud800{{ 7*7 }}"
)


@pytest.fixture(scope="module")
def solved(sample: tuple[Path, str]) -> tuple[Path, str]:
    return sample


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"})


def written(top: Path, place: Path, *words: str) -> ReadPage:
    """The page that the command wrote; it keeps to what every page keeps to."""
    assert cra(("report", *words, "--repo", str(top), "-o", str(place))) == 0
    text = place.read_text(encoding="utf-8")
    page = read_page(text)
    assert page.unclosed == []
    assert all(value.startswith("#") for name in ("href", "src", "action") for value in page.attributes(name))
    assert not {name for _, attributes in page.tags for name in attributes if name.startswith("on")}
    assert page.attributes("style") == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in page.attributes("href")} <= set(ids)
    labels = page.attributes("aria-label")
    assert len(labels) == len(set(labels))
    assert not set(labels) & set(page.section_names)
    levels = page.headings()
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert not re.search(CONTROL, text)
    return page


def test_a_solve_is_one_page_whose_prompts_are_whole(solved: tuple[Path, str], tmp_path: Path) -> None:
    top, task = solved
    before = fingerprint(top)
    page = written(top, tmp_path / "page.html", task)
    assert fingerprint(top) == before
    with read_record(top) as conn:
        calls = [row for row in list_calls(conn, _whole_id(top, task)) if row.site.call_type != "probe"]
    known = [row for row in calls if f"call-{row.id}" in page.calls]
    assert len(known) >= 8
    for row in known:
        assert page.prompt(row.id) == row.request.prompt
        assert page.calls[f"call-{row.id}"][-1][1] == row.answer.response
        assert row.request.system_prompt in page.pres.values()


def test_the_page_tells_what_a_run_was(solved: tuple[Path, str], tmp_path: Path) -> None:
    top, task = solved
    written(top, tmp_path / "page.html", task)
    text = re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text(encoding="utf-8"))
    for told in (
        "✓ complete",
        "6 passed, 2 failed → 8 passed, 0 failed",
        "+    return [share + 1] * rest + [share] * (people - rest)",
        "s2 Ledger.charge_evenly charges the shares of split_amount. ✓ done (needs s1)",
        "tests.test_split.SplitTest.test_shares_add_up_to_the_amount",
        "attempt 1 insufficient context, does not stand: newly failing: tests.test_split",
        "a test that fails, or that the task names",
        "What followed",
    ):
        assert told in text, told


def test_nothing_may_be_loaded_and_only_the_page_s_own_style_counts(
    solved: tuple[Path, str], tmp_path: Path
) -> None:
    page = written(solved[0], tmp_path / "page.html")
    policy = next(
        one["content"] for tag, one in page.tags if one.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    digest = base64.b64encode(hashlib.sha256(page.texts["style"].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy


def test_by_default_it_stands_where_no_snapshot_finds_it(
    solved: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    top, task = solved
    monkeypatch.chdir(top)
    before = fingerprint(top)
    assert cra(("report", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    path = Path(told["path"])
    assert path == top / f".clean_room/reports/cra-report-{task}.html"
    assert told["bytes"] == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    assert fingerprint(top) == before
    assert cra(("report", f"cra/{task}")) == 0, "a report is written over"
    assert capsys.readouterr().out.strip() == str(path)


def test_what_is_no_report_is_not_written_over(
    solved: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    command = ("report", "--repo", str(solved[0]), "-o", str(mine))
    assert cra(command) == 2
    assert "--force" in capsys.readouterr().err
    assert mine.read_text() == "<p>mine</p>"
    assert cra((*command, "--force")) == 0
    assert cra(command) == 0


@pytest.mark.parametrize("opens", [True, False])
def test_a_browser_is_asked_and_if_there_is_none_the_place_is_said(
    solved: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], opens: bool
) -> None:
    asked = []
    monkeypatch.setenv("PATH", f":{Path('/usr/bin')}:here")

    def fake(url: str) -> bool:
        asked.append(url)
        return opens

    monkeypatch.setattr(webbrowser, "open", fake)
    assert cra(("report", "--repo", str(solved[0]), "--open")) == 0
    told = capsys.readouterr()
    assert asked == [Path(told.out.strip()).as_uri()]
    assert ("no browser" in told.err) is not opens


def test_without_a_record_it_says_how_to_get_one(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cra(("report", "--repo", str(top))) == 2
    assert "cra solve" in capsys.readouterr().err
    assert not (top / ".clean_room").exists()


def test_whatever_the_record_holds_is_text_on_the_page(top: Path, tmp_path: Path) -> None:
    name = HOSTILE.replace("\x00", "").replace("\ud800", "")
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        append_orchestrator_run(conn, run(TASK))
        append_task_run(conn, task_run(TASK))
        texts = {
            "prompt": HOSTILE,
            "response": HOSTILE,
            "system_prompt": HOSTILE,
            "item": name,
            "thinking": name,
        }
        append_call(conn, call(task_id=TASK, **{key: _storable(value) for key, value in texts.items()}))
        row = decision_row(
            task_id=TASK,
            stage=name,
            file_id=None,
            tier=0,
            included=True,
            reason=name,
            timestamp=NOW,
            path=name,
            call_id=None,
        )
        append_decisions(conn, (row,))
        append_event(conn, EventRow(task_id=TASK, kind=name, detail=name, timestamp=NOW))
    page = written(top, tmp_path / "page.html", TASK)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    shown = page.calls["call-1"][-1][1]
    assert "<script>alert(1)</script>" in shown
    assert "\\x1b[31m\\u202e" in shown
    assert "{{ 7*7 }}" in shown


def test_rows_that_no_real_run_leaves_make_a_page(top: Path, tmp_path: Path) -> None:
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        for table, row in SAMPLES:
            table.insert(conn, row)
    page = written(top, tmp_path / "page.html", TASK)
    assert "call-1" in page.calls
    assert "interrupted" in page.texts["title"], "it stands as running, and no process holds it"


def test_a_retrieval_alone_makes_a_page(top: Path, tmp_path: Path) -> None:
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        append_task_run(conn, task_run("lone"))
        append_call(conn, call(task_id="lone", call_type="scope_judgment"))
    assert "call-1" in written(top, tmp_path / "page.html", "lone").calls


def test_a_secret_is_not_on_the_page_unless_it_is_asked_for(
    top: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        append_task_run(conn, task_run("lone"))
        append_call(conn, call(task_id="lone", prompt=f"# x\ntoken {SECRET}\n", response=SECRET))
    written(top, tmp_path / "page.html", "lone")
    assert "--exact" in capsys.readouterr().err
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert SECRET not in text
    assert "[secret:" in text
    written(top, tmp_path / "page.html", "lone", "--exact")
    assert SECRET in (tmp_path / "page.html").read_text(encoding="utf-8")


def _storable(text: str) -> str:
    return text.replace("\ud800", "")


def _whole_id(top: Path, task: str) -> str:
    with read_record(top) as conn:
        row = conn.execute(
            "SELECT task_id FROM orchestrator_runs WHERE task_id LIKE ?", (f"{task}%",)
        ).fetchone()
        return str(row[0])


def test_a_file_that_is_no_report_is_replaced_only_by_force(tmp_path: Path) -> None:
    mine = tmp_path / "notes.html"
    mine.write_text("<p>mine</p>")
    with pytest.raises(UsageError, match="not a report") as caught:
        require_replaceable(mine, force=False)
    assert "--force" in caught.value.hint
    require_replaceable(mine, force=True)
    require_replaceable(tmp_path / "new.html", force=False)


def test_by_default_it_stands_in_our_own_folder(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    place = default_place(workspace, "3f2c7a90")
    assert place == workspace.folder / "reports/cra-report-3f2c7a90.html"
    assert place.parent.is_dir()
