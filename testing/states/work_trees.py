"""States of work tree and index."""

import os
from pathlib import Path

from testing.repositories import commit, git, init_repository, make_repository, write
from testing.runs.solving import TILL
from testing.states.hostile import canary_program
from testing.states.place import LATER, LATIN, Maker, Place, till

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "1" * 64 + "\nsize 12345\n"


def clean(folder: Path) -> Place:
    return Place(top=till(folder))


def staged(folder: Path) -> Place:
    top = till(folder)
    write(top, {"till/receipt.py": LATER, "staged.txt": "new\n"})
    git(top, "add", "-A")
    return Place(top=top)


def unstaged(folder: Path) -> Place:
    top = till(folder)
    write(top, {"till/receipt.py": LATER})
    return Place(top=top)


def staged_and_changed_again(folder: Path) -> Place:
    top = till(folder)
    write(top, {"till/receipt.py": LATER})
    git(top, "add", "-A")
    write(top, {"till/receipt.py": LATER + "HEIGHT = 2\n", "notes.txt": "other\n"})
    return Place(top=top)


def intent_to_add(folder: Path) -> Place:
    top = till(folder)
    write(top, {"later.py": "x = 1\n"})
    git(top, "add", "-N", "later.py")
    return Place(top=top)


def deleted(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, "one.txt": "1\n", "two.txt": "2\n"})
    git(top, "rm", "-q", "one.txt")
    write(top, {"two.txt": None})
    return Place(top=top)


def renamed(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, "one.txt": "1\n", "two.txt": "2\n"})
    git(top, "mv", "one.txt", "eins.txt")
    (top / "two.txt").rename(top / "zwei.txt")
    return Place(top=top)


def other_modes(folder: Path) -> Place:
    top = till(folder)
    (top / "till/receipt.py").chmod(0o755)
    (top / "notes.txt").chmod(0o600)
    return Place(top=top)


def untracked_with_secrets_and_giants(folder: Path) -> Place:
    top = till(folder)
    write(top, {"draft.txt": "draft\n", ".env": "TOKEN=1\n", "id_rsa": "key\n", "deep/er/x.txt": ""})
    with (top / "giant.bin").open("wb") as file:
        file.truncate(30_000_000)
    return Place(top=top)


def ignored_files(folder: Path) -> Place:
    top = make_repository(
        folder / "till", {**TILL, ".gitignore": "*.log\nbuild/\n", ".worktreeinclude": "settings.log\n"}
    )
    write(top, {"a.log": "noise", "build/out.bin": b"\0\1", "settings.log": "a = 1\n"})
    return Place(top=top)


def hidden_by_flags(folder: Path) -> Place:
    top = till(folder)
    git(top, "update-index", "--assume-unchanged", "notes.txt")
    git(top, "update-index", "--skip-worktree", "till/receipt.py")
    write(top, {"notes.txt": "hidden\n", "till/receipt.py": LATER})
    return Place(top=top)


def links_pipes_and_folders_for_files(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, "was_a_file": "x", "was_a_folder/x": "x"})
    write(top, {"was_a_file": None, "was_a_file/now/deep.txt": "x", "was_a_folder/x": None})
    (top / "was_a_folder").rmdir()
    (top / "was_a_folder").symlink_to("/etc/hostname")
    os.mkfifo(top / "pipe")
    return Place(top=top)


def with_library(folder: Path) -> Path:
    """The project with a submodule that has a submodule."""
    make_repository(folder / "deep", {"deep.py": "D = 1\n"})
    library = make_repository(folder / "library", {"lib.py": "L = 1\n"})
    git(library, "submodule", "-q", "add", str(folder / "deep"), "deep")
    git(library, "commit", "-q", "-m", "Add deep")
    top = till(folder)
    git(top, "submodule", "-q", "add", str(library), "vendor/library")
    git(top, "submodule", "-q", "update", "--init", "--recursive")
    git(top, "commit", "-q", "-m", "Add library")
    return top


def submodules(folder: Path) -> Place:
    return Place(top=with_library(folder))


def submodules_with_changes(folder: Path) -> Place:
    top = with_library(folder)
    write(top / "vendor/library", {"lib.py": "L = 2\n", "new.py": ""})
    write(top / "vendor/library/deep", {"deep.py": "D = 2\n"})
    return Place(top=top)


def submodule_at_another_commit(folder: Path) -> Place:
    top = with_library(folder)
    library = top / "vendor/library"
    write(library, {"lib.py": "L = 3\n"})
    git(library, "-c", "user.name=a", "-c", "user.email=b@c", "commit", "-q", "-a", "-m", "New")
    return Place(top=top)


def with_pointers(folder: Path) -> Path:
    """The project with files of LFS, as they stand where it is not installed."""
    files = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "model.bin": POINTER}
    return make_repository(folder / "till", {**TILL, **files})


def lfs_not_installed(folder: Path) -> Place:
    return Place(top=with_pointers(folder))


def lfs_installed(folder: Path) -> Place:
    top = with_pointers(folder)
    programs = folder / "bin"
    programs.mkdir()
    canary_program(folder, programs / "git-lfs")
    for key, value in (("clean", "clean -- %f"), ("smudge", "smudge -- %f"), ("process", "filter-process")):
        git(top, "config", f"filter.lfs.{key}", f"git-lfs {value}")
    git(top, "config", "filter.lfs.required", "true")
    write(top, {"model.bin": b"\0the real thing", "new.bin": b"\0another"})
    return Place(top=top, environment={"PATH": f"{programs}:{os.environ['PATH']}"})


