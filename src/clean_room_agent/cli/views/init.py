"""The dialog of `cra init` with the user."""

from collections.abc import Sequence
from typing import Any

import click

from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.cli import output
from clean_room_agent.errors import ConfigError, GitError
from clean_room_agent.workspace import Workspace


class TerminalAnswers:
    """Values from flags, from discovery, or from the person at the terminal; never invented."""

    def __init__(self, *, accept: bool, ask: bool) -> None:
        self._accept = accept
        self._ask = ask
        self.missing: list[str] = []
        self.found_more = False
        """Whether something that is missing was found, and only lacks consent."""

    def settle(self, flag: str, what: str, given: Any, found: Any, choices: Sequence[str] = ()) -> Any:
        """The value to use; of numbered `choices`, the person may give the number."""
        if given is not None:
            return given
        if self._ask and choices:
            return self._chosen(what, found, choices)
        if self._ask:
            return click.prompt(what, default=found, type=type(found) if found is not None else str, err=True)
        if self._accept and found is not None:
            output.aside(f"{what}: {found}")
            return found
        self.found_more = self.found_more or found is not None
        self.missing.append(f"{flag} ({what}" + (f"; found: {found})" if found is not None else ")"))
        return None

    def _chosen(self, what: str, found: str | None, choices: Sequence[str]) -> str:
        said = str(click.prompt(f"{what} (name or number)", default=found, err=True)).strip()
        if said.isdecimal() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        if said not in choices and f"{said}:latest" not in choices:
            output.aside(f"the server does not list {said}; `cra check` says whether it has it")
        return said

    @property
    def asks(self) -> bool:
        """Whether a person can be asked at the terminal."""
        return self._ask

    def tell(self, text: str) -> None:
        """Print a line for the user."""
        output.aside(text)

    def agrees(self, what: str) -> bool:
        """Whether the user consents, now or by --yes."""
        return self._accept or (self._ask and click.confirm(what, err=True))


def try_tests(workspace: Workspace) -> None:
    """Run the tests once and print their results and times. A failure is reported; the configuration stays."""
    from clean_room_agent.app.tests_check import check_tests

    try:
        for found in check_tests(workspace, load_settings(workspace.config, Overrides())):
            output.aside(f"{'ok  ' if found.ok else 'FAIL'} {found.name}: {found.text}")
            if not found.ok and found.remedy:
                output.aside(f"       -> {found.remedy}")
    except (ConfigError, GitError) as error:
        output.aside(f"FAIL tests: {error.message}" + (f"\n       -> {error.hint}" if error.hint else ""))
