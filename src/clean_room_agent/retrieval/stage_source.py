"""What the stages of a code task read: the index, and the files that it describes, checked against its hashes and divided into
pieces.
"""

from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.file_contents import NotTextError, content_hash, decode
from clean_room_agent.git.worktree import REMOVED
from clean_room_agent.paths import is_secret_name
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.pieces import (
    CodePiece,
    Cut,
    IndexedDefinition,
    divide_large,
    split_file,
    text_cuts,
)
from clean_room_agent.safe_open import NOT_A_FILE, read_bytes
from clean_room_agent.syntax import import_lines, sequence_starts

REFRESH = "the index no longer describes the files: run `cra index`, then start again"
MAX_PIECE_PERCENT = 80
"""Of the available tokens: a larger definition is divided, or nothing could be shown beside it."""
PART_PERCENT = 30
"""Of the available tokens: the most that each part of a divided definition takes."""
MAX_SAME_NAME = 3
"""A bare file name or symbol that fits more files than this does not tell which one is meant."""
MIN_CONFIDENCE = 0.5
"""Of a reference: below it, too many definitions share the name to tell which one is meant."""
MAX_BASES = 12
"""Base classes looked at for one method."""
FRAME_PREFIXES_TRIED = 12
"""Leading folders taken off a foreign path (`/home/me/project/src/a.py`) until a file of the index is left."""


class FileText(Struct, frozen=True, kw_only=True):
    """A file as it is on disk."""

    path: str
    lines: tuple[str, ...]
    """Without line ends; a final newline adds no empty line."""
    content_hash: str
    """Hex SHA-256 of the whole file's bytes."""

    def span(self, start_line: int, end_line: int) -> str:
        """Lines `start_line..end_line` (1-based, inclusive), each with a line break."""
        return "".join(f"{line}\n" for line in self.lines[start_line - 1 : end_line])


class NotEditable(Struct, frozen=True, kw_only=True):
    """A file that cannot be shown or edited as text, and why."""

    reason: str


def read_indexed(root: Path, path: str, indexed_hash: str) -> FileText | NotEditable:
    """The file at `path` (relative to `root`, forward slashes), which the index knows with `indexed_hash`.

    Raises:
        GitError: the whole working tree is gone.
        RepositoryError: the file is gone or differs from what was indexed, so that its symbols' lines would be wrong.
    """
    if is_secret_name(path):
        return NotEditable(reason="not shown: its name says that it holds secrets")
    try:
        data = read_bytes(root, path)
    except FileNotFoundError as exc:
        if not root.is_dir():
            raise GitError(f"the worktree is gone: there is no folder {root}", hint=REMOVED) from exc
        raise RepositoryError(f"{path} was indexed but no longer exists", hint=REFRESH) from exc
    except OSError as exc:
        if exc.errno in NOT_A_FILE:
            return NotEditable(
                reason="it is not a file of the repository: it is a link, or a link leads to it"
            )
        raise RepositoryError(f"cannot read {path}: {exc}", hint=REFRESH) from exc
    digest = content_hash(data)
    if digest != indexed_hash:
        raise RepositoryError(f"{path} changed after it was indexed", hint=REFRESH)
    try:
        text = decode(data).text
    except NotTextError as exc:
        return NotEditable(reason=f"not editable: {exc}")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return FileText(path=path, lines=tuple(lines), content_hash=digest)


class FileView(Struct, frozen=True, kw_only=True):
    """A file with its text and its pieces."""

    row: FileRow
    text: FileText
    definitions: tuple[IndexedDefinition, ...]
    """By first line, the enclosing before the enclosed."""
    pieces: tuple[CodePiece, ...]


