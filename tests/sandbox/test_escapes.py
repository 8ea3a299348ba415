"""No attempt gets out, as root or as an ordinary user; and if one did, it would be told."""

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.escapes import suite
from testing.sandboxes import installed

from clean_room_agent.sandbox.bubblewrap import Sandbox
from clean_room_agent.sandbox.escapes import BECOME_NOBODY, PLAIN, try_escapes

KNOWN_WAYS = 110
IS_ROOT = os.geteuid() == 0 and shutil.which(BECOME_NOBODY[0]) is not None


@pytest.mark.parametrize("as_nobody", [False, True] if IS_ROOT else [False])
def test_every_attempt_is_blocked(as_nobody: bool) -> None:
    tried = suite.try_escapes(installed(), dict(os.environ), as_nobody=as_nobody)
    assert [attempt for attempt in tried if not attempt.blocked] == []
    assert len(tried) >= KNOWN_WAYS


def test_holes_are_found() -> None:
    def weaken(sandbox: Sandbox) -> Sandbox:
        policy = sandbox.policy
        home = policy.at.parent
        mounts = ((home / ".ssh", home / ".ssh"), (policy.at / ".env", policy.at / ".env"))
        changed = replace(policy, mounts=mounts, git=None, scratch_bytes=policy.scratch_bytes * 4)
        return replace(sandbox, policy=changed, environment=("CRA_SECRET",))

    tried = suite.try_escapes(installed(), PLAIN, weaken=weaken, bounds=())
    out = {attempt.name for attempt in tried if not attempt.blocked}
    assert {
        "read an ssh key",
        "read the user's .env",
        "read a secret variable",
        "read variables of other processes",
        "change tree/.git",
        "fill /tmp",
    } <= out
    assert not Path("/", suite.MARK).exists()


def test_the_ten_of_the_command_find_holes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_outside(sandbox: Sandbox, command: tuple[str, ...], **given: object) -> object:
        return run(replace(sandbox, environment=("CRA_SECRET",)), command, **given)  # type: ignore[arg-type]

    run = Sandbox.run
    assert all(attempt.blocked for attempt in try_escapes(installed(), PLAIN))
    monkeypatch.setattr(Sandbox, "run", run_outside)
    tried = try_escapes(installed(), PLAIN)
    assert [attempt.name for attempt in tried if not attempt.blocked] == ["read a secret variable"]
    assert len(tried) == 10
