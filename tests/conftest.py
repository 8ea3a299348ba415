"""What holds for every test."""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings
from testing.foreground import restore_signals
from testing.no_processes import pytest_addoption, pytest_configure

__all__ = ["pytest_addoption", "pytest_configure"]

# A busy machine must not fail a test that asks about values: how long things take is measured by benchmarks.
settings.register_profile("values", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("values")

# Folders that tests make are noted where no user keeps such notes; processes that tests start find the same ones.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="cra-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
# A `cra` that compiles all of itself takes as long again to start: it and the workers of pytest-xdist share what they compiled,
# beside the tree, also where the environment would have nothing kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", f"{os.environ['XDG_STATE_HOME']}/compiled")
# No test reads what the user who runs it configured.
os.environ["XDG_CONFIG_HOME"] = f"{os.environ['XDG_STATE_HOME']}/config"

restore_signals()
