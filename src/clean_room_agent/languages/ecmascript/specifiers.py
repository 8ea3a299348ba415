"""Resolves JavaScript and TypeScript imports to files of the repository."""

from collections.abc import Callable, Collection
from functools import cached_property

from clean_room_agent.languages.base import WORD, ModuleRef, Modules, Reach
from clean_room_agent.languages.ecmascript.files import find_file, is_typed, join, without_suffix
from clean_room_agent.languages.ecmascript.packages import (
    LERNA,
    MANIFEST,
    PNPM,
    Packages,
    leaves,
    ordered,
    split_package,
)
from clean_room_agent.languages.ecmascript.tsconfig import Config, Configs, is_named
from clean_room_agent.languages.nodes import NONE

BUILT_IN_NAMES = (
    "assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain "
    "events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl "
    "stream string_decoder sys test timers tls trace_events tty url util v8 vm wasi worker_threads zlib"
)
BUILT_IN = frozenset(BUILT_IN_NAMES.split())
"""What Node.js offers itself."""
MAX_HOPS = 5
"""How many `imports` of packages one specifier may lead through."""


class EcmaScriptModules(Modules):
    """Finds the file a specifier refers to: by path, by `paths` of a `tsconfig.json`, or by a package's name."""

    def __init__(self, paths: Collection[str], read: Callable[[str], str | None]) -> None:
        self._paths = frozenset(paths)
        self._packages = Packages(self._paths, read)
        self._configs = Configs(self._paths, read, self._packages.named)
        self._memo: dict[tuple[str, str, bool, str], str | None] = {}

    def find(self, source: str, target: str) -> ModuleRef | None:
        """See `Modules.find`."""
        path = self.file(source, target)
        return None if path is None else ModuleRef(path, None)

    def reach(self, path: str) -> Reach:
        """See `Modules.reach`; a configuration reaches everything."""
        folder, _, name = path.rpartition("/")
        is_index = name.startswith("index.")
        words = {*WORD.findall(name)[:1], *(WORD.findall(folder.rpartition("/")[2]) if is_index else ())}
        folders = frozenset({folder}) if is_index else NONE
        return Reach(frozenset(words), folders, is_configuration(path) or self.is_entry(path))

    def file(self, source: str, specifier: str) -> str | None:
        """Return the file that `specifier`, as written in `source`, refers to; None if it is not in the repository."""
        config = self._configs.of(source)
        key = source.rpartition("/")[0], specifier, is_typed(source), "" if config is None else config.path
        try:
            return self._memo[key]
        except KeyError:
            plain = specifier.rpartition("!")[2].partition("?")[0]
            found = self._memo[key] = self._resolve_specifier(key[0], plain, config, MAX_HOPS, typed=key[2])
            return found

    def _resolve_specifier(
        self, folder: str, specifier: str, config: Config | None, hops: int, *, typed: bool
    ) -> str | None:
        if not specifier or not hops:
            return None
        if specifier in {".", ".."} or specifier.startswith(("./", "../")):
            return self._resolve_relative(folder, specifier, config, typed=typed)
        found = None if config is None else self._resolve_mapped(specifier, config, typed=typed)
        if found is not None:
            return found
        if specifier[0] == "/":
            return self._from_top(folder, specifier, typed=typed)
        if specifier[0] == "#":
            return self._resolve_internal(folder, specifier, config, hops, typed=typed)
        return self._of_package(folder, specifier, typed=typed)

    def _resolve_mapped(self, specifier: str, config: Config, *, typed: bool) -> str | None:
        bases = list(config.targets(specifier))
        if config.base_url is not None and specifier[0] not in "#/":
            bases.append(join(config.base_url, specifier))
        found = (self._resolve_path(base, typed=typed) for base in bases)
        return next((path for path in found if path is not None), None)

    def _of_package(self, folder: str, specifier: str, *, typed: bool) -> str | None:
        name, inside = split_package(specifier)
        package = None if ":" in name or name in BUILT_IN else self._packages.named(folder, name)
        if package is None:
            return None
        return self._packages.entry(package, f"./{inside}" if inside else ".", typed=typed)

    def _resolve_relative(
        self, folder: str, specifier: str, config: Config | None, *, typed: bool
    ) -> str | None:
        base = join(folder, specifier)
        only_folder = specifier.rpartition("/")[2] in {"", ".", ".."}
        found = self._resolve_path(base, typed=typed, only_folder=only_folder)
        if found is not None or config is None or not config.root_dirs:
            return found
        inside = [root for root in config.root_dirs if not root or f"{base}/".startswith(f"{root}/")]
        if not inside:
            return None
        rest = base[len(max(inside, key=len)) :].lstrip("/")
        only_folder = only_folder or not rest
        others = (
            self._resolve_path(join(root, rest), typed=typed, only_folder=only_folder)
            for root in config.root_dirs
        )
        return next((path for path in others if path is not None), None)

    def _resolve_path(self, base: str, *, typed: bool, only_folder: bool = False) -> str | None:
        found = None if only_folder or not base else find_file(base, self._paths, typed=typed)
        return found or self._packages.folder_entry(base, typed=typed)

    def _from_top(self, folder: str, specifier: str, *, typed: bool) -> str | None:
        """Resolve an absolute path as a bundler serves it: from the package's folder, else from the repository's."""
        own = self._packages.nearest(folder)
        tops = dict.fromkeys((own or "", ""))
        found = (self._resolve_path(join(top, specifier.lstrip("/")), typed=typed) for top in tops)
        return next((path for path in found if path is not None), None)

    def _resolve_internal(
        self, folder: str, specifier: str, config: Config | None, hops: int, *, typed: bool
    ) -> str | None:
        own = self._packages.nearest(folder)
        if own is None:
            return None
        for leaf in ordered(leaves(self._packages.manifest(own).get("imports"), specifier), typed=typed):
            if leaf.target.startswith("."):
                found = self._packages.target(own, leaf.target, typed=typed)
            else:
                found = self._resolve_specifier(own, leaf.target, config, hops - 1, typed=typed)
            if found is not None:
                return found
        return None

    def is_entry(self, path: str) -> bool:
        """Whether a specifier that mentions neither the name of `path` nor its folder may lead to it.

        `path` need not exist.
        """
        bases, starred, shifted = self._entries
        base = without_suffix(path)
        folder, _, name = base.rpartition("/")
        if base in bases or any(_matches_pattern(base, pattern) for pattern in starred):
            return True
        if name != "index":
            return False
        virtual = any(not root or f"{folder}/".startswith(f"{root}/") for root in shifted)
        return virtual or folder in bases or any(_matches_pattern(folder, pattern) for pattern in starred)

    @cached_property
    def _entries(self) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
        """Collect what configurations name: paths without suffix, those with a star, and `rootDirs`."""
        named = list(self._packages.entry_bases())
        named.extend(self._packages.folders)
        shifted: set[str] = set()
        for config in self._configs.all():
            named.extend(without_suffix(target) for _, targets in config.paths for target in targets)
            shifted.update(config.root_dirs)
        named.extend(base.removesuffix("/*") for base in list(named) if base.endswith("/*"))
        starred = {base for base in named if "*" in base and base.rpartition("/")[2] != "*"}
        return frozenset(named) - starred, tuple(sorted(starred)), tuple(sorted(shifted))


def is_configuration(path: str) -> bool:
    """Whether the content of the file affects how specifiers resolve."""
    return path.rpartition("/")[2] in {MANIFEST, PNPM, LERNA} or is_named(path)


def _matches_pattern(path: str, pattern: str) -> bool:
    prefix, _, suffix = pattern.partition("*")
    suffix = suffix.rpartition("*")[2]
    return len(path) >= len(prefix) + len(suffix) and path.startswith(prefix) and path.endswith(suffix)
