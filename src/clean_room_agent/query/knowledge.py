"""`KnowledgeBase`: read access to an indexed repository. Answers are typed rows in a stated order."""

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct

from clean_room_agent.db.curated import files, history, metadata, symbols
from clean_room_agent.db.curated.files import DependencyEdge, DependencyRow, FileRow, ReexportRow, RepoRow
from clean_room_agent.db.curated.history import CoChangeRow, CommitRow
from clean_room_agent.db.curated.metadata import ActiveAdapter, FileMetadataRow
from clean_room_agent.db.curated.symbols import CommentRow, DocstringRow, NeighborRow, SymbolRow
from clean_room_agent.db.rows import Connection
from clean_room_agent.query.ranking import Ranking, SearchHit
from clean_room_agent.query.search import SearchQuery

RECENT_COMMITS = 10


class FileContext(Struct, frozen=True, kw_only=True):
    """All that is known of one file, each list in the order of its own query."""

    file: FileRow
    symbols: tuple[SymbolRow, ...]
    docstrings: tuple[DocstringRow, ...]
    rationale: tuple[CommentRow, ...]
    imports: tuple[DependencyRow, ...]
    imported_by: tuple[DependencyRow, ...]
    co_changes: tuple[CoChangeRow, ...]
    commits: tuple[CommitRow, ...]
    metadata: FileMetadataRow | None


class RepoOverview(Struct, frozen=True, kw_only=True):
    """The repository in numbers."""

    repo: RepoRow
    files: int
    languages: tuple[tuple[str, int], ...]
    """(language, files), the most frequent first, then by name."""
    symbols: tuple[tuple[str, int], ...]
    """(kind, symbols), by kind."""
    commits: int
    newest_commit: str | None
    """UTC, ISO 8601."""
    described: bool
    """Whether any file has metadata from `cra enrich --promote`."""


