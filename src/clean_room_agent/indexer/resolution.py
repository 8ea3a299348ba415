"""Resolves imports and references of indexed files, and finds the files to resolve again after a change."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from clean_room_agent.db.curated import names, symbols
from clean_room_agent.db.curated.names import ANYWHERE, ImportTargets, Resolution, StoredNames
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.references.evaluate import Evaluations
from clean_room_agent.indexer.references.resolve import resolve_file
from clean_room_agent.indexer.workers import note_reading
from clean_room_agent.indexer.write import Changes
from clean_room_agent.json_values import to_json
from clean_room_agent.languages.base import Language, ModuleRef, Modules, Reach
from clean_room_agent.languages.interface import FileNames, Interface, changed_names, parse_interface
from clean_room_agent.languages.nodes import NONE
from clean_room_agent.languages.registry import LANGUAGES, language_at, names_beside
from clean_room_agent.safe_open import read_bytes


class StoredWorld:
    """The repository as the resolver sees it: its paths, and the stored names of each file."""

    def __init__(self, conn: Connection, root: Path, ids: Mapping[str, int], *, is_new: bool = False) -> None:
        """`is_new`: no file was changed since the index was built, so symbol ids follow from their places."""
        self._conn = conn
        self._is_new = is_new
        self._ids = ids
        self._paths = {file_id: path for path, file_id in ids.items()}
        self._root = root
        self._modules: dict[Language, Modules] = {}
        self._evaluations = Evaluations(self)
        self._find_unique = cache(self._unique_symbol)
        self._symbol_ids = cache(self._list_symbol_ids)

    def find(self, source: str, target: str) -> ModuleRef | None:
        """See `Modules.find`."""
        return self._modules_of(source).find(source, target)

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """See `Modules.child`; of the language that found `ref`."""
        found = (modules.child(ref, name) for modules in self._modules.values())
        return next((one for one in found if one is not None), None)

    def interface(self, path: str) -> Interface | None:
        """The file's stored interface; None if it is not indexed or has no names."""
        file_id = self._ids.get(path)
        stored = None if file_id is None else names.get_names(self._conn, file_id)
        text = None if stored is None else stored.interface
        return None if text is None else parse_interface(text)

    def unique(self, source: str, name: str) -> tuple[str, int] | None:
        """Path and place of the only function, method or class of this name."""
        return self._find_unique(name, names_beside(source))

    def _unique_symbol(self, name: str, languages: tuple[str, ...]) -> tuple[str, int] | None:
        found = symbols.find_unique(self._conn, name, languages)
        return None if found is None else (self._paths[found[0]], found[1])

    def resolve(self, path: str, stored: StoredNames) -> Resolution:
        """Resolve one file into rows."""
        note_reading(path)
        file_id = self._ids[path]
        if stored.interface is None or stored.uses is None:
            return Resolution(
                dependencies=self._dependency_rows(path, stored.imports),
                import_targets=self._import_targets(path, stored),
            )
        found = resolve_file(path, FileNames(stored.interface, stored.uses), self._evaluations)
        callers = self._symbol_ids(file_id)
        ids_of = {one: self._symbol_ids(self._ids[one]) for one in {row[1] for row in found.references}}
        imported = [
            (file_id, self._ids[target], kind)
            for target, kind in sorted(found.dependencies)
            if target in self._ids
        ]
        asked = {
            self._ids[path] if path else ANYWHERE: looked_up
            for path, looked_up in found.lookups.items()
            if not path or path in self._ids
        }
        return Resolution(
            dependencies=self._dependency_rows(path, stored.imports) if _leads_to_files(path) else imported,
            symbol_references=[
                (callers[caller], ids_of[callee_path][callee], kind, confidence)
                for caller, callee_path, callee, kind, confidence in found.references
            ],
            lookups=[(target, file_id, to_json(sorted(asked[target]))) for target in sorted(asked)],
            reexports=[
                (
                    file_id,
                    name,
                    self._ids[target],
                    self._symbol_ids(self._ids[target])[place] if place >= 0 else None,
                )
                for name, target, place in found.reexports
            ],
            import_targets=self._import_targets(path, stored) if _leads_to_files(path) else (),
        )

    def lead_elsewhere(self, path: str, targets: ImportTargets) -> bool:
        """Whether any import of the file no longer leads to its stored target; True if none is stored."""
        if not _leads_to_files(path):
            return True
        return any(self._target_id(path, module) != target for module, target in targets.items())

    def _import_targets(self, path: str, stored: StoredNames) -> list[tuple[int, str]]:
        modules = {module for module, _, _ in json.loads(stored.imports)}
        interface = None if stored.interface is None else self._evaluations.interface(path)
        if interface is not None:
            modules.update(module for bound in interface.imports.values() for module, _ in bound)
            modules.update(interface.stars, (module for module, _ in (interface.exports or {}).values()))
        modules.discard("")
        targets = {module: self._target_id(path, module) for module in sorted(modules)}
        return [(self._ids[path], to_json(targets))] if targets else []

    def _target_id(self, path: str, module: str) -> int | None:
        ref = self.find(path, module)
        return None if ref is None else self._ids.get(ref.file or "")

    def _dependency_rows(self, path: str, imports: str) -> list[tuple[int, int, str]]:
        kinds: dict[int, str] = {}
        source = self._ids[path]
        for specifier, _, kind in json.loads(imports):
            target = self._target_id(path, specifier)
            if target is not None and target != source and kinds.get(target) != "import":
                kinds[target] = kind
        return [(source, target, kinds[target]) for target in sorted(kinds, key=self._paths.__getitem__)]

    def _modules_of(self, source: str) -> Modules:
        language = language_at(source)
        assert language is not None, "only what is parsed has imports"
        if language not in self._modules:
            self._modules[language] = _language_modules(language, self._ids, self._root)
        return self._modules[language]

    def _list_symbol_ids(self, file_id: int) -> Sequence[int]:
        """The ids of the file's symbols by place."""
        if self._is_new:
            return range(symbols.first_symbol_id(file_id), symbols.first_symbol_id(file_id + 1))
        return [one for one, _ in symbols.list_symbol_ids(self._conn, file_id)]


