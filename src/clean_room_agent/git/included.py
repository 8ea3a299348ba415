"""What of a repository is shown to the commands that test it, beside the commit: included files, a bare configuration."""

from pathlib import Path

from clean_room_agent.git.command import git, names
from clean_room_agent.git.repository import Repository

INCLUDE_FILE = ".worktreeinclude"
BATCH = 500
"""Paths in one command line."""
NEEDED = (
    "core.repositoryformatversion",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.abbrev",
    "extensions.objectformat",
    "extensions.compatobjectformat",
    "extensions.refstorage",
    "extensions.noop",
    "extensions.preciousobjects",
)


def included_files(repo: Repository) -> tuple[str, ...]:
    """The ignored files of the user's tree that its `.worktreeinclude` names by the patterns of a .gitignore; sorted."""
    if not (repo.top / INCLUDE_FILE).is_file():
        return ()
    listed = repo.git("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE_FILE}")
    named = tuple(path for path in names(listed) if not path.endswith("/"))
    found: set[str] = set()
    for at in range(0, len(named), BATCH):
        ignored = repo.git(
            *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"), *named[at : at + BATCH]
        )
        found.update(names(ignored))
    return tuple(sorted(found))


def bare_configuration(repo: Repository) -> bytes:
    """The part of the repository's configuration that git needs to read it: no remote, no helper, no password."""
    listed = git("config", "--file", str(repo.common_dir / "config"), "--list", "-z", cwd=Path("/"))
    lines: list[str] = []
    for entry in names(listed):
        key, _, value = entry.partition("\n")
        section, _, name = key.partition(".")
        if key in NEEDED and value.isalnum():
            lines.append(f"[{section}]\n\t{name} = {value}\n")
    return "".join(lines).encode()
