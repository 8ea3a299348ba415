"""Clones, and the objects of a repository that has no worktree here."""

import shutil
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError, UsageError
from clean_room_agent.git.command import git, names

CLONED_BY = "https:file"
"""The transports that a clone may use: no command of ours starts a shell on another machine."""


class Objects(Struct, frozen=True):
    """The objects of one repository."""

    git_dir: Path
    """The folder with the objects: a bare repository, or the `.git` of another."""

    def read(self, name: str) -> bytes | None:
        """The content of the file `name`, which may be `<commit>:<path>`; None if there is none, or it is damaged."""
        try:
            return self._ask("cat-file", "blob", name)
        except GitError:
            return None

    def list_folder(self, commit: str) -> dict[str, str]:
        """The names of the files at the top of a commit's tree, with their object ids; none if it cannot be read."""
        try:
            entries = (entry.partition("\t") for entry in names(self._ask("ls-tree", "-z", "--", commit)))
        except GitError:
            return {}
        return {name: head.rpartition(" ")[2] for head, _, name in entries if head.startswith("100")}

    def _ask(self, *arguments: str) -> bytes:
        return git(*arguments, cwd=self.git_dir, pins={"GIT_DIR": str(self.git_dir)})


def clone(url: str, target: Path) -> None:
    """Clone the repository at `url` (https, or a path) to `target` as a bare one; a failure leaves nothing behind.

    Raises:
        UsageError: the address is of another kind.
        GitError: git failed.
    """
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        command = ("clone", "--quiet", "--bare", "--end-of-options", url, str(part))
        git(*command, cwd=target.parent, pins={"GIT_ALLOW_PROTOCOL": CLONED_BY})
        part.rename(target)
    except GitError as exc:
        if "' not allowed" in exc.message:  # as git says of a transport
            raise UsageError(
                f"{url} is not an address that can be cloned", hint="give an https URL or a path"
            ) from exc
        raise GitError(f"{url}: {exc.message}", hint="clone it by hand, and give the path") from exc
    finally:
        shutil.rmtree(part, ignore_errors=True)
