"""Repositories as they come: refused with a remedy, or solved without a byte changed that nobody asked to change."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from testing import repositories
from testing.forked import Forked
from testing.repositories import git
from testing.runs.solving import (
    MENDED_MONEY,
    MONEY,
    TASK,
    TILL,
    Project,
    make_project,
    project_at,
    serving,
)
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.workspace import Workspace


def test_a_repository_without_a_configuration_names_the_command_that_writes_it(till: Project) -> None:
    told = till.cra("solve", TASK)
    assert (told.code, told.traces) == (2, {})
    assert (
        f"error: no configuration at {Workspace(repo=till.top).config}\n  -> run `cra init --repo" in told.err
    )


MONEY_WITH_SIGN = '"""Sums of money, in cents (¢), as in a café."""\n' + MONEY.partition("\n")[2]
COOKIE = "# -*- coding: latin-1 -*-\n"
FORMS: dict[str, tuple[bytes, Callable[[str], bytes]]] = {
    "line ends of Windows": (
        MONEY.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
    ),
    "latin-1": ((COOKIE + MONEY_WITH_SIGN).encode("latin-1"), lambda text: text.encode("latin-1")),
    "a byte-order mark": (MONEY.encode("utf-8-sig"), lambda text: text.encode("utf-8-sig")),
    "no line break at the end": (MONEY.rstrip("\n").encode(), str.encode),
    "form feeds and trailing blanks": (MONEY.replace("\n\n\n", "\n\f\n  \n").encode(), str.encode),
}


MONEY_LINES = "    share = cents // people\n    return [share] * people\n"
MENDED_LINES = (
    "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)\n"
)


def project_text(data: bytes) -> str:
    """As a prompt shows it."""
    text = data.decode("utf-8-sig") if b"\xa2" not in data else data.decode("latin-1")
    return text.replace("\r\n", "\n")


def test_a_files_form_survives_an_edit_and_a_letter_that_its_encoding_lacks_is_refused(
    tmp_path: Path,
) -> None:
    """One file of each form, and the step changes them all."""
    names = {f"till/form{number}.py": name for number, name in enumerate(sorted(FORMS))}
    files = {path: FORMS[name][0] for path, name in names.items()}
    changed = {path: project_text(data).replace(MONEY_LINES, MENDED_LINES) for path, data in files.items()}
    till = make_project(
        tmp_path,
        {**TILL, **files},
        {**changed, "till/money.py": MENDED_MONEY},
        task=f"{TASK}, as must {', '.join(names)}",
    )
    latin = next(path for path, name in names.items() if name == "latin-1")

    def with_euro(_: ChatCall, right: str) -> str:
        before, path, edits = right.partition(latin)
        return before + path + edits.replace("    share, rest", "    # €\n    share, rest", 1)

    told = till.solve_scripted({IMPLEMENT.title: [with_euro]})
    assert (told.code, told.traces) == (0, {}), told.err + told.out
    assert told.recorded.outcomes == ["refused", "applied_and_passed"]
    assert "refused (" not in told.out
    said = f"{latin}: '€' does not exist in the file's encoding latin-1"
    assert said in told.recorded.attempts[0].error
    assert f"refused: {said}" in told.err
    assert said in told.recorded.calls_of("implement")[1].request.prompt
    held = repositories.read_tree(till.top, told.branches[0])
    for path, name in names.items():
        assert changed[path] != project_text(files[path])
        assert held[path] == FORMS[name][1](changed[path]), name
        assert f"{path}  +2 -2" in told.out


def test_apply_brings_the_change_into_the_tree_and_uncommitted_work_is_carried_and_stays_where_it_is(
    till: Project,
) -> None:
    notes = "the customer is always right\n"
    repositories.write(
        till.top, {"till/receipt.py": str(TILL["till/receipt.py"]) + "\nWIDTH = 40\n", "notes.txt": notes}
    )
    repositories.write(till.top, {"staged.txt": "staged\n", ".env": "TOKEN=1\n"})
    git(till.top, "add", "staged.txt")
    told = till.solve_scripted(None, "--apply")
    assert (told.code, told.traces) == (0, {"changed": ["tree:till", "tree:till/money.py"]}), told.err
    assert (till.top / "till/money.py").read_text() == MENDED_MONEY
    assert "applied to your working tree: till/money.py" in told.out
    assert git(till.top, "diff", "--cached", "--name-only") == "staged.txt"
    assert re.search(r"snapshot: [0-9a-f]{10}, .*3 uncommitted files", told.err)
    assert ".env" in told.err
    assert "the branch also carries your uncommitted work, in its first commit" in told.out
    held = repositories.read_tree(till.top, told.branches[0])
    assert held["notes.txt"] == notes.encode()
    assert held["staged.txt"] == b"staged\n"
    assert b"WIDTH = 40" in held["till/receipt.py"]
    assert ".env" not in held
    assert told.recorded.run is not None
    assert '"untracked": ["notes.txt"]' in told.recorded.run.snapshot


def test_what_a_repository_may_have_is_no_hindrance_and_stays_as_it_is(tmp_path: Path) -> None:
    """A strange name, line ends that a checkout changes, an executable file, a submodule, a detached head, hooks, a locked index, strange files."""
    top = repositories.make_repository(tmp_path / "my till, 'größer' & 100%", TILL)
    library = repositories.make_repository(tmp_path / "library", {"lib.py": "X = 1\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/library")
    (top / "till/money.py").chmod(0o755)
    (top / ".gitattributes").write_text(
        "*.py text eol=crlf ident\n"
    )  # which a checkout follows, and the tree does not
    git(top, "add", ".gitattributes")
    git(top, "commit", "-q", "-a", "-m", "Add a library; make a file executable")
    git(top, "checkout", "-q", "--detach")
    mark = tmp_path / "ran"
    for name in ("post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        hook = top / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> '{mark}'\n")
        hook.chmod(0o755)
    (top / "link").symlink_to("/etc/hostname")
    os.mkfifo(top / "pipe")
    for odd in (b"no text \xff\n.txt", b"no_text_\xff.py"):
        (top / os.fsdecode(odd)).write_text("x = 1\n")
    lock = top / ".git/index.lock"
    lock.write_text("")
    told = project_at(top, TILL).solve_scripted()
    assert (told.code, told.traces) == (0, {}), told.err
    assert lock.exists()
    lock.unlink()
    assert not mark.exists()
    (branch,) = told.branches
    assert git(top, "ls-tree", branch, "till/money.py").startswith("100755 blob")
    link = git(top, "ls-tree", "HEAD", "vendor/library")
    assert link.startswith("160000 commit")
    assert git(top, "ls-tree", branch, "vendor/library") == link


def test_two_runs_at_once_do_not_meet(till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        with Forked(till, "solve", TASK) as one, Forked(till, "solve", TASK) as other:
            said = [each.communicate() for each in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0], said
    told = till.observe(lambda: (0, "", ""))
    assert (told.worktrees, len(told.branches), told.sessions) == ((), 2, ())
