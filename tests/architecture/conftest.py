"""Two runs that many tests look at, each made once: one watched from inside, one in which much happens."""

import pytest
from testing.runs.solving import make_project, serving
from tests.architecture.eventful_run import Eventful, eventful_run
from tests.architecture.watched_run import Watched, watch


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A solve in which nothing goes wrong."""
    project = make_project(tmp_path_factory.mktemp("watched"))
    with serving(project) as server:
        project.configure(server.base_url)
        return watch(project, ("solve", project.task))


@pytest.fixture(scope="session")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Eventful:
    """A solve on a dirty tree with an unreadable answer and a failed attempt, in a small window."""
    return eventful_run(tmp_path_factory.mktemp("eventful"), marks=True, budget=SMALL)


SMALL = {"context_window": 8192, "reserved_tokens": 3072}