def read_config(root: Path, path: str) -> str | None:
    """The text of a configuration file that affects how imports resolve; None if it cannot be read."""
    try:
        return read_bytes(root, path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def affected(
    conn: Connection, root: Path, changes: Changes, ids: Mapping[str, int], world: StoredWorld
) -> set[int]:
    """The files, including those just written, that may resolve differently after the changes, which are written already. `ids`: path
    -> id of every current file.
    """
    found = set(changes.written.values())
    for file_id, (before, after) in changes.names.items():
        keys = changed_names(before and before.interface, after and after.interface)
        found |= names.find_lookups(conn, file_id, keys)
    found |= names.find_lookups(conn, ANYWHERE, _unsettled_names(conn, changes.callables))
    moved = {*changes.added, *changes.removed}
    configured = {path for path in changes.written if any(one.is_configuration(path) for one in LANGUAGES)}
    if moved or configured:
        unmoved = [path for path in ids if path not in moved]
        reached, words = _within_reach(conn, root, sorted(moved | configured), unmoved, world)
        # Anyone who looked something up in these files may be affected by what they re-export.
        found = found.union(reached, *(names.find_users(conn, file_id) for file_id in reached))
        found |= names.find_lookups(conn, ANYWHERE, [f"?{word}" for word in words])
    return found.intersection(ids.values())


def _unsettled_names(conn: Connection, changed: Mapping[tuple[str, tuple[str, ...]], int]) -> list[str]:
    """Names that were or are unique, and whose number of symbols has changed."""
    unsettled = []
    for (name, languages), more in changed.items():
        after = symbols.count_named(conn, name, languages)
        if min(after, after - more) <= 1:
            unsettled.append(name)
    return unsettled


def _within_reach(
    conn: Connection, root: Path, moved: Sequence[str], unmoved: Sequence[str], world: StoredWorld
) -> tuple[set[int], list[str]]:
    """The files whose own imports may lead elsewhere, and the words those imports mention."""
    reaches = {
        language: _combined_reach(_language_modules(language, unmoved, root), moved) for language in LANGUAGES
    }
    words = sorted(NONE.union(*(one.words for one in reaches.values())))
    found = set()
    for file_id, path, imports in names.list_imports(conn):
        language = language_at(path)
        reach = Reach() if language is None else reaches[language]
        under = tuple(f"{folder}/" if folder else "" for folder in sorted(reach.folders))
        may_be = reach.everything or path.startswith(under) or any(word in imports for word in reach.words)
        # Most edits of a configuration (a version, a script) change no import.
        if may_be and world.lead_elsewhere(path, names.get_targets(conn, file_id)):
            found.add(file_id)
    return found, words


def _combined_reach(modules: Modules, moved: Iterable[str]) -> Reach:
    """Who is affected by any of these paths."""
    reaches = [modules.reach(path) for path in moved]
    return Reach(
        NONE.union(*(one.words for one in reaches)),
        NONE.union(*(one.folders for one in reaches)),
        any(one.everything for one in reaches),
    )


def _language_modules(language: Language, paths: Iterable[str], root: Path) -> Modules:
    """The language's modules among the paths, without the files of other languages."""
    own = [path for path in paths if language_at(path) in {language, None}]
    return language.modules(own, partial(read_config, root))


def _leads_to_files(path: str) -> bool:
    """Whether each import of the file leads to one file, so that where it leads is stored."""
    language = language_at(path)
    return language is not None and language.explicit_exports
