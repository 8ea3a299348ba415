"""If something got out, the attempts would tell; that nothing does is in `tests/cli/test_check.py`."""

from pathlib import Path

from msgspec.structs import replace
from testing.sandboxes import installed

from clean_room_agent.sandbox.bubblewrap import Sandbox
from clean_room_agent.sandbox.escapes import MARK, try_escapes

SYSTEM = {"PATH": "/usr/bin:/bin"}


def test_holes_are_found() -> None:
    def weaken(sandbox: Sandbox) -> Sandbox:
        policy = sandbox.policy
        home = policy.at.parent
        mounts = ((home / ".ssh", home / ".ssh"), (policy.at / ".env", policy.at / ".env"))
        changed = replace(policy, mounts=mounts, git=None, scratch_bytes=policy.scratch_bytes * 4)
        return replace(sandbox, policy=changed, environment=("CRA_SECRET",))

    tried = try_escapes(installed(), SYSTEM, weaken=weaken, bounds=())
    out = {attempt.name for attempt in tried if not attempt.blocked}
    assert {
        "read an ssh key",
        "read the user's .env",
        "read a secret variable",
        "read variables of other processes",
        "change tree/.git",
        "fill /tmp",
    } <= out
    assert not Path("/", MARK).exists()
