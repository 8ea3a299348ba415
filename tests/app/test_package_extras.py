"""Extras that a command needs."""

import re
import tomllib
from pathlib import Path

import pytest

from clean_room_agent.app import package_extras
from clean_room_agent.errors import UsageError


def test_an_extra_that_is_not_installed_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(package_extras.EXTRAS, "data", ("json", "no_such_package"))
    with pytest.raises(UsageError, match="the extra `data`: not installed: no_such_package") as caught:
        package_extras.require_extras("data")
    assert caught.value.hint == "pip install 'clean-room-agent[data]'"


def test_a_package_has_the_name_by_which_pip_knows_it() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, packages in package_extras.EXTRAS.items():
        known = {re.split(r"[^\w-]", one)[0] for one in project["optional-dependencies"][extra]}
        assert known == set(packages)


def test_what_is_installed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(package_extras.EXTRAS, "data", ("json",))
    monkeypatch.setitem(package_extras.EXTRAS, "cluster", ("no_such_package",))
    with pytest.raises(UsageError, match="the extra `cluster`"):
        package_extras.require_extras("data", "cluster")
