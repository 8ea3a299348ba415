"""The program as a whole: help, wrong words, exit codes, streams, and what its start may load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import make_repository
from testing.runs.solving import Project

from clean_room_agent.cli.main import COMMANDS, NO_REPO, run, with_repo
from clean_room_agent.git.repository import Listing

HEAVY = (
    *("httpx", "rich", "pydantic", "jinja2", "tree_sitter", "sqlite3", "tomli_w", "multiprocessing"),
    *("importlib.metadata", "asyncio", "email", "ssl", "urllib.request"),
)
LOADED = """\
import json, sys
from clean_room_agent.cli.main import run, with_repo
code = run(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["completion", "bash"]])
def test_help_and_completion_load_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded.isdisjoint(HEAVY)


def test_a_pipe_that_breaks_inside_a_command_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("clean_room_agent.cli.demo.command.callback", broken)
    assert run(["demo"]) == 1
    assert "a process that it talked to has ended" in capsys.readouterr().err


def test_help_names_every_command_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, told in COMMANDS.items():
        assert name in shown
        assert told.split()[0] in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own_and_answers_in_json_about_any_repository(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"Usage: cra {name}")
    assert said.err == ""
    if name not in {"adapters", "mcp", *NO_REPO}:
        assert "--json" in said.out or name == "init"
        assert "--repo" in said.out


def test_an_unknown_command_names_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["retreive"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: no command 'retreive'; did you mean 'retrieve'?\n  -> cra --help\n"


def test_an_unknown_flag_leads_to_the_commands_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["index", "--ful"]) == 2
    assert "-> cra index --help" in capsys.readouterr().err
    assert run(["-v", "solve", "x"]) == 2
    assert "an option stands behind its command: cra COMMAND -v" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("`cra runs` lists the runs", "`cra runs --repo '/a b'` lists the runs"),
        ("look at it: cra show 1234", "look at it: cra show 1234 --repo '/a b'"),
        ("cra adapters evaluate 3", "cra adapters evaluate 3 --repo '/a b'"),
        ("`cra train-plan -o FILE` writes one", "`cra train-plan -o FILE --repo '/a b'` writes one"),
        ("cra show 1; or again: cra solve", "cra show 1 --repo '/a b'; or again: cra solve --repo '/a b'"),
        ("see cra batch --help", "see cra batch --help"),
        ("remove it: cra makes only files there", "remove it: cra makes only files there"),
    ],
)
def test_commands_in_a_hint_have_the_repository_that_the_user_gave(hint: str, shown: str) -> None:
    assert with_repo(hint, Path("/a b")) == shown
    assert with_repo(hint, Path()) == with_repo(hint, None) == hint


def test_an_error_names_a_command_that_works_where_it_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    assert run(["show", "--repo", str(top)]) == 2
    assert f"`cra solve --repo {top}` records the first run" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["show", "zzzz"], ["apply", "--nonsense"], ["nonsense"]])
def test_with_json_an_error_is_an_object_on_standard_output(words: list[str], till: Project) -> None:
    told = till.cra(*words, "--json")
    answer = json.loads(told.out)
    assert set(answer) == {"error", "hint", "exit_code"}
    assert (answer["exit_code"], told.code) == (2, 2)
    assert answer["error"] in told.err
    assert till.cra(*words).out == ""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["help"], "Commands:"),
        (["help", "apply"], "Usage: cra apply"),
        (["help", "adapters"], "Usage: cra adapters"),
        (["-V"], "cra, version"),
    ],
)
def test_help_is_a_word_too(words: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    assert shown in capsys.readouterr().out


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: cra" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_bug(till: Project) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "clean_room_agent", "init", "--print"],
        cwd=till.top,
        env=till.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.wait(timeout=PATIENCE)
    process.stderr.close()
    assert told == b""


def test_without_a_terminal_there_are_no_colours(till: Project) -> None:
    told = till.cra_process("check")
    assert "\x1b" not in told.out + told.err


def test_a_bug_is_told_in_words_and_its_traceback_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_path: Path) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("clean_room_agent.app.wiring.find_top", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(["check"]) == 1
    said = capsys.readouterr()
    assert "error: this is a bug in cra: ZeroDivisionError: oh" in said.err
    (log,) = tmp_path.glob("cra-bug-*.log")
    assert str(log) in said.err
    assert "`cra bug-report` collects the rest" in said.err
    assert "in broken" in log.read_text()


def test_what_python_thinks_of_code_that_is_read_is_not_shown() -> None:
    code = (
        "from clean_room_agent.cli.main import main; main(['--version']); compile('x is 1', 'a.py', 'exec')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_modules_of_the_folder_where_it_is_started_are_not_loaded(tmp_path: Path) -> None:
    for name in ("click", "httpx", "rich", "sqlite3", "tomllib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not yours')\n")
    done = subprocess.run(
        [sys.executable, "-m", "clean_room_agent", "index"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_listing: Listing, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clean_room_agent.app.indexing.index_work_tree", interrupted)
    assert run(["index"]) == 130
    assert capsys.readouterr().err.strip() == "error: interrupted"
