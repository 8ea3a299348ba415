"""Which commits are tasks; each filter counts what it refuses."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.histories import KEEP_CENTS, LIST_NAMES, make_history, mined

from clean_room_agent.git.log import CommitChange, PathChange
from clean_room_agent.training.mining import LAST_SECOND, clean_message, mine, names_file, refusal

TASK = "Keep every cent when a bill is split"


def changed(path: str = "src/money.py", lines: int | None = 3, status: str = "M") -> PathChange:
    return PathChange(path=path, status=status, is_file=True, lines=lines)


def commit(
    message: str = TASK,
    files: tuple[PathChange, ...] = (changed(),),
    author: str = "Ada <ada@example.org>",
    parents: tuple[str, ...] = ("b" * 40,),
) -> CommitChange:
    return CommitChange(
        hash="a" * 40, parents=parents, timestamp=0, author=author, message=message, files=files
    )


def test_a_commit_with_a_task_in_words_is_kept() -> None:
    assert refusal(commit()) == ""
    assert (
        refusal(commit(files=(changed(), changed("tests/test_money.py", 400), changed("CHANGES.md")))) == ""
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (commit(parents=("b" * 40, "c" * 40)), "merge"),
        (commit(parents=()), "first commit"),
        (commit("Fix the rounding"), "message of few words"),
        (commit(author="dependabot[bot] <bot@example.org>"), "by a bot"),
        (commit(f"{TASK} \udce9"), "message or author not in UTF-8, or with control characters"),
        (
            commit(author="J\udce9r\ufffdme <j@example.org>"),
            "message or author not in UTF-8, or with control characters",
        ),
        (commit(f"{TASK}\x1b[31m"), "message or author not in UTF-8, or with control characters"),
        (commit("word " * 1_000_000), "message too long"),
        (replace(commit(), timestamp=LAST_SECOND + 1), "date after the year 9999"),
        (commit(files=(changed("d/" * 1500 + "deep.py"),)), "file names that are not shown or edited"),
        (commit(files=(changed("na\udcefve.py"),)), "file names that are not shown or edited"),
        (commit("Bump requests from 2.0 to 2.1 in the tests"), "bump, release or formatting"),
        (commit("Release version 3.1 of the whole thing"), "bump, release or formatting"),
        (commit("fix: typos in the docstrings of all modules"), "bump, release or formatting"),
        (commit(f"{TASK}\n\nSee https://example.org/1"), "message with a link or a hash"),
        (commit(f"{TASK}, as in 1a2b3c4d5e"), "message with a link or a hash"),
        (commit(f"{TASK}\n\n{'word ' * 500}"), "message too long"),
        (commit(files=()), "no file"),
        (commit(files=(changed("README.md"),)), "no source file"),
        (commit(files=(changed("tests/test_money.py"),)), "tests only"),
        (commit(files=tuple(changed(f"src/{n}.py") for n in range(6))), "more than 5 source files"),
        (commit(files=(changed(), changed("data/prices.json"))), "other files"),
        (commit(files=(changed(status="T"),)), "not plain text files"),
        (commit(files=(changed(lines=None),)), "not plain text files"),
        (commit(files=(changed(lines=199), changed("src/b.py", 1))), "200 changed lines or more"),
        (commit(files=(changed("src/a\nb.py"),)), "file names that are not shown or edited"),
    ],
)
def test_what_is_no_task_is_refused_with_its_reason(change: CommitChange, reason: str) -> None:
    assert refusal(change) == reason


def test_what_is_kept_and_what_is_counted_are_the_history(tmp_path: Path) -> None:
    made = make_history(tmp_path / "till")
    kept, refused = mined(tmp_path / "till" / ".git")
    assert len(kept) + refused.total() == len(made) + 1
    assert refused == {"first commit": 1, "bump, release or formatting": 2}
    assert {KEEP_CENTS, LIST_NAMES} < {one.task for one in kept}


def test_commits_on_the_list_are_not_used() -> None:
    refused: Counter[str] = Counter()
    assert list(mine([commit()], refused, skip={"a" * 40})) == []
    assert refused == {"excluded by list": 1}


@pytest.mark.parametrize(
    ("message", "task"),
    [
        (f"{TASK} (#12)", TASK),
        (f"{TASK}. Fixes #12", TASK),
        (f"{TASK}\n\nCloses #12\nSigned-off-by: Ada <ada@example.org>\n", TASK),
        (f"{TASK}\n\n\n\nIn all currencies.", f"{TASK}\n\nIn all currencies."),
    ],
)
def test_a_message_is_cleaned_of_what_no_user_would_write(message: str, task: str) -> None:
    assert clean_message(message) == task


def test_a_task_that_names_its_file_is_known() -> None:
    assert names_file("Keep cents in `money.py`, please", ("src/money.py",))
    assert names_file("src/money.py: keep cents", ("src/money.py",))
    assert not names_file("Keep the money", ("src/money.py",))


def test_the_last_year_that_a_calendar_has_is_used() -> None:
    (kept,) = mine([replace(commit(), timestamp=LAST_SECOND)], Counter())
    assert kept.timestamp == "9999-12-31T23:59:59+00:00"
