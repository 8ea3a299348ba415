"""Has a model describe files, and copies the descriptions into the index."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct, structs

from clean_room_agent import syntax
from clean_room_agent.db.connection import transaction
from clean_room_agent.db.curated import metadata
from clean_room_agent.db.curated.files import FileRow, list_files
from clean_room_agent.db.curated.metadata import FileMetadataRow
from clean_room_agent.db.raw.indexing import DescriptionRow, EnrichmentRow, append_enrichment
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentInputs, read_inputs, shortened
from clean_room_agent.errors import DegenerateOutput, ServerFailed, ServerTimeout, WindowExceeded
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.paths import is_secret_name
from clean_room_agent.query.knowledge import KnowledgeBase

PASSING = (DegenerateOutput, ServerFailed, ServerTimeout, WindowExceeded)
"""Failures that may be due to one file's prompt: the next file may go well."""
MAX_FAILED = 5
"""Files in a row without a description: the model, or its server, is not up to it."""


class Described(Struct, frozen=True, kw_only=True):
    """A file that was asked about: what it is for or, failing that, why that is not known."""

    path: str
    purpose: str = ""
    reason: str = ""


def find_due_files(
    kb: KnowledgeBase, known: Collection[DescriptionRow], *, every: bool
) -> tuple[list[FileRow], list[FileRow]]:
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
    due = [file for file in wanted if (file.path, file.content_hash) not in contents]
    return [file for file in wanted if file not in due], due


class Describer(Struct, frozen=True, kw_only=True):
    """Describes the files of one repository, as one pass."""

    kb: KnowledgeBase
    root: Path
    models: ModelClient
    model_tag: str
    record: Record
    pass_id: str

    def describe(self, files: Sequence[FileRow], *, parallel: int) -> Iterator[Described]:
        """Ask about the files, `parallel` at a time, and yield each that is done; its description is in the record by then.

        After `MAX_FAILED` files in a row without a description, no further file is asked about.

        Raises:
            ModelError: the server is gone.
            KeyboardInterrupt: Ctrl-C was pressed; answers that were under way have come.
        """
        failed = 0
        for start in range(0, len(files), parallel):
            # Here, as the index is open in this thread only.
            views = [(file, self._file_inputs(file)) for file in files[start : start + parallel]]
            with ThreadPoolExecutor(parallel) as pool:
                for described in pool.map(self._describe_file, views):
                    failed = failed + 1 if described.reason else 0
                    yield described
            if failed >= MAX_FAILED:
                return

    def _file_inputs(self, file: FileRow) -> EnrichmentInputs | None:
        inputs = read_inputs(self.kb, self.root, file)
        window = self.models.window(ENRICHMENT)
        available = window.context - max(window.reserved, ENRICHMENT.max_answer_tokens)
        measure = lambda inputs: self.models.measure(ENRICHMENT, inputs)  # noqa: E731
        return inputs and shortened(inputs, available, measure)

    def _describe_file(self, asked: tuple[FileRow, EnrichmentInputs | None]) -> Described:
        """Runs in a thread of its own."""
        file, inputs = asked
        if inputs is None:
            return Described(path=file.path, reason="it changed meanwhile; the next run asks again")
        try:
            reply = self.models.ask(ENRICHMENT, inputs, pass_id=self.pass_id, item=file.path)
        except PASSING as exc:
            return Described(path=file.path, reason=exc.message)
        if reply.value is None:
            fault = reply.bad.fault if reply.bad else ""
            return Described(path=file.path, reason=f"the answer cannot be read: {fault}")
        row = EnrichmentRow(
            file_id=file.id,
            path=file.path,
            content_hash=file.content_hash,
            model=self.model_tag,
            **reply.value.model_dump(),
            raw_prompt=ENRICHMENT.render(inputs),
            raw_response=reply.text,
            timestamp=self.record.now(),
        )
        self.record.write(append_enrichment, row)
        return Described(path=file.path, purpose=reply.value.purpose)


class Promotion(Struct, frozen=True, kw_only=True):
    """What was copied into the index, and what was not."""

    promoted: int
    """Files with a new or changed description."""
    unchanged: int
    """Files whose description was in the index already."""
    outdated: tuple[str, ...]
    """Files that changed since they were described, by path: the index has no description of them now."""


def promote(conn: Connection, known: Iterable[DescriptionRow]) -> tuple[Promotion, tuple[int, ...]]:
    """The index holds the newest description of each file whose content is still the described one, in one transaction.

    A file that has changed since loses what described it before. Descriptions that the record knows nothing of stay.
    Returns also the ids of the descriptions that are in the index now and not yet marked as promoted in the record.

    Args:
        conn: to curated.sqlite, for writing; the caller holds the index's lock.
        known: descriptions; of several of one content, only the newest.
    """
    newest = {(row.path, row.content_hash): row for row in known}
    described = {path for path, _ in newest}
    with transaction(conn):
        files = [file for file in list_files(conn) if file.path in described]
        held = {row.file_id: row for row in metadata.list_metadata(conn)}
        current = {
            file.id: newest[file.path, file.content_hash]
            for file in files
            if (file.path, file.content_hash) in newest
        }
        wanted = [_metadata_row(file_id, row) for file_id, row in current.items()]
        changed = [row for row in wanted if held.get(row.file_id) != row]
        outdated = [file for file in files if file.id not in current]
        metadata.put_metadata(conn, changed)
        metadata.delete_metadata(conn, [file.id for file in outdated])
    promotion = Promotion(
        promoted=len(changed),
        unchanged=len(current) - len(changed),
        outdated=tuple(file.path for file in outdated),
    )
    return promotion, tuple(row.id for row in current.values() if not row.promoted)


def _metadata_row(file_id: int, row: DescriptionRow) -> FileMetadataRow:
    values = structs.asdict(row)
    names = FileMetadataRow.__struct_fields__
    return FileMetadataRow(file_id=file_id, **{name: values[name] for name in names if name in values})
