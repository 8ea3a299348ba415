import pytest

from clean_room_agent.query.file_kinds import kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/_pytest/python.py", "code"),
        ("testing/test_python.py", "test"),
        ("lib/app.spec.ts", "test"),
        ("pkg/parse_test.py", "test"),
        ("conftest.py", "test"),
        ("docs/conf.py", "side"),
        ("CHANGES", "side"),
        ("package.json", "side"),
        ("setup.py", "side"),
        ("bin/tool", "code"),
        ("dist/app.js", "side"),
        ("assets/player.min.js", "side"),
        ("src/dist.js", "code"),
        ("src/contest.py", "code"),
        ("tests/readme.md", "test"),
    ],
)
def test_a_path_says_what_kind_a_file_is(path: str, kind: str) -> None:
    assert kind_of(path) == kind
