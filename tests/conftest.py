"""What holds for every test."""

import atexit
import compileall
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from testing.foreground import restore_signals
from testing.no_processes import pytest_addoption, pytest_configure

__all__ = ["pytest_addoption", "pytest_configure"]

# A busy machine must not fail a test that asks about values: how long things take is measured by benchmarks.
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Each run tries the same examples: one that fails, fails every time. Others are looked for by `--hypothesis-profile=fuzz`.
settings.register_profile("values", QUIET, derandomize=True, max_examples=40)
settings.register_profile("fuzz", QUIET, max_examples=2000)
settings.load_profile("values")

# Tests write to memory, as each record syncs what it commits to disk. Not where memory for files is short (containers have
# 64 MB), nor where TMPDIR names another folder, which also keeps what tests left.
SHARED_MEMORY, NEEDED_BYTES = Path("/dev/shm"), 4 << 30
if (
    "TMPDIR" not in os.environ
    and SHARED_MEMORY.is_dir()
    and shutil.disk_usage(SHARED_MEMORY).free > NEEDED_BYTES
):
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="cra-", dir=SHARED_MEMORY)
    atexit.register(shutil.rmtree, os.environ["TMPDIR"], ignore_errors=True)
    # Who gives up rights, as the attempts to leave a sandbox do, still comes to what is below it.
    Path(os.environ["TMPDIR"]).chmod(0o711)
# Folders that tests make are noted where no user keeps such notes; processes that tests start find the same ones.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="cra-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
# What is compiled is kept beside the tree from run to run, also where the environment would have nothing kept: this process, the
# workers of pytest-xdist and each `cra` that a test starts would compile all of it again, which takes longer than to run it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[1] / "build" / "compiled"))
sys.dont_write_bytecode, sys.pycache_prefix = False, os.environ["PYTHONPYCACHEPREFIX"]
# But not of the projects that tests make, whose folders have other names each time.
atexit.register(shutil.rmtree, f"{sys.pycache_prefix}/{tempfile.gettempdir()}", ignore_errors=True)
# What watches over the tests of these projects is loaded by processes that may not keep what they compile.
GUARD = Path(__file__).parents[1] / "src/clean_room_agent/orchestrator/test_runs/guard"
compileall.compile_dir(GUARD, quiet=1)
# No test reads what the user who runs it configured.
os.environ["XDG_CONFIG_HOME"] = f"{os.environ['XDG_STATE_HOME']}/config"

restore_signals()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes lives as long as the process: searching it for garbage took two fifths of collecting, and went on
    in each test and in each process forked by one, which copied it all.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, as tests wait for servers, git and the disk."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(autouse=True)
def environment_kept() -> Iterator[None]:
    """A test that changes the environment for those after it fails itself, not one of them."""
    before = _environment()
    yield
    assert _environment() == before, "the test left the environment changed: patch it for a block"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
