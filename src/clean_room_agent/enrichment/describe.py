"""Has a model describe files: finds those that are due, asks one prompt for each, and records every answer as it
arrives.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from clean_room_agent import syntax
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.raw.indexing import DescriptionRow, EnrichmentRow, append_enrichment
from clean_room_agent.db.raw.record import Record
from clean_room_agent.enrichment.file_view import KnownFile, fit, outermost, read_facts, without_text
from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentInputs
from clean_room_agent.errors import DegenerateOutput, ModelError, ServerFailed, ServerTimeout, WindowExceeded
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.paths import is_secret_name
from clean_room_agent.query.knowledge import KnowledgeBase

PASSING = (DegenerateOutput, ServerFailed, ServerTimeout)
"""Failures that may be due to one file's prompt: the next file may go well."""
FAILURES_IN_A_ROW = 3
"""After so many in a row, the server is to blame."""
BRIEF = 20
"""Definitions that are shown where the server refused a larger view as too long."""


class Described(Struct, frozen=True, kw_only=True):
    """A file that was asked about."""

    path: str
    purpose: str = ""
    """"" where there is no description."""
    reason: str = ""
    """Why there is none; "" where there is one."""


Prepared = Described | tuple[KnownFile, EnrichmentInputs]
"""A file to be asked about with what is shown of it, or why it is not asked about."""


def find_due_files(
    kb: KnowledgeBase, known: Collection[DescriptionRow], *, every: bool
) -> tuple[tuple[FileRow, ...], tuple[FileRow, ...]]:
    """The files whose present content is described already, and those that are due; the most imported first, then by path.

    Of the languages that the index has symbols of, or with `every` all text files; no empty ones.
    """
    wanted = [
        file
        for file in kb.get_files()
        if file.size_bytes
        and (every or syntax.grammar_of(file.path) is not None)
        and not is_secret_name(file.path)
    ]
    importers = {
        file.id: len({row.file.id for row in kb.get_dependencies(file.id, direction="imported_by")})
        for file in wanted
    }
    wanted.sort(key=lambda file: (syntax.grammar_of(file.path) is None, -importers[file.id], file.path))
    contents = {(row.path, row.content_hash) for row in known}
    return (
        tuple(file for file in wanted if (file.path, file.content_hash) in contents),
        tuple(file for file in wanted if (file.path, file.content_hash) not in contents),
    )


class Describer:
    """Describes the files of one repository, as one pass."""

    def __init__(
        self,
        *,
        kb: KnowledgeBase,
        root: Path,
        models: ModelClient,
        model_tag: str,
        record: Record,
        pass_id: str,
        answered: Callable[[Described], None],
    ) -> None:
        """`answered` is told of each file that is done, in the order of the files."""
        self._kb = kb
        self._root = root
        self._models = models
        self._model_tag = model_tag
        self._record = record
        self._pass_id = pass_id
        self._answered = answered
        self.done: list[Described] = []
        """Files that were asked about."""
        self.gave_up = False
        """Whether it stopped because too many answers in a row could not be read."""

    @property
    def described(self) -> int:
        """How many files have a description by now."""
        return sum(not described.reason for described in self.done)

    def run(self, files: Sequence[FileRow], *, parallel: int, max_unreadable: int) -> None:
        """Ask about the files, `parallel` at a time; each description is in the record once it is there, however this ends.

        After `max_unreadable` files in a row without a readable answer, no further file is asked about.

        Raises:
            WindowExceeded: the window is too small even for the smallest view of a file.
            ModelError: the server is gone or keeps failing.
            KeyboardInterrupt: Ctrl-C was pressed; answers that were under way have come.
        """
        failures = unreadable = 0
        for start in range(0, len(files), parallel):
            prepared = [self._prepare(file) for file in files[start : start + parallel]]
            with ThreadPoolExecutor(parallel) as pool:
                for described, failure in pool.map(self._outcome, prepared):
                    failures = failures + 1 if failure else 0
                    if failure and failures in {FAILURES_IN_A_ROW, len(files)}:
                        raise failure
                    unreadable = unreadable + (failure is None) if described.reason else 0
                    self.done.append(described)
                    self._answered(described)
            if unreadable >= max_unreadable and len(self.done) < len(files):
                self.gave_up = True
                return

    def _prepare(self, file: FileRow) -> Prepared:
        facts = read_facts(self._kb, self._root, file.path)
        if facts is None:
            return Described(path=file.path, reason="it changed meanwhile; the next run asks again")
        window = self._models.window(ENRICHMENT)
        available = window.context - max(window.reserved, ENRICHMENT.max_answer_tokens)
        return facts, fit(facts, available, lambda inputs: self._models.measure(ENRICHMENT, inputs))

    def _outcome(self, prepared: Prepared) -> tuple[Described, ModelError | None]:
        """Runs in a thread of its own: the file's description, with the server's failure if that may be due to this file."""
        if isinstance(prepared, Described):
            return prepared, None
        facts, inputs = prepared
        try:
            return self._describe(facts, inputs), None
        except PASSING as exc:
            return Described(path=facts.file.path, reason=exc.message), exc

    def _describe(self, facts: KnownFile, inputs: EnrichmentInputs) -> Described:
        path = facts.file.path
        try:
            reply = self._models.ask(ENRICHMENT, inputs, pass_id=self._pass_id, item=path)
        except WindowExceeded:
            # The estimate was too low for this text. If the window is too small for any view, the second try raises.
            inputs = without_text(facts, outermost(facts, BRIEF))
            reply = self._models.ask(ENRICHMENT, inputs, pass_id=self._pass_id, item=path)
        if reply.value is None:
            fault = reply.bad.fault if reply.bad else ""
            return Described(path=path, reason=f"the answer cannot be read: {fault}")
        row = EnrichmentRow(
            file_id=facts.file.id,
            path=path,
            content_hash=facts.file.content_hash,
            model=self._model_tag,
            **reply.value.model_dump(),
            raw_prompt=ENRICHMENT.render(inputs),
            raw_response=reply.text,
            timestamp=self._record.now(),
        )
        self._record.write(append_enrichment, row)
        return Described(path=path, purpose=reply.value.purpose)