def filter_drivers(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, ".gitattributes": "*.txt filter=a=b\n", "x.txt": "x\n"})
    program = canary_program(folder, folder / "filter")
    for kind in ("clean", "smudge", "process"):
        git(top, "config", f"filter.a=b.{kind}", str(program))
    git(top, "config", "filter.a=b.required", "true")
    write(top, {"x.txt": "changed\n", "new.txt": "new\n"})
    return Place(top=top)


def autocrlf(folder: Path) -> Place:
    top = till(folder)
    git(top, "config", "core.autocrlf", "true")
    git(top, "config", "core.safecrlf", "true")
    for path in sorted(top.rglob("*.py")):
        path.unlink()
    git(top, "checkout", "--", ".")
    write(top, {"notes.txt": b"one\r\nmixed\n"})
    return Place(top=top)


def attributes_of_line_ends_and_encodings(folder: Path) -> Place:
    wide = "größe\r\n".encode("utf-16")
    attributes = "*.py text eol=crlf\n*.wide text working-tree-encoding=UTF-16\n$Id$ ident\n*.txt ident\n"
    top = init_repository(folder / "till")
    write(top, {".gitattributes": attributes, "a.wide": wide, "id.txt": "$Id$\n"})
    commit(top, TILL, "Begin")
    for path in (*sorted(top.rglob("*.py")), top / "id.txt"):
        path.unlink()
    git(top, "checkout", "--", ".")
    write(top, {"a.wide": "größer\r\n".encode("utf-16"), "new.wide": wide})
    return Place(top=top)


def sparse_cone(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, "other/x.py": "", "hidden/y.py": "Y = 1\n"})
    git(top, "sparse-checkout", "set", "--cone", "--sparse-index", "till", "tests", "other")
    return Place(top=top)


def sparse_patterns(folder: Path) -> Place:
    top = make_repository(folder / "till", {**TILL, "hidden/y.py": "Y = 1\n"})
    git(top, "sparse-checkout", "set", "--no-cone", "/*", "!/hidden/")
    write(top, {"till/receipt.py": LATER})
    return Place(top=top)


def split_index_and_caches(folder: Path) -> Place:
    top = till(folder)
    git(top, "config", "core.splitIndex", "true")
    git(top, "config", "core.untrackedCache", "true")
    git(top, "config", "feature.manyFiles", "true")
    git(top, "update-index", "--split-index", "--untracked-cache", "--index-version", "4")
    git(top, "status")
    write(top, {"till/receipt.py": LATER, "new.txt": ""})
    git(top, "add", "new.txt")
    return Place(top=top)


def held_locks(folder: Path) -> Place:
    top = till(folder)
    write(
        top,
        {"till/receipt.py": LATER, ".git/index.lock": b"", ".git/HEAD.lock": b"", ".git/config.lock": b""},
    )
    return Place(top=top)


def no_index(folder: Path) -> Place:
    top = till(folder)
    (top / ".git/index").unlink()
    return Place(top=top)


def broken_index(folder: Path) -> Place:
    top = till(folder)
    write(top, {".git/index": b"garbage"})
    return Place(top=top, refused="index file")


def strange_file_names(folder: Path) -> Place:
    odd = {"sp ace\nline.txt": "x", LATIN + ".txt": "x", "größe.txt": "x", '"quoted".txt': "x", "-n.txt": "x"}
    top = make_repository(folder / "till", {**TILL, **odd, ":(top)x": "x", "a[b]*.py": "x = 1\n"})
    write(top, {"new\tname\n.txt": "x", LATIN + "2.py": "y = 1\n", "sp ace\nline.txt": "changed"})
    return Place(top=top)


def names_that_differ_by_case(folder: Path) -> Place:
    return Place(
        top=make_repository(folder / "till", {**TILL, "Till/Money.py": "X = 1\n", "NOTES": "", "notes": ""})
    )


STATES: dict[str, Maker] = {
    "clean": clean,
    "staged": staged,
    "unstaged": unstaged,
    "staged and changed again": staged_and_changed_again,
    "intent to add": intent_to_add,
    "deleted": deleted,
    "renamed": renamed,
    "other modes": other_modes,
    "untracked with secrets and giants": untracked_with_secrets_and_giants,
    "ignored files": ignored_files,
    "hidden by flags": hidden_by_flags,
    "links pipes and folders for files": links_pipes_and_folders_for_files,
    "submodules": submodules,
    "submodules with changes": submodules_with_changes,
    "submodule at another commit": submodule_at_another_commit,
    "lfs not installed": lfs_not_installed,
    "lfs installed": lfs_installed,
    "filter drivers": filter_drivers,
    "autocrlf": autocrlf,
    "attributes of line ends and encodings": attributes_of_line_ends_and_encodings,
    "sparse cone": sparse_cone,
    "sparse patterns": sparse_patterns,
    "split index and caches": split_index_and_caches,
    "held locks": held_locks,
    "no index": no_index,
    "broken index": broken_index,
    "strange file names": strange_file_names,
    "names that differ by case": names_that_differ_by_case,
}
"""By name."""
