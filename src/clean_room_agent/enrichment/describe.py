"""Has a model describe files: finds those that are due, asks one prompt for each, and records every answer as it
arrives.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from clean_room_agent import syntax
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.raw.indexing import DescriptionRow, EnrichmentRow, append_enrichment
from clean_room_agent.db.raw.record import Record
from clean_room_agent.enrichment.file_facts import FileFacts, read_facts
from clean_room_agent.enrichment.file_fitting import brief, fit
from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentAnswer, EnrichmentInputs
from clean_room_agent.enrichment.workers import Stop, Workers
from clean_room_agent.errors import DegenerateOutput, ModelError, ServerFailed, ServerTimeout, WindowExceeded
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.paths import is_secret_name
from clean_room_agent.query.knowledge import KnowledgeBase

PASSING = (DegenerateOutput, ServerFailed, ServerTimeout)
"""Failures that may be due to one file's prompt: the next file may go well."""
FAILURES_IN_A_ROW = 3
"""After so many in a row, the server is to blame."""


class Described(Struct, frozen=True, kw_only=True):
    """A file that was asked about."""

    path: str
    purpose: str
    """"" where there is no description."""
    fault: str
    """Why there is none; "" where there is one."""


class _Outcome(Struct, frozen=True, kw_only=True):
    """How asking about one file ended, with the server's failure where there was one."""

    described: Described
    failure: ModelError | None = None
    unreadable: bool = False


class Descriptions(Struct, frozen=True, kw_only=True):
    """The files that were asked about, by path."""

    files: tuple[Described, ...]
    gave_up: bool
    """Whether it stopped because too many answers in a row could not be read."""


class DueFiles(Struct, frozen=True, kw_only=True):
    """The files that can be described, each list with the most imported first, then by path."""

    described: tuple[FileRow, ...]
    """Their present content is described in the record already."""
    due: tuple[FileRow, ...]


def find_due_files(kb: KnowledgeBase, known: Collection[DescriptionRow], *, every: bool) -> DueFiles:
    """The files of the languages that the index has symbols of, or with `every` all text files; no empty ones."""
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
    return DueFiles(
        described=tuple(file for file in wanted if (file.path, file.content_hash) in contents),
        due=tuple(file for file in wanted if (file.path, file.content_hash) not in contents),
    )


class Watcher(Protocol):
    """Told of the progress, in the thread that asked for the descriptions."""

    def answered(self, described: Described) -> None:
        """A file is done."""

    def tick(self) -> None:
        """Nothing has happened for a while."""

    def stopping(self, under_way: int) -> None:
        """Ctrl-C was pressed; `under_way` answers are still waited for."""


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
    ) -> None:
        self._kb = kb
        self._root = root
        self._models = models
        self._model_tag = model_tag
        self._record = record
        self._pass_id = pass_id

    def run(
        self, files: Sequence[FileRow], *, parallel: int, max_unreadable: int, watcher: Watcher, stop: Stop
    ) -> Descriptions:
        """The files with their descriptions, or why they have none; up to `parallel` are asked about at a time.

        After `max_unreadable` files in a row whose answers cannot be read, no further file is asked about. Once `stop` is
        asked for, no further call is made, not even one that a file under way still needs.

        Raises:
            WindowExceeded: the window is too small even for the smallest view of a file.
            ModelError: the server is gone or keeps failing; what was described stays described.
            KeyboardInterrupt: `stop` was asked for, and the answers that were under way have come.
        """
        done: list[Described] = []
        failures: list[ModelError] = []
        in_a_row = unreadable = 0
        gave_up = False
        jobs = itertools.takewhile(lambda _: not gave_up, self._jobs(files, done, watcher))
        workers = Workers(self._describe, count=parallel, stop=stop)
        outcomes = workers.run(jobs, tick=watcher.tick, stopping=watcher.stopping)
        with contextlib.closing(outcomes):
            for outcome in outcomes:
                in_a_row = in_a_row + 1 if outcome.failure else 0
                if outcome.failure:
                    failures.append(outcome.failure)
                if outcome.failure and in_a_row == FAILURES_IN_A_ROW:
                    raise outcome.failure
                done.append(outcome.described)
                watcher.answered(outcome.described)
                unreadable = unreadable + outcome.unreadable if outcome.described.fault else 0
                gave_up = gave_up or unreadable == max_unreadable
        if failures and len(failures) == len(done):
            raise failures[0]
        return Descriptions(
            files=tuple(sorted(done, key=lambda each: each.path)),
            gave_up=gave_up and len(done) < len(files),
        )

    def _jobs(
        self, files: Sequence[FileRow], done: list[Described], watcher: Watcher
    ) -> Iterator[tuple[FileFacts, EnrichmentInputs]]:
        for file in files:
            facts = read_facts(self._kb, self._root, file.path)
            if facts is None:
                gone = Described(
                    path=file.path, purpose="", fault="it changed meanwhile; the next run asks again"
                )
                done.append(gone)
                watcher.answered(gone)
            else:
                yield facts, self._fit(facts)

    def _fit(self, facts: FileFacts) -> EnrichmentInputs:
        window = self._models.window(ENRICHMENT)
        package = window.context - max(window.reserved, ENRICHMENT.max_answer_tokens)
        return fit(
            facts,
            package,
            lambda inputs: self._models.measure(ENRICHMENT, inputs),
            lambda text: self._models.count(text, ENRICHMENT.role),
        )

    def _describe(self, job: tuple[FileFacts, EnrichmentInputs]) -> _Outcome:
        """Runs in a worker thread."""
        facts, inputs = job
        path = facts.file.path
        try:
            try:
                reply = self._ask(path, inputs)
            except WindowExceeded:
                # The estimate was too low for this text. If the window is too small for any view, the second try raises.
                inputs = brief(facts)
                reply = self._ask(path, inputs)
        except PASSING as error:
            return _Outcome(described=Described(path=path, purpose="", fault=error.message), failure=error)
        if reply.value is None:
            fault = reply.bad.fault if reply.bad else ""
            described = Described(path=path, purpose="", fault=f"the answer cannot be read: {fault}")
            return _Outcome(described=described, unreadable=True)
        row = _row(facts.file, reply.value, inputs, reply.text, self._model_tag, self._record.now())
        self._record.write(append_enrichment, row)
        return _Outcome(described=Described(path=path, purpose=reply.value.purpose, fault=""))

    def _ask(self, path: str, inputs: EnrichmentInputs) -> Reply[EnrichmentAnswer]:
        return self._models.ask(ENRICHMENT, inputs, pass_id=self._pass_id, item=path)


def _row(
    file: FileRow, answer: EnrichmentAnswer, inputs: EnrichmentInputs, response: str, model: str, now: str
) -> EnrichmentRow:
    return EnrichmentRow(
        file_id=file.id,
        path=file.path,
        content_hash=file.content_hash,
        model=model,
        purpose=answer.purpose,
        module=answer.module,
        domain=answer.domain,
        concepts=answer.concepts,
        public_api_surface=answer.public_api_surface,
        complexity_notes=answer.complexity_notes,
        raw_prompt=ENRICHMENT.render(inputs),
        raw_response=response,
        timestamp=now,
    )
