import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFTEST = "from testing.no_processes import pytest_addoption, pytest_configure\n"
TESTS = """\
import multiprocessing, subprocess, threading
import pytest

@pytest.fixture
def started():
    subprocess.run(["true"])

def test_nothing(): pass
def test_starts(): subprocess.run(["true"])
def test_by_fixture(started): pass
def test_in_a_thread():
    thread = threading.Thread(target=subprocess.run, args=(["true"],))
    thread.start()
    thread.join()
def test_spawns():
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    process.join()
def test_fails(): assert False
"""


def outcomes(folder: Path, *options: str) -> dict[str, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_a.py").write_text(TESTS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options),
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("test_a.py::")]
    return {words[0].removeprefix("test_a.py::test_"): words[1] for words in lines}


def test_what_starts_a_process_is_skipped_and_the_rest_runs(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "--no-processes", "-W", "ignore") == {
        "nothing": "PASSED",
        "starts": "SKIPPED",
        "by_fixture": "SKIPPED",
        "in_a_thread": "PASSED",
        "spawns": "SKIPPED",
        "fails": "FAILED",
    }


def test_without_the_option_all_runs(tmp_path: Path) -> None:
    assert set(outcomes(tmp_path).values()) == {"PASSED", "FAILED"}
