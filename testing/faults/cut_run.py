"""A real run of `cra` that tells what it was promised: started under strace by `cuts`.

    python -m testing.faults.cut_run TOP ACKS SYNCHRONOUS

Each line of ACKS says that something is in the record, in a file or in git, since the call that put it there returned.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

from clean_room_agent.db import connection
from clean_room_agent.file_contents import atomic_write
from testing.faults.acknowledged import acknowledging, acknowledging_states
from testing.runs.solving import TILL, Project, Script, project_at
from testing.servers.ollama_server import OllamaServer

REWRITES = 3


def main(top: Path, acks: Path, synchronous: str) -> int:
    """Configure, index, plan and solve; the exit code is 0 where all went well."""
    connection.SYNCHRONOUS["raw"] = synchronous

    def acknowledge(**told: object) -> None:
        # Opened each time: the process that indexes is forked, and closes what it inherits.
        handle = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(handle, json.dumps(told).encode() + b"\n")
        os.close(handle)

    project = project_at(top, TILL)
    noted = acknowledging(lambda rows: acknowledge(rows=rows))
    kept = acknowledging_states(lambda path, key: acknowledge(session=path, key=key))
    with noted, kept, OllamaServer(Script(project.oracle)) as server:
        for number in range(REWRITES):
            project.configure(server.base_url, testing={"timeout": 60.0 + number})
            acknowledge(
                file=str(top / ".clean_room/config.toml"), holds=_hash(top / ".clean_room/config.toml")
            )
        codes = [_run(project, "plan", project.task, "-o", str(top / "plan.json"))]
        acknowledge(file=str(top / "plan.json"), holds=_hash(top / "plan.json"))
        codes.append(_run(project, "solve", project.task))
        for branch in _branches(project):
            acknowledge(branch=branch)
    atomic_write(top / "plan.json", "{}\n")
    acknowledge(file=str(top / "plan.json"), holds=_hash(top / "plan.json"))
    return max(codes)


def _run(project: Project, *args: str) -> int:
    code, _, err = project.run_here(*args)
    if code:
        print(err, file=sys.stderr)
    return code


def _branches(project: Project) -> tuple[str, ...]:
    from testing.repositories import git  # noqa: PLC0415 - beside its only use

    return tuple(
        git(project.top, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/cra/").splitlines()
    )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
