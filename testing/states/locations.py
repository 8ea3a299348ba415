"""States of where a repository stands, who owns it, and what may be written there."""

import os
import shutil
from pathlib import Path

from testing.repositories import git, make_repository, write
from testing.runs.solving import TILL
from testing.states.hostile import canary_program
from testing.states.place import LATER, LATIN, Maker, Place, till

NOBODY = 65534


def inside_a_submodule(folder: Path) -> Place:
    library = till(folder, "library")
    top = make_repository(folder / "outer", {"outer.py": "O = 1\n"})
    git(top, "submodule", "-q", "add", str(library), "till")
    git(top, "commit", "-q", "-m", "Add till")
    inner = top / "till"
    write(inner, {"till/receipt.py": LATER})
    return Place(top=inner)


def linked_worktree(folder: Path) -> Place:
    top = till(folder)
    git(top, "config", "extensions.worktreeConfig", "true")
    linked = folder / "linked"
    git(top, "worktree", "add", "-q", "-b", "side", str(linked))
    git(linked, "config", "--worktree", "core.sparseCheckout", "false")
    write(linked, {"till/receipt.py": LATER})
    return Place(top=linked)


def git_folder_elsewhere(folder: Path) -> Place:
    top = till(folder)
    git(top, "init", "-q", f"--separate-git-dir={folder / 'elsewhere.git'}")
    return Place(top=top)


def worktree_of_a_bare_repository(folder: Path) -> Place:
    git(folder, "clone", "-q", "--bare", str(till(folder, "source")), "bare.git")
    git(folder / "bare.git", "worktree", "add", "-q", str(folder / "till"), "main")
    return Place(top=folder / "till")


def configured_worktree(folder: Path) -> Place:
    top = till(folder)
    (top / ".git").rename(folder / "apart.git")
    git(folder, "--git-dir=apart.git", "config", "core.worktree", str(top))
    write(top, {".git": f"gitdir: {folder / 'apart.git'}\n"})
    return Place(top=top)


def no_repository(folder: Path) -> Place:
    top = folder / "plain"
    write(top, TILL)
    return Place(top=top, refused="not a git repository")


def folder_with_a_strange_name(folder: Path) -> Place:
    return Place(top=till(folder, "my till,\n'größer' & \"100%\" $HOME"))


def folder_whose_name_is_not_utf8(folder: Path) -> Place:
    return Place(top=till(folder, LATIN), refused="is not UTF-8")


def behind_a_link(folder: Path) -> Place:
    till(folder, "real")
    (folder / "till").symlink_to("real")
    return Place(top=folder / "till")


def of_somebody_else(folder: Path) -> Place | None:
    if os.geteuid() != 0:
        return None
    top = till(folder)
    for path in (top, *sorted(top.rglob("*"))):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return Place(top=top, refused="dubious ownership")


def bubblewrap(*arguments: str) -> tuple[str, ...] | None:
    """The way to run a program with some mounts of its own; None where there is none."""
    program = shutil.which("bwrap")
    return None if program is None else (program, "--dev-bind", "/", "/", *arguments, "--")


def read_only(folder: Path) -> Place | None:
    top = till(folder)
    before = bubblewrap("--ro-bind", str(top), str(top))
    # Nothing can be configured there, which is what `solve` says.
    return None if before is None else Place(top=top, before=before, refused="no configuration")


def read_only_git_folder(folder: Path) -> Place | None:
    top = till(folder)
    write(top, {"till/receipt.py": LATER})
    before = bubblewrap("--ro-bind", str(top / ".git"), str(top / ".git"))
    return None if before is None else Place(top=top, before=before, refused="ead-only file system")


FILL = 'cp -a "$1"/. "$2"; cat /dev/zero >"$2/fill" 2>/dev/null; shift 2; exec "$@"'


def full_git_folder(folder: Path) -> Place | None:
    top = till(folder)
    write(top, {"till/receipt.py": LATER})
    shutil.copytree(top / ".git", folder / "copy", symlinks=True)
    before = bubblewrap("--size", "1000000", "--tmpfs", str(top / ".git"))
    if before is None:
        return None
    filled = (*before, "/bin/sh", "-c", FILL, "sh", str(folder / "copy"), str(top / ".git"))
    return Place(top=top, before=filled, refused="No space left")


def inherited_variables(folder: Path) -> Place:
    top = till(folder)
    other = make_repository(folder / "other", {"other.py": ""})
    program = canary_program(folder, folder / "program")
    paths = {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git/index",
        "GIT_OBJECT_DIRECTORY": other / ".git/objects",
        "GIT_COMMON_DIR": other / ".git",
        "GIT_TRACE": folder / "trace",
        "GIT_TRACE2_EVENT": folder / "trace2",
    }
    names = (
        "EXTERNAL_DIFF",
        "EDITOR",
        "PAGER",
        "SSH",
        "SSH_COMMAND",
        "ASKPASS",
        "SEQUENCE_EDITOR",
        "PROXY_COMMAND",
    )
    programs = {f"GIT_{name}": program for name in names}
    counted = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(program),
        "GIT_CONFIG_KEY_1": "core.hooksPath",
        "GIT_CONFIG_VALUE_1": str(folder),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={program}'",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_CEILING_DIRECTORIES": str(folder),
    }
    return Place(top=top, environment={**{k: str(v) for k, v in {**paths, **programs}.items()}, **counted})


def linked_hooks(folder: Path) -> Place:
    top = till(folder)
    (top / ".git/hooks").rename(folder / "hooks")
    (top / ".git/hooks").symlink_to(folder / "hooks")
    (top / ".git/modules").mkdir()
    return Place(top=top)


STATES: dict[str, Maker] = {
    "inside a submodule": inside_a_submodule,
    "linked worktree": linked_worktree,
    "git folder elsewhere": git_folder_elsewhere,
    "worktree of a bare repository": worktree_of_a_bare_repository,
    "configured worktree": configured_worktree,
    "no repository": no_repository,
    "folder with a strange name": folder_with_a_strange_name,
    "folder whose name is not utf8": folder_whose_name_is_not_utf8,
    "behind a link": behind_a_link,
    "of somebody else": of_somebody_else,
    "read only": read_only,
    "read only git folder": read_only_git_folder,
    "full git folder": full_git_folder,
    "inherited variables": inherited_variables,
    "linked hooks": linked_hooks,
}
"""By name."""
