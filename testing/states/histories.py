"""States of history and of what git is in the middle of."""

from pathlib import Path

from testing.repositories import commit, git, init_repository, write
from testing.runs.solving import TILL
from testing.states.hostile import canary_program
from testing.states.place import LATER, Maker, Place, attempt, commit_as, till


def bare(folder: Path) -> Place:
    git(folder, "clone", "-q", "--bare", str(till(folder, "source")), "bare.git")
    return Place(top=folder / "bare.git", refused="is a bare repository")


def without_a_commit(folder: Path) -> Place:
    top = init_repository(folder / "till")
    write(top, TILL)
    return Place(top=top, refused="has no commit yet")


def orphan_branch(folder: Path) -> Place:
    top = till(folder)
    git(top, "checkout", "-q", "--orphan", "fresh")
    return Place(top=top, refused="has no commit yet")


def in_conflict(folder: Path, *command: str) -> Path:
    """Stopped by a conflict in the notes, in the middle of a command with another branch."""
    top = till(folder)
    git(top, "checkout", "-q", "-b", "other")
    commit(top, {"notes.txt": "theirs\n"}, "Theirs")
    git(top, "format-patch", "-q", "-1", "-o", str(folder / "mail"))
    git(top, "checkout", "-q", "main")
    commit(top, {"notes.txt": "ours\n"}, "Ours")
    attempt(top, *command)
    return top


def mid_merge(folder: Path) -> Place:
    return Place(top=in_conflict(folder, "merge", "other"), refused="a merge is in progress")


def mid_rebase(folder: Path) -> Place:
    return Place(top=in_conflict(folder, "rebase", "other"), refused="a rebase is in progress")


def mid_old_rebase(folder: Path) -> Place:
    top = in_conflict(folder, "rebase", "--apply", "other")
    return Place(top=top, refused="a rebase is in progress")


def mid_cherry_pick(folder: Path) -> Place:
    return Place(top=in_conflict(folder, "cherry-pick", "other"), refused="a cherry-pick is in progress")


def mid_cherry_picks(folder: Path) -> Place:
    """Several commits, stopped between two of them: nothing but the list of what is left tells."""
    top = till(folder)
    git(top, "checkout", "-q", "-b", "other")
    commit(top, {"notes.txt": "theirs\n"}, "First")
    commit(top, {"notes.txt": "theirs again\n"}, "Second")
    git(top, "checkout", "-q", "main")
    commit(top, {"notes.txt": "ours\n"}, "Ours")
    attempt(top, "cherry-pick", "other~1", "other")
    git(top, "checkout", "-q", "-f", "HEAD", "--", "notes.txt")
    (top / ".git/CHERRY_PICK_HEAD").unlink(missing_ok=True)
    return Place(top=top, refused="a cherry-pick or revert is in progress")


def mid_revert(folder: Path) -> Place:
    top = till(folder)
    commit(top, {"notes.txt": "second\n"}, "Second")
    commit(top, {"notes.txt": "third\n"}, "Third")
    attempt(top, "revert", "--no-edit", "HEAD~1")
    return Place(top=top, refused="a revert is in progress")


def mid_am(folder: Path) -> Place:
    top = in_conflict(folder, "am", "../mail/0001-Theirs.patch")
    return Place(top=top, refused="a git am is in progress")


def unresolved_stash(folder: Path) -> Place:
    top = till(folder)
    write(top, {"notes.txt": "mine\n"})
    git(top, "stash", "-q")
    commit(top, {"notes.txt": "theirs\n"}, "Theirs")
    attempt(top, "stash", "pop", "-q")
    return Place(top=top, refused="unresolved conflicts in notes.txt")


def mid_bisect(folder: Path) -> Place:
    top = till(folder)
    for number in range(4):
        commit(top, {"notes.txt": f"{number}\n"}, f"Number {number}")
    git(top, "bisect", "start", "HEAD", "HEAD~4")
    return Place(top=top)


def stash_notes_tags_and_replacements(folder: Path) -> Place:
    top = till(folder)
    write(top, {"notes.txt": "mine\n"})
    git(top, "stash", "-q")
    commit(top, {"notes.txt": "second\n"}, "Second")
    git(top, "notes", "add", "-m", "a note")
    git(top, "tag", "-a", "-m", "first", "v1")
    git(top, "replace", "HEAD", "HEAD~1")
    git(top, "pack-refs", "--all")
    git(top, "gc", "-q")
    git(top, "commit-graph", "write", "--reachable")
    return Place(top=top)


