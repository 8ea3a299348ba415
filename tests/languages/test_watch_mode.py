import pytest

from clean_room_agent.languages.watch_mode import watching

SCRIPTS = {
    "test": "jest --watchAll",
    "test:ci": "jest --watchAll=false",
    "dev": "vitest dev",
    "both": "npm run build && ava --watch",
    "odd": 1,
}


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        ("jest --watch", "--watch"),
        ("npx jest --watchAll src", "--watchAll"),
        ("npx ava --watch", "--watch"),
        ("node --test --watch", "--watch"),
        ("tsx watch test.ts", "tsx watch"),
        ("cd web && npx vitest watch", "vitest watch"),
        ("nodemon --exec 'npm run lint'", "nodemon"),
        ("cargo watch -x test", "cargo watch"),
        ("ptw -- -q", "ptw"),
        ("python3 -m pytest_watch && pytest-watcher .", "pytest-watcher"),
        ("find . | entr -r make test", "entr"),
        ("npm test", "--watchAll"),
        ("npm t", "--watchAll"),
        ("pnpm --silent run dev", "vitest dev"),
        ("yarn both", "--watch"),
        ("npm test -- --watchAll=false", ""),
        ("npm run test:ci", ""),
        ("npm run odd", ""),
        ("npm run none", ""),
        ("vitest run --no-watch", ""),
        ("vitest", ""),
        ("pytest --watch-path x tests/nodemon.py tests/ptw/", ""),
        ("python3 -m pytest -k 'watch and entry'", ""),
    ],
)
def test_what_waits_for_changes_is_seen_in_a_command_and_its_scripts(command: str, waits: str) -> None:
    assert watching(command, SCRIPTS) == waits
