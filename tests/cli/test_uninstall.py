"""README's commands to uninstall remove everything of `cra` from a repository, and nothing else."""

import os
import re
from pathlib import Path

from testing.patience import PATIENCE
from testing.repositories import fingerprint, git
from testing.runs.solving import make_project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent import proc

README = Path(__file__).parents[2] / "README.md"
SECTION = re.compile(r"^### Uninstall\n(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)


def commands() -> str:
    """The lines after the prompts of the section's one block."""
    section = SECTION.search(README.read_text(encoding="utf-8"))
    assert section is not None
    (block,) = re.findall(r"^```console\n(.*?)^```$", section["text"], re.MULTILINE | re.DOTALL)
    lines = block.splitlines()
    assert all(line.startswith("$ ") for line in lines)
    return "\n".join(line.removeprefix("$ ") for line in lines)


def test_everything_goes_and_nothing_else(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    git(project.top, "branch", "cra-like")
    git(project.top, "tag", "mine")
    before, refs = fingerprint(project.top), git(project.top, "for-each-ref")
    temporary, state, config = (tmp_path / name for name in ("temporary", "state", "config"))
    for folder in (temporary / "cra-demo-1", state / "cra", state / "other", config / "clean-room-agent"):
        folder.mkdir(parents=True)
    (temporary / "mine").write_text("")
    with OllamaServer(project.oracle) as server:
        assert project.solve(server).code == 0
    assert "refs/heads/cra/" in git(project.top, "for-each-ref")
    assert "refs/cra/" in git(project.top, "for-each-ref")
    assert (project.home / "cache" / "cra").is_dir()
    environment = project.environment() | {
        "TMPDIR": str(temporary),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(config),
    }
    environment["PATH"] = os.environ["PATH"]
    proc.run(
        ("bash", "-euo", "pipefail", "-c", commands()), cwd=project.top, env=environment, timeout=PATIENCE
    )
    assert git(project.top, "for-each-ref") == refs
    assert fingerprint(project.top) == before
    assert not (project.top / ".clean_room").exists()
    assert os.listdir(project.home / "cache") == []  # noqa: PTH208 - names alone
    assert sorted(os.listdir(temporary)) == ["mine"]  # noqa: PTH208
    assert sorted(os.listdir(state)) == ["other"]  # noqa: PTH208
    assert os.listdir(config) == []  # noqa: PTH208
    assert git(project.top, "worktree", "list").count("\n") == 0