class KnowledgeBase:
    """One indexed repository, read over a connection that the caller opens and closes."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._ranking: Ranking | None = None
        self._ranked = (0, 0)
        self._files: tuple[FileRow, ...] = ()
        self._listed = (0, 0)

    def get_files(self, *, language: str | None = None) -> tuple[FileRow, ...]:
        """All files, or those of one language, by path."""
        if language is not None:
            return files.list_files(self._conn, language=language)
        seen = files.seen_changes(self._conn)
        if self._listed != seen:
            self._files, self._listed = files.list_files(self._conn, language=None), seen
        return self._files

    def get_file_by_path(self, path: str) -> FileRow | None:
        """The file at exactly this path."""
        return files.get_file_by_path(self._conn, path)

    def get_file_by_id(self, file_id: int) -> FileRow | None:
        """The file with this id."""
        return files.get_file_by_id(self._conn, file_id)

    def search_files_by_metadata(
        self, *, domain: str | None = None, module: str | None = None, concept: str | None = None
    ) -> tuple[FileRow, ...]:
        """The described files that match all that is given, by path; none where nothing is given."""
        if domain is None and module is None and concept is None:
            return ()
        return metadata.search_by_metadata(self._conn, domain=domain, module=module, concept=concept)

    def get_symbols_for_file(self, file_id: int) -> tuple[SymbolRow, ...]:
        """The symbols of a file by first line, the enclosing before the enclosed."""
        return symbols.list_symbols(self._conn, file_id)

    def get_symbol_by_id(self, symbol_id: int) -> SymbolRow | None:
        """The symbol with this id."""
        return symbols.get_symbol(self._conn, symbol_id)

    def search_symbols_by_name(
        self, name: str, *, kinds: Collection[str] = (), limit: int = 50
    ) -> tuple[SymbolRow, ...]:
        """The first `limit` symbols with this name, by path and line.

        `name` is a plain name, or a dotted one whose last parts are the qualified name's (`Class.method` finds
        `Outer.Class.method`). `kinds` keeps only these; empty keeps all.
        """
        named = [
            symbol
            for symbol in symbols.find_symbols(self._conn, name.rpartition(".")[2])
            if _ends_with(symbol.qualified_name, name) and (not kinds or symbol.kind in kinds)
        ]
        return tuple(named[:limit])

    def get_symbol_neighbors(
        self,
        symbol_id: int,
        *,
        direction: Literal["callers", "callees", "both"] = "both",
        kinds: Collection[str] = (),
    ) -> tuple[NeighborRow, ...]:
        """Callers, then callees, each the surest first; `kinds` of reference, empty for all."""
        rows: tuple[NeighborRow, ...] = ()
        if direction != "callees":
            rows += symbols.list_callers(self._conn, symbol_id)
        if direction != "callers":
            rows += symbols.list_callees(self._conn, symbol_id)
        return tuple(row for row in rows if not kinds or row.reference_kind in kinds)

    def get_dependencies(
        self, file_id: int, *, direction: Literal["imports", "imported_by"] = "imports"
    ) -> tuple[DependencyRow, ...]:
        """The files that this one imports, or that import it, by path."""
        if direction == "imports":
            return files.list_imports(self._conn, file_id)
        return files.list_importers(self._conn, file_id)

    def get_reexports(self, file_id: int) -> tuple[ReexportRow, ...]:
        """What a JavaScript or TypeScript file re-exports, with the files that define it, by name.

        Of a barrel (`index.ts`) these are the files behind it: `export * from`, `export { x } from`, an import that is
        exported again, `module.exports = require(…)`.
        """
        return files.list_reexports(self._conn, file_id)

    def get_dependency_subgraph(self, file_ids: Iterable[int], *, depth: int) -> tuple[DependencyEdge, ...]:
        """The edges on paths of at most `depth` from the given files, in either direction, by source and target."""
        edges: set[DependencyEdge] = set()
        seen: set[int] = set()
        frontier = set(file_ids)
        for _ in range(depth):
            seen |= frontier
            reached: set[int] = set()
            for file_id in sorted(frontier):
                for edge in files.list_edges(self._conn, file_id):
                    edges.add(edge)
                    reached.update((edge.source_file_id, edge.target_file_id))
            frontier = reached - seen
        return tuple(sorted(edges, key=lambda edge: (edge.source_file_id, edge.target_file_id, edge.kind)))

    def get_co_change_neighbors(
        self, file_id: int, *, min_count: int = 2, limit: int = 50
    ) -> tuple[CoChangeRow, ...]:
        """The files that changed with this one at least `min_count` times, the most frequent first, then by path."""
        return history.list_co_changes(self._conn, file_id, min_count, limit)

    def get_docstrings_for_file(self, file_id: int) -> tuple[DocstringRow, ...]:
        """The file's documentation: the module's first, then in the order of the symbols."""
        return symbols.list_docstrings(self._conn, file_id)

    def get_rationale_comments(self, file_id: int) -> tuple[CommentRow, ...]:
        """The comments of a file that give a reason, by line."""
        return symbols.list_rationale(self._conn, file_id)

    def get_recent_commits_for_file(
        self, file_id: int, *, limit: int = RECENT_COMMITS
    ) -> tuple[CommitRow, ...]:
        """The newest commits that touched the file, newest first."""
        return history.list_commits_of_file(self._conn, file_id, limit)

    def get_file_context(self, file_id: int) -> FileContext | None:
        """All that is known of one file; None where no file has this id."""
        file = self.get_file_by_id(file_id)
        if file is None:
            return None
        return FileContext(
            file=file,
            symbols=self.get_symbols_for_file(file_id),
            docstrings=self.get_docstrings_for_file(file_id),
            rationale=self.get_rationale_comments(file_id),
            imports=self.get_dependencies(file_id, direction="imports"),
            imported_by=self.get_dependencies(file_id, direction="imported_by"),
            co_changes=self.get_co_change_neighbors(file_id),
            commits=self.get_recent_commits_for_file(file_id),
            metadata=metadata.get_metadata(self._conn, file_id),
        )

    def get_repo_overview(self) -> RepoOverview | None:
        """The repository in numbers; None before the first index."""
        repo = files.get_repo(self._conn)
        if repo is None:
            return None
        languages = files.count_languages(self._conn)
        return RepoOverview(
            repo=repo,
            files=sum(count for _, count in languages),
            languages=languages,
            symbols=symbols.count_kinds(self._conn),
            commits=files.count_commits(self._conn),
            newest_commit=history.newest_commit_time(self._conn),
            described=self.is_described(),
        )

    def is_described(self) -> bool:
        """Whether any file has metadata from `cra enrich --promote`."""
        return metadata.has_metadata(self._conn)

    def get_adapter_for_stage(self, stage_name: str) -> ActiveAdapter | None:
        """The adapter deployed last for a prompt, while it is active."""
        return metadata.get_active_adapter(self._conn, stage_name)

    def rank(self, query: SearchQuery, *, limit: int) -> tuple[SearchHit, ...]:
        """The files that the query is most likely about, the best first, then by path.

        What the ranking needs is read once for each state of the index.
        """
        seen = files.seen_changes(self._conn)
        if self._ranking is None or self._ranked != seen:
            self._ranking, self._ranked = Ranking(self._conn), seen
        return self._ranking.rank(query, limit=limit)


def _ends_with(qualified: str, name: str) -> bool:
    return qualified == name or qualified.endswith("." + name)