def detached_head(folder: Path) -> Place:
    top = till(folder)
    git(top, "checkout", "-q", "--detach")
    return Place(top=top)


def broken_objects(folder: Path) -> Place:
    top = till(folder)
    name = git(top, "rev-parse", "HEAD^{tree}")
    file = top / ".git/objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.write_bytes(b"garbage")
    return Place(top=top, refused=name)


def shallow(folder: Path) -> Place:
    source = till(folder, "source")
    commit(source, {"notes.txt": "second\n"}, "Second")
    git(folder, "clone", "-q", "--depth", "1", f"file://{source}", "till")
    return Place(top=folder / "till")


def partial_clone(folder: Path) -> Place:
    source = till(folder, "source")
    commit(source, {"notes.txt": "second\n"}, "Second")
    git(source, "config", "uploadpack.allowFilter", "true")
    git(folder, "clone", "-q", "--filter=blob:none", f"file://{source}", "till")
    source.rename(folder / "gone")
    return Place(top=folder / "till")


def partial_clone_without_contents(folder: Path) -> Place:
    source = till(folder, "source")
    git(source, "config", "uploadpack.allowFilter", "true")
    git(folder, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{source}", "till")
    write(folder / "till", TILL)
    source.rename(folder / "gone")
    return Place(top=folder / "till", refused="promisor remote")


def partial_clone_of_a_program(folder: Path) -> Place:
    place = partial_clone_without_contents(folder)
    program = canary_program(folder, folder / "transport")
    git(place.top, "config", "remote.origin.url", f"ext::{program} %S")
    git(place.top, "config", "protocol.ext.allow", "always")
    return place


def alternates(folder: Path) -> Place:
    source = till(folder, "source")
    git(folder, "clone", "-q", "--shared", str(source), "middle")
    git(folder, "clone", "-q", "--shared", str(folder / "middle"), "till")
    commit_as(folder / "till", {"till/receipt.py": LATER}, "Receipts")
    return Place(top=folder / "till")


def long_object_names(folder: Path) -> Place:
    top = folder / "till"
    top.mkdir()
    git(top, "init", "-q", "-b", "main", "--object-format=sha256")
    commit_as(top, {name: str(text) for name, text in TILL.items()}, "Begin")
    write(top, {"till/receipt.py": LATER})
    return Place(top=top)


def reftable(folder: Path) -> Place | None:
    top = folder / "till"
    top.mkdir()
    if "--ref-format" not in git(top, "-c", "alias.ask=!git init -h || true", "ask"):
        return None
    git(top, "init", "-q", "-b", "main", "--ref-format=reftable")
    commit_as(top, {name: str(text) for name, text in TILL.items()}, "Begin")
    return Place(top=top)


def branch_named_cra(folder: Path) -> Place:
    top = till(folder)
    git(top, "branch", "cra")
    return Place(top=top, refused="a branch named cra")


def ambiguous_names(folder: Path) -> Place:
    top = till(folder)
    git(top, "update-ref", "refs/heads/HEAD", "HEAD")
    git(top, "tag", "main")
    git(top, "update-ref", "refs/heads/refs/heads/main", "HEAD")
    return Place(top=top)


STATES: dict[str, Maker] = {
    "bare": bare,
    "without a commit": without_a_commit,
    "orphan branch": orphan_branch,
    "mid merge": mid_merge,
    "mid rebase": mid_rebase,
    "mid old rebase": mid_old_rebase,
    "mid cherry pick": mid_cherry_pick,
    "mid cherry picks": mid_cherry_picks,
    "mid revert": mid_revert,
    "mid am": mid_am,
    "unresolved stash": unresolved_stash,
    "mid bisect": mid_bisect,
    "stash notes tags and replacements": stash_notes_tags_and_replacements,
    "detached head": detached_head,
    "broken objects": broken_objects,
    "shallow": shallow,
    "partial clone": partial_clone,
    "partial clone without contents": partial_clone_without_contents,
    "partial clone of a program": partial_clone_of_a_program,
    "alternates": alternates,
    "long object names": long_object_names,
    "reftable": reftable,
    "branch named cra": branch_named_cra,
    "ambiguous names": ambiguous_names,
}
"""By name."""
