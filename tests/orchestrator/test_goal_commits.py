from pathlib import Path

import pytest
from testing import repositories
from testing.runs.memory_commits import MemoryCommits, MemoryHistory

from clean_room_agent.cancellation import Interrupts
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.repository import open_repository
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.goal_commits import unmerged, without_goal_tests

OLD = "import a\n\n\ndef test_one():\n    assert a.one == 1\n"
GOAL = "\n\ndef test_goal():\n    assert a.two == 2\n"
OWN = "\n\ndef test_own():\n    assert a.three == 3\n"


@pytest.mark.parametrize(
    ("base", "added", "now", "left"),
    [
        (OLD, OLD + GOAL, OLD + GOAL, OLD),
        (OLD, OLD + GOAL, OLD + GOAL + OWN, OLD + OWN),
        (OLD, GOAL + OLD, OWN + GOAL + OLD, OWN + OLD),
        (OLD, OLD + GOAL, OLD.replace("== 1", "== 7") + GOAL, OLD.replace("== 1", "== 7")),
        (OLD, OLD + GOAL, OLD, OLD),
        (OLD, OLD + GOAL, OLD + GOAL.replace("== 2", "== 9"), OLD),
        ("", "import b\n" + GOAL, "import b\n" + GOAL + OWN, "import b\n" + OWN),
        (OLD, "import b\n" + OLD + GOAL, "import b\n" + OLD + GOAL + OWN, "import b\n" + OLD + OWN),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n"),
        ("a\nc\n", "a\nb\nc\n", "c\n", "c\n"),
        ("import b\na\n", "import b, c\na\nx\n", "import b, c\na\nx\ny\n", "import b, c\na\ny\n"),
        (OLD, OLD + GOAL, OLD + GOAL.replace("== 2", "== 9") + OWN, OLD + OWN),
        ("a", "a\nb", "a\nb", "a"),
    ],
    ids=repr,
)
def test_what_was_added_is_taken_out_of_what_was_made_of_it(
    base: str, added: str, now: str, left: str
) -> None:
    found = unmerged(base.encode(), added.encode(), now.encode())
    assert found.split() == left.encode().split()


def test_the_steps_are_made_anew_without_the_goal_tests() -> None:
    history = MemoryHistory()
    base = history.add({"a.py": "0\n", "tests/test_a.py": OLD})
    goals = history.add({"a.py": "0\n", "tests/test_a.py": OLD + GOAL, "tests/test_g.py": GOAL})
    first = history.add({"a.py": "1\n", "tests/test_a.py": OLD + GOAL, "tests/test_g.py": GOAL})
    second = history.add(
        {"a.py": "1\n", "b.py": "", "tests/test_a.py": OLD + GOAL + OWN, "tests/test_g.py": GOAL}
    )
    commits = MemoryCommits(history, base)
    tip = without_goal_tests(commits, goals, (first, second))
    assert history.files[tip] == {"a.py": "1\n", "b.py": "", "tests/test_a.py": OLD + OWN}
    assert history.refs == {"without-goals": tip}


def test_a_file_of_goal_tests_alone_does_not_exist_without_them() -> None:
    history = MemoryHistory()
    base = history.add({"a.py": "0\n"})
    goals = history.add({"a.py": "0\n", "tests/test_g.py": GOAL})
    last = history.add({"a.py": "1\n", "tests/test_g.py": GOAL.replace("== 2", "== 9")})
    tip = without_goal_tests(MemoryCommits(history, base), goals, (last,))
    assert history.files[tip] == {"a.py": "1\n"}


def test_made_twice_the_commits_are_the_same(tmp_path: Path) -> None:
    repositories.make_repository(tmp_path / "r", {"a.py": "0\n", "tests/test_a.py": OLD})
    repo = open_repository(tmp_path / "r")
    commits = RunCommits(repo, "0b0c0d0e-0000-4000-8000-000000000000", repo.head, Interrupts())

    def change(text: str) -> FileChange:
        return FileChange(data=text.encode(), mode="100644")

    goals = commits.commit({"tests/test_a.py": change(OLD + GOAL)}, "Goals\n")
    commits.head = goals
    first = commits.commit({"a.py": change("1\n")}, "First\n\nwhy\n")
    commits.head = first
    second = commits.commit({"a.py": change("2\n")}, "Second\n")
    tips = {without_goal_tests(commits, goals, (first, second)) for _ in range(2)}
    assert len(tips) == 1
    (tip,) = tips
    log = repo.git("log", "--format=%s|%b", tip).decode()
    assert log.startswith("Second|\nFirst|why\n")
    assert "Goals" not in log
    assert commits.tree(tip).data("tests/test_a.py") == OLD.encode()
    assert commits.tree(tip).data("a.py") == b"2\n"
