"""Models that a local server does not run itself: it sends their prompts on, as Ollama does to its cloud."""

from collections.abc import Callable

from pydantic import BaseModel

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.config import CLOUD, is_cloud_tag
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.server_errors import Target


class Forwarding(BaseModel):
    """What Ollama says of a model that it forwards, wherever it speaks of one."""

    remote_host: str | None = None
    remote_model: str | None = None

    def destination(self, tag: str) -> str:
        """The machine that prompts for the model are sent on to; "" for none."""
        cloud = CLOUD if self.remote_model or is_cloud_tag(tag) else ""
        return self.remote_host or cloud


class ForwardGuard:
    """Refuses models that a server forwards; each is asked about once, before its first prompt."""

    def __init__(self, destination: Callable[[str], str], *, allowed: bool) -> None:
        """`destination` asks the server where a model's prompts are sent on to; "" for nowhere."""
        self._destination = destination
        self._local: set[str] = set()
        self._allowed = allowed

    def refusal(self, target: Target) -> ModelError | None:
        """The error for a model whose prompts would leave this machine, or of which that cannot be found out."""
        if self._allowed or target.tag in self._local:
            return None
        try:
            host = CLOUD if is_cloud_tag(target.tag) else self._destination(target.tag)
        except ModelError as error:
            return error
        if host:
            return server_errors.forwarded(target, host)
        self._local.add(target.tag)
        return None

    def seen(self, target: Target, said: Forwarding) -> ModelError | None:
        """The error for an answer that says it came from elsewhere: the name may stand for another model by now."""
        host = said.destination(target.tag)
        return server_errors.forwarded(target, host) if host and not self._allowed else None
