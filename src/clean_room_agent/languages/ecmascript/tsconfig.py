"""Finds the `tsconfig.json` or `jsconfig.json` of a file, and reads its `paths` and `baseUrl`."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain

from msgspec import Struct, field

from clean_room_agent.languages.ecmascript.files import join
from clean_room_agent.languages.ecmascript.packages import split_package
from clean_room_agent.languages.jsonc import as_object, as_text, as_texts, read_object
from clean_room_agent.paths import compile_globs, whole_name_stars

NAMES = ("tsconfig.json", "jsconfig.json")
MAX_EXTENDS = 20
"""How long a chain of `extends` may be; longer ones are circles."""
OPTIONS = ("baseUrl", "paths", "rootDirs", "outDir")
LISTS = ("files", "include", "exclude")
CONFIG_DIR = "${configDir}"
LEFT_OUT = ("node_modules", "bower_components", "jspm_packages")


class Config(Struct, frozen=True, kw_only=True, dict=True):
    """One configuration merged with those it extends; all paths are relative to the repository's root."""

    path: str
    paths: tuple[tuple[str, tuple[str, ...]], ...]
    """Pattern of specifiers -> what to try, both with at most one `*`."""
    base_url: str | None
    root_dirs: tuple[str, ...]
    references: tuple[str, ...]
    files: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    def holds(self, source: str) -> bool:
        """Whether the file belongs to this project."""
        if source in self.files:
            return True
        return self._include_pattern.match(source) is not None and self._exclude_pattern.match(source) is None

    def targets(self, specifier: str) -> tuple[str, ...]:
        """What `paths` maps the specifier to: by the exact pattern, else by the one with the longest prefix."""
        best: tuple[int, tuple[str, ...]] = (-1, ())
        for pattern, targets in self.paths:
            prefix, star, suffix = pattern.partition("*")
            if not star:
                if pattern == specifier:
                    return targets
                continue
            fits = len(specifier) >= len(prefix) + len(suffix)
            if fits and specifier.startswith(prefix) and specifier.endswith(suffix) and len(prefix) > best[0]:
                middle = specifier[len(prefix) : len(specifier) - len(suffix)]
                best = len(prefix), tuple(join("", target.replace("*", middle)) for target in targets)
        return best[1]

    @cached_property
    def _include_pattern(self) -> re.Pattern[str]:
        return _compile_pattern(self.include, whole=True)

    @cached_property
    def _exclude_pattern(self) -> re.Pattern[str]:
        return _compile_pattern(self.exclude, whole=False)


class _MergedSettings(Struct, kw_only=True):
    """Settings (including those of `compilerOptions`) by name, each with the folder of the file that sets it."""

    leaf: str
    settings: dict[str, tuple[str, object]] = field(default_factory=dict)

    def places(self, name: str, values: Sequence[str] | None = None) -> tuple[str, ...]:
        """Resolve the paths in the setting `name` (or `values` instead of its own) from the repository's root."""
        folder, value = self.settings.get(name, (self.leaf, None))
        return tuple(
            self._resolve_path(folder, one) for one in (as_texts(value) if values is None else values)
        )

    def _resolve_path(self, folder: str, value: str) -> str:
        if value.startswith(CONFIG_DIR):
            return join(self.leaf, f".{value[len(CONFIG_DIR) :]}")
        return join(folder, value)


