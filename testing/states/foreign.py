"""States in which the repository, or what it is started with, would have this program run something of its author's."""

import contextlib
import os
from pathlib import Path

from clean_room_agent.db.connection import connect_file
from testing.repositories import commit, git, write
from testing.states.hostile import canary_program
from testing.states.place import Maker, Place, till

SETTINGS = """\
[models]
provider = "openai"
base_url = "http://127.0.0.1:9"
coding = "a"
reasoning = "b"
[budget]
context_window = 16384
reserved_tokens = 4096
[testing]
test_command = "{program}"
[sandbox]
mode = "none"
"""
LINKS = ("raw.lock", "index.lock", "adapters.lock", "redaction.key", "curated.sqlite", "raw.sqlite-wal")


def _clean_room(folder: Path) -> Path:
    """A `.clean_room` whose settings run a program, and whose links lead to a file of the user's."""
    top = till(folder)
    program = canary_program(folder, folder / "tests of theirs")
    own = top / ".clean_room"
    own.mkdir()
    (own / "config.toml").write_text(SETTINGS.format(program=str(program).replace(" ", "\\\\ ")))
    with contextlib.closing(connect_file("raw", own / "raw.sqlite")):
        pass
    (folder / "letter").write_text("mine\n")
    (folder / "letter").chmod(0o644)
    (folder / "letters").mkdir()
    for name in LINKS:
        (own / name).unlink(missing_ok=True)
        (own / name).symlink_to(folder / "letter")
    (own / "sessions").symlink_to(folder / "letters")
    return top


def tracked_clean_room(folder: Path) -> Place:
    top = _clean_room(folder)
    git(top, "add", "-f", ".clean_room")
    git(top, "commit", "-q", "-m", "Ship it")
    return Place(top=top, refused="git tracks .clean_room/")


def shipped_clean_room(folder: Path) -> Place:
    return Place(top=_clean_room(folder), refused="not known to be yours")


def filters_of_work_trees(folder: Path) -> Place:
    """A driver that the configuration names in linked work trees alone, and one without a name."""
    top = till(folder)
    program = canary_program(folder, folder / "filter")
    commit(top, {".gitattributes": "*.txt filter=trap\n", "more.txt": "1\n"}, "Attributes")
    lines = "".join(f"\t{key} = {program}\n" for key in ("clean", "smudge", "process"))
    (folder / "included").write_text(f'[filter "trap"]\n{lines}[filter ""]\n{lines}')
    with (top / ".git/config").open("a", encoding="utf-8") as file:
        for condition in ("gitdir:**/worktrees/*", "gitdir/i:**/WORKTREES/**", "onbranch:cra/**"):
            file.write(f'[includeIf "{condition}"]\n\tpath = {folder / "included"}\n')
    return Place(top=top)


def programs_in_the_repository(folder: Path) -> Place:
    """Entries of PATH that mean the folder in which a program is started, and programs there."""
    top = till(folder)
    names = ("git", "sh", "cp", "bwrap", "setpriv", "env")
    for name in names:
        (top / "bin").mkdir(exist_ok=True)
        canary_program(folder, top / name)
        canary_program(folder, top / "bin" / name)
    git(top, "add", *names, "bin")
    git(top, "commit", "-q", "-m", "Programs")
    return Place(
        top=top,
        environment={
            "PATH": f":.:bin:{os.environ['PATH']}",
            "BASH_ENV": str(top / "git"),
            "ENV": str(top / "git"),
        },
    )


def linked_refs(folder: Path) -> Place:
    top = till(folder)
    (top / ".git/refs/cra").symlink_to("heads")
    return Place(top=top, refused="refs/cra is a link")


def unsynced_refs(folder: Path) -> Place:
    top = till(folder)
    git(top, "config", "core.fsyncMethod", "writeout-only")
    write(top, {"notes.txt": "changed\n"})
    return Place(top=top)


STATES: dict[str, Maker] = {
    "clean room that git tracks": tracked_clean_room,
    "clean room in an archive": shipped_clean_room,
    "filters of work trees alone": filters_of_work_trees,
    "path that begins here": programs_in_the_repository,
    "refs that are a link": linked_refs,
    "refs left to the disk's cache": unsynced_refs,
}
"""By name."""
