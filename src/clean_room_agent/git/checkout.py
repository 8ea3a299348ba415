"""A separate worktree that checks out one commit after another of a repository that it never writes to."""

import os
from pathlib import Path

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import Named, git, named_programs, names, one_line, require_hex

KEPT_OUT = (".clean_room",)
"""The index of the checked-out tree is kept here; a commit's own files would replace it."""


class ParentCheckout:
    """A repository at `root` that borrows the objects of another."""

    def __init__(self, git_dir: Path, root: Path) -> None:
        """`git_dir` is the other's folder; `root` does not exist yet.

        Raises:
            GitError: git failed.
        """
        self.root = root
        self._commit = ""
        self._named = Named()
        root.mkdir(parents=True)
        common = one_line(
            git(
                "rev-parse",
                "--path-format=absolute",
                "--git-common-dir",
                cwd=git_dir,
                pins={"GIT_DIR": str(git_dir)},
            )
        )
        git("init", "-q", "--template=", cwd=root)
        own = root / ".git"
        (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(Path(common) / "objects") + b"\n")
        shallow = Path(common) / "shallow"
        if shallow.exists():
            (own / "shallow").write_bytes(shallow.read_bytes())

    def show(self, commit: str) -> None:
        """Check out the commit, with HEAD at it.

        Raises:
            GitError: git failed.
        """
        require_hex(commit)
        if git("ls-tree", "-z", "--name-only", "--", commit, *KEPT_OUT, cwd=self.root):
            raise GitError(
                f"{commit} contains a folder that belongs to this program, so it is not checked out"
            )
        self._named = self._named if self._commit else named_programs(self.root)
        git(
            "checkout",
            "-q",
            "--force",
            "--detach",
            require_hex(commit),
            "--",
            cwd=self.root,
            named=self._named,
        )
        self._commit = commit

    def paths(self) -> frozenset[str]:
        """The paths of the commit's files, without links."""
        listed = names(git("ls-tree", "-r", "-z", "--full-tree", "--", self._commit, cwd=self.root))
        entries = (entry.partition("\t") for entry in listed)
        return frozenset(path for head, _, path in entries if head.startswith("100"))
