"""A step's scaffold: a commit of declarations and stubs, on top of which its attempts are made."""

from collections.abc import Mapping

from msgspec import Struct

from clean_room_agent.artifacts.edits import PatchEdit, Stub
from clean_room_agent.orchestrator.commits import Tree


class Scaffold(Struct, frozen=True, kw_only=True):
    """A step's scaffold: a commit that no attempt was made from yet, or why there is none."""

    reason: str = ""
    """Why the step was one to scaffold; "" where it was not."""
    commit: str = ""
    """On top of the run's head; "" where there is no scaffold."""
    paths: tuple[str, ...] = ()
    """The files that it changes or creates, sorted."""
    stubs: tuple[Stub, ...] = ()
    said: str = ""
    """What was proven of it, or why it was dropped."""

    @property
    def stands(self) -> bool:
        """Whether attempts are made on top of it."""
        return bool(self.commit)

    def on(self, head: Tree) -> Tree:
        """The tree that an attempt is made from, where the run's head is `head`."""
        return head.at(self.commit) if self.stands else head

    def texts(self, head: Tree) -> dict[str, str]:
        """Its files, by path; none where there is no scaffold."""
        return self.on(head).texts(self.paths)[0]

    def merged(self, changed: Mapping[str, str | None], head: Tree) -> dict[str, str | None]:
        """The texts by which a tree differs from `head` after the scaffold and what was changed on top of it."""
        texts: dict[str, str | None] = {**self.texts(head), **changed}
        return {path: text for path, text in texts.items() if text is not None or path in head.paths}

    def described(self) -> str:
        """One line for the record."""
        if not self.stands:
            return f"{self.reason}; dropped: {self.said}"
        stubs = ", ".join(stub.name for stub in self.stubs)
        return f"{self.reason}; {self.said}; stubs: {stubs}"


NO_SCAFFOLD = Scaffold()
JOURNAL_NAME = "scaffold"


def without_rewritten(texts: Mapping[str, str], edits: tuple[PatchEdit, ...], head: Tree) -> dict[str, str]:
    """The texts without those files that only the scaffold has made, and that an edit writes anew: nothing is in its way."""
    rewritten = {edit.file_path for edit in edits if edit.kind == "create"} - head.paths
    return {path: text for path, text in texts.items() if path not in rewritten}