class RepositorySource:
    """A repository in one state: its index, and the folder that was indexed."""

    def __init__(self, kb: KnowledgeBase, root: Path, count: Callable[[str], int]) -> None:
        """`count` estimates the tokens of a text for the model that will read the package."""
        self.kb = kb
        self.count = count
        self._root = root.resolve()
        self.find_symbols = cache(kb.search_symbols_by_name)
        """The symbols that a plain or dotted name refers to, by path and line."""
        self.definitions_at = cache(self._definitions_at)
        """The definitions of the file at a path, with their documentation; empty if it is not indexed."""
        self._read_file = cache(self._read_indexed)
        self._built_view = cache(self._build_view)

    def paths(self) -> tuple[str, ...]:
        """All indexed paths, sorted."""
        return tuple(self._by_path)

    def file(self, path: str) -> FileRow | None:
        """The indexed file at exactly this path."""
        return self._by_path.get(path)

    def text(self, path: str) -> FileText | None:
        """The lines of the indexed file at exactly this path; None if there is none, or it is not shown.

        Raises:
            RepositoryError: it differs from what was indexed.
        """
        found = self._read_file(path) if path in self._by_path else None
        return found if isinstance(found, FileText) else None

    def _read_indexed(self, path: str) -> FileText | NotEditable:
        return read_indexed(self._root, path, self._by_path[path].content_hash)

    def resolve_path(self, name: str, *, most: int) -> tuple[str, ...]:
        """Indexed paths that `name` may refer to, sorted: itself, what ends with it, or what it ends with.

        Empty if more than `most` match.
        """
        wanted = name.replace("\\", "/").removeprefix("./")
        if not wanted.strip("/"):
            return ()
        known = self._by_path
        if wanted in known:
            return (wanted,)
        ending = [path for path in known if path.endswith("/" + wanted.lstrip("/"))]
        if ending:
            return tuple(ending) if len(ending) <= most else ()
        parts = wanted.strip("/").split("/")
        for start in range(1, min(len(parts) - 1, FRAME_PREFIXES_TRIED) + 1):
            shorter = "/".join(parts[start:])
            if shorter in known:
                return (shorter,)
        return ()

    def inherited(self, owner: SymbolRow, name: str) -> SymbolRow | None:
        """The member `name` of the class's nearest base class that has one, of those in the repository."""
        level, seen = [owner], {owner.id}
        while level and len(seen) <= MAX_BASES:
            level = [base for one in level for base in self._base_classes(one) if base.id not in seen]
            seen |= {base.id for base in level}
            for base in level:
                for member in self.kb.get_symbols_for_file(base.file_id):
                    if member.qualified_name == f"{base.qualified_name}.{name}":
                        return member
        return None

    def inherited_method(self, path: str, qualified: str) -> list[SymbolRow]:
        """What a class in the file at `path` inherits under this name, `Class.method` or a dotted one that ends so."""
        owner, _, name = qualified.rpartition(".")
        row = self.file(path) if owner else None
        symbols = () if row is None else self.kb.get_symbols_for_file(row.id)
        owners = (one for one in symbols if f".{owner}".endswith(f".{one.qualified_name}"))
        return [method for one in owners if (method := self.inherited(one, name)) is not None]

    def _base_classes(self, symbol: SymbolRow) -> list[SymbolRow]:
        """The classes of the repository that it inherits from."""
        return [
            row.symbol
            for row in self.kb.get_symbol_neighbors(symbol.id, direction="callees")
            if row.reference_kind == "inheritance" and row.confidence >= MIN_CONFIDENCE
        ]

    def meant_by(self, name: str) -> tuple[SymbolRow, ...]:
        """Like `find_symbols`, but empty if there are too many to tell which one is meant."""
        symbols = self.find_symbols(name)
        return symbols if len(symbols) <= MAX_SAME_NAME else ()

    def path_of(self, file_id: int) -> str:
        """The path of an indexed file.

        Raises:
            KeyError: no file has this id.
        """
        row = self.kb.get_file_by_id(file_id)
        if row is None:
            raise KeyError(file_id)
        return row.path

    def view(self, path: str, *, max_lines: int, available_tokens: int) -> FileView | NotEditable:
        """The file at an indexed path, divided into pieces.

        Definitions with members that are longer than `max_lines` are divided into these; a piece that would still fill most
        of the context is divided between statements.

        Raises:
            RepositoryError: the file differs from what was indexed.
            KeyError: the path is not indexed.
        """
        return self._built_view(path, max_lines, available_tokens)

    def _build_view(self, path: str, max_lines: int, available_tokens: int) -> FileView | NotEditable:
        row, text = self._by_path[path], self._read_file(path)
        if isinstance(text, NotEditable):
            return text
        definitions = self.definitions_at(path)
        pieces = divide_large(
            split_file(text.lines, definitions, max_lines=max_lines, imports=_import_spans(text)),
            text.lines,
            count=self.count,
            most=available_tokens * MAX_PIECE_PERCENT // 100,
            part=available_tokens * PART_PERCENT // 100,
            cuts=lambda: _possible_cuts(text),
        )
        return FileView(row=row, text=text, definitions=definitions, pieces=self._with_notes(row, pieces))

    def _with_notes(self, row: FileRow, pieces: Sequence[CodePiece]) -> tuple[CodePiece, ...]:
        """Add to the pieces those of their comments that state a reason."""
        notes = [
            (comment.line, f"(line {comment.line}: {' '.join(comment.content.split())})")
            for comment in self.kb.get_rationale_comments(row.id)
        ]
        return tuple(
            replace(piece, notes=own)
            if (own := tuple(note for line, note in notes if piece.start_line <= line <= piece.end_line))
            else piece
            for piece in pieces
        )

    def _definitions_at(self, path: str) -> tuple[IndexedDefinition, ...]:
        row = self.file(path)
        if row is None:
            return ()
        docs = {
            doc.symbol_id: doc.content.strip() for doc in reversed(self.kb.get_docstrings_for_file(row.id))
        }
        return tuple(
            IndexedDefinition(
                symbol_id=symbol.id,
                name=symbol.qualified_name,
                kind=symbol.kind,
                start_line=symbol.start_line,
                end_line=symbol.end_line,
                signature=symbol.signature,
                doc=docs.get(symbol.id, ""),
            )
            for symbol in self.kb.get_symbols_for_file(row.id)
        )

    @cached_property
    def _by_path(self) -> dict[str, FileRow]:
        return {row.path: row for row in self.kb.get_files()}


@lru_cache(maxsize=256)
def _import_spans(text: FileText) -> Sequence[tuple[int, int]]:
    """First and last line of each import; kept, because each pass of a run divides the same files."""
    return import_lines("\n".join(text.lines).encode("utf-8", "replace"), text.path)


def _possible_cuts(text: FileText) -> Sequence[Cut]:
    starts = sequence_starts("\n".join(text.lines).encode("utf-8", "replace"), text.path)
    return text_cuts(text.lines) if starts is None else starts


def top_names(definitions: Sequence[IndexedDefinition], *, most: int) -> tuple[str, ...]:
    """The first `most` names that a file defines at its top level; classes and functions before variables."""
    top = [entry for entry in definitions if "." not in entry.name]
    top.sort(key=lambda entry: entry.kind == "variable")
    return tuple(dict.fromkeys(entry.name for entry in top))[:most]