class Configs:
    """All configurations of a repository."""

    def __init__(
        self,
        paths: Collection[str],
        read: Callable[[str], str | None],
        package: Callable[[str, str], str | None],
    ) -> None:
        """`package` maps a configuration's folder and a package's name to that package's folder."""
        self._paths = paths
        self._read = read
        self._package = package
        self.of = cache(self._of)
        """The nearest configuration whose project includes a file, else the nearest with `paths` or `baseUrl`."""
        self._nearest_configs = cache(self._nearest)
        self._config = cache(self._read_config)

    def _of(self, source: str) -> Config | None:
        near = self._nearest_configs(source.rpartition("/")[0])
        holding = (config for config in near if len(near) > 1 and config.holds(source))
        says = (config for config in near if config.paths or config.base_url is not None)
        return next(chain(holding, says, near), None)

    def all(self) -> Iterator[Config]:
        """Every file whose name marks it as a configuration, sorted."""
        named = sorted(path for path in self._paths if path.endswith(".json") and is_named(path))
        yield from (self._config(path) for path in named)

    def _nearest(self, folder: str) -> tuple[Config, ...]:
        """The configurations in and above the folder, nearest first, each followed by those it references."""
        found = (join(folder, name) for name in NAMES)
        first = next((path for path in found if path in self._paths), None)
        own = () if first is None else tuple(self._with_references(first))
        return own + (self._nearest_configs(folder.rpartition("/")[0]) if folder else ())

    def _with_references(self, path: str) -> Iterator[Config]:
        seen = {path}
        waiting = [path]
        while waiting:
            config = self._config(waiting.pop(0))
            yield config
            for reference in config.references:
                if reference not in seen and reference in self._paths and is_named(reference):
                    seen.add(reference)
                    waiting.append(reference)

    def _read_config(self, path: str) -> Config:
        merged = _MergedSettings(leaf=path.rpartition("/")[0])
        self._merge_settings(path, merged, MAX_EXTENDS)
        base = merged.places("baseUrl")
        files, include = merged.places("files"), merged.places("include")
        if "files" not in merged.settings and "include" not in merged.settings:
            include = (join(merged.leaf, "**/*"),)
        exclude = merged.places("exclude")
        if "exclude" not in merged.settings:
            left_out = (join(merged.leaf, f"**/{name}") for name in LEFT_OUT)
            exclude = (*left_out, *merged.places("outDir"))
        listed = read_object(self._read(path)).get("references")
        named = [as_text(as_object(one).get("path")) for one in (listed if isinstance(listed, list) else ())]
        return Config(
            path=path,
            paths=_path_mappings(merged, base[0] if base else None),
            base_url=base[0] if base else None,
            root_dirs=merged.places("rootDirs"),
            references=tuple(
                path if path.endswith(".json") else join(path, "tsconfig.json")
                for path in (join(merged.leaf, name) for name in named if name)
            ),
            files=files,
            include=include,
            exclude=exclude,
        )

    def _merge_settings(self, path: str, merged: _MergedSettings, hops: int) -> None:
        """Apply the settings of the file at `path` over those it extends."""
        folder = path.rpartition("/")[0]
        said = read_object(self._read(path))
        for name in as_texts(said.get("extends")) if hops else ():
            inherited = self._extended_path(folder, name)
            if inherited is not None:
                self._merge_settings(inherited, merged, hops - 1)
        options = as_object(said.get("compilerOptions"))
        merged.settings.update({name: (folder, options[name]) for name in OPTIONS if name in options})
        merged.settings.update({name: (folder, said[name]) for name in LISTS if name in said})

    def _extended_path(self, folder: str, name: str) -> str | None:
        if name.startswith((".", "/")):
            base: str | None = join(folder, name)
        else:
            package_name, rest = split_package(name)
            package = self._package(folder, package_name)
            base = None if package is None else join(package, rest or "tsconfig.json")
        if base is None:
            return None
        candidates = (base, f"{base}.json", join(base, "tsconfig.json"))
        return next((path for path in candidates if path in self._paths and is_named(path)), None)


def is_named(path: str) -> bool:
    """Whether the file's name marks it as a configuration. Files that are extended or referenced must match, too."""
    name = path.rpartition("/")[2]
    return name.endswith(".json") and ("config" in name or "base" in name)


def _path_mappings(merged: _MergedSettings, base_url: str | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: Mapping[str, object] = as_object(merged.settings.get("paths", ("", None))[1])
    if base_url is None:
        return tuple((pattern, merged.places("paths", as_texts(value))) for pattern, value in found.items())
    return tuple(
        (pattern, tuple(join(base_url, one) for one in as_texts(value))) for pattern, value in found.items()
    )


def _compile_pattern(globs: Sequence[str], *, whole: bool) -> re.Pattern[str]:
    """Compile globs into a pattern for the files they match and the files in folders they match; with `whole`, one whose last part
    has a star or a suffix matches no folders.
    """
    patterns: list[str] = []
    for glob in map(whole_name_stars, globs):
        is_file = whole and re.search(r"[.*?]", glob.rpartition("/")[2]) is not None
        patterns += [glob] if is_file else [glob, f"{glob}/**".removeprefix("/")]
    return compile_globs(tuple(patterns))
