"""Has the server load the model of a run's first question while the run does what needs no model."""

import contextlib
import threading
from collections.abc import Iterator

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.settings import Settings
from clean_room_agent.app.wiring import router_of
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.errors import ModelError
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import ModelLoad
from clean_room_agent.orchestrator.spending import TimeLog
from clean_room_agent.orchestrator.task import PlanGiven


@contextlib.contextmanager
def loading(settings: Settings, model: ModelConfig | None, times: TimeLog) -> Iterator[None]:
    """Meanwhile the server loads the model, if it loads models on demand; what is not loaded by the end of the block is given up.

    A server that cannot load it fails the first question; here, that is only noted with the time it took.
    """
    load = open_server(settings.models).loading(model) if model is not None else None
    if model is None or load is None:
        yield
        return
    thread = threading.Thread(target=_load, args=(load, model.tag, times), name="loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        load.cancel()
        thread.join()


def first_model(settings: Settings, given: PlanGiven) -> ModelConfig:
    """The model of a run's first question: what the task is about, or, where a plan says that, what it needs to see."""
    router = router_of(settings)
    if given != PlanGiven():
        return router.resolve("classifier", "scope_judgment", "scope")
    return router.resolve("reasoning", "task_analysis", "task_analysis")


def _load(load: ModelLoad, tag: str, times: TimeLog) -> None:
    began, said = utc_now(), tag
    try:
        load.run()
    except ModelError as error:
        said = f"{tag}: {error.message}"
    times.add(TimeKind.MODEL_LOAD, said, began_at=began)
