"""How much of the program one question to a model passes through, and one run imports: the figures in
`planning/architecture.md`. `python -m tests.architecture.test_figures` prints them.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from testing.runs.solving import make_project, serving
from tests.architecture.watched_run import Watched, watch

MAX_FRAMES = 18
MAX_MODULES = 10
"""Between `main` and the transport, neither counted."""
MAX_IMPORTED = 183
"""435 at first."""
NEAR = 20
"""Modules by which the page's figure may be off before it is to be measured again."""
TRANSPORT = "llm.transports.ollama:OllamaTransport.send"
PAGE = Path(__file__).parents[2] / "planning" / "architecture.md"


def judged(folder: Path) -> Watched:
    """A run on the project of five files, in which each file in doubt is judged by a question of its own."""
    project = make_project(folder)
    with serving(project) as server:
        project.configure(server.base_url, judgments={"route": "each"}, models={"parallel": 1, "retries": 1})
        return watch(project, ("solve", project.task))


def judgment(run: Watched) -> tuple[str, ...]:
    """The stack of a scope judgment, from `main` to the transport."""
    stacks = (
        entry.stack
        for entry in run.connections()
        if "retrieval.scope_stage:ScopeStage.run" in entry.stack and TRANSPORT in entry.stack
    )
    stack = next(stack for stack in stacks if not any("_probed_server" in frame for frame in stack))
    return stack[stack.index("cli.main:main") : stack.index(TRANSPORT) + 1]


def between(stack: Sequence[str]) -> tuple[str, ...]:
    """The modules that a stack passes between its ends, each once."""
    modules = dict.fromkeys(frame.partition(":")[0] for frame in stack)
    return tuple(modules)[1:-1]


def figures(run: Watched) -> tuple[int, int, int]:
    """Frames and modules of a judgment, and modules imported."""
    stack = judgment(run)
    return len(stack), len(between(stack)), len(run.imported)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return judged(tmp_path_factory.mktemp("figures"))


def test_a_scope_judgment_is_near_the_command(run: Watched) -> None:
    assert run.returncode == 0, run.stderr
    stack = judgment(run)
    assert len(stack) <= MAX_FRAMES, stack
    assert len(between(stack)) <= MAX_MODULES, between(stack)


def test_a_run_imports_no_more_modules_than_it_did(run: Watched) -> None:
    assert len(run.imported) <= MAX_IMPORTED


def test_the_page_has_these_figures(run: Watched) -> None:
    found = re.search(r"\| now \| (\d+) \| (\d+) \| (\d+) \|", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    *said, said_imported = map(int, found.groups())
    *measured, imported = figures(run)
    assert said == measured
    assert abs(said_imported - imported) <= NEAR


def test_modules_between_the_ends_are_counted_once() -> None:
    assert between(("cli.main:main", "cli.main:run", "a:f", "b:g", "a:h", "t:send")) == ("a", "b")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        seen = judged(Path(folder))
    print("\n".join(judgment(seen)))  # noqa: T201
    print("frames, modules between, imported:", figures(seen))  # noqa: T201
