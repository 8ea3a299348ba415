"""Ignored files that a repository's tests need, as `.worktreeinclude` lists them."""

from clean_room_agent.git.command import names
from clean_room_agent.git.generated import split_generated
from clean_room_agent.git.repository import Repository

INCLUDE_FILE = ".worktreeinclude"
PRIVATE = frozenset({".clean_room", ".git"})
"""Folders that no pattern brings in."""
BATCH = 500
"""Paths in one command line."""


def included_files(repo: Repository) -> tuple[str, ...]:
    """The files that match `.worktreeinclude` (in .gitignore syntax) and are not in a snapshot, because they are
    ignored or in generated folders; sorted. Never files of git or of this program.
    """
    if not (repo.top / INCLUDE_FILE).is_file():
        return ()
    listed = repo.git("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE_FILE}")
    named = tuple(path for path in names(listed) if not path.endswith("/"))
    if not named:
        return ()
    outside, _ = split_generated(str(repo.top), names(repo.git("ls-files", "-z", "--cached")), named)
    found = {*named} - {*outside}
    for at in range(0, len(named), BATCH):
        ignored = repo.git(
            *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"), *named[at : at + BATCH]
        )
        found.update(names(ignored))
    return tuple(sorted(path for path in found if not _is_private(path)))


def _is_private(path: str) -> bool:
    """Whether the file belongs to git or to this program: its record, and the key that hides secrets."""
    return any(part.casefold() in PRIVATE for part in path.split("/"))
