"""Nothing gets out, and the suite would see it if something did."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from testing.sandboxes import installed

from clean_room_agent.sandbox.bubblewrap import Sandbox
from clean_room_agent.sandbox.escapes import BECOME_NOBODY, MARK, try_escapes

LEAST = 110
SYSTEM = {"PATH": "/usr/bin:/bin"}


def test_no_attempt_gets_out() -> None:
    tried = try_escapes(installed(), SYSTEM)
    assert [attempt for attempt in tried if not attempt.blocked] == []
    assert len(tried) >= LEAST


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_no_attempt_of_an_ordinary_user_gets_out() -> None:
    assert BECOME_NOBODY
    tried = try_escapes(installed(), SYSTEM, as_nobody=True)
    assert [attempt for attempt in tried if not attempt.blocked] == []
    assert len(tried) >= LEAST


def test_holes_are_found() -> None:
    def weaken(sandbox: Sandbox) -> Sandbox:
        policy = sandbox.policy
        home = policy.at.parent
        mounts = ((home / ".ssh", home / ".ssh"), (policy.at / ".env", policy.at / ".env"))
        changed = replace(policy, mounts=mounts, git=None, scratch_bytes=policy.scratch_bytes * 4)
        return replace(sandbox, policy=changed, environment=("CRA_SECRET",))

    out = {attempt.name for attempt in try_escapes(installed(), SYSTEM, weaken=weaken) if not attempt.blocked}
    assert {
        "read an ssh key",
        "read the user's .env",
        "read a secret variable",
        "read variables of other processes",
        "change tree/.git",
        "fill /tmp",
    } <= out
    assert not Path("/", MARK).exists()
