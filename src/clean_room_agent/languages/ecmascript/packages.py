"""Packages of the repository by their name in `package.json`, with `exports` and workspaces."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from clean_room_agent.languages.base import above
from clean_room_agent.languages.ecmascript.files import find_file, find_index, join, without_suffix
from clean_room_agent.languages.jsonc import as_object, as_text, as_texts, read_object, read_packages
from clean_room_agent.paths import compile_globs, expand_braces, whole_name_stars

MANIFEST = "package.json"
PNPM = "pnpm-workspace.yaml"
LERNA = "lerna.json"
DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
LINKS = frozenset({"file", "link", "portal"})
ENTRIES = ("types", "typings", "main", "module", "source")
"""What names a package's entry where there are no `exports`; the first two only for TypeScript."""
ELSEWHERE = frozenset({"browser", "react-native", "electron", "worker", "deno", "edge-light", "workerd"})
"""Conditions that are tried after all others."""
BUILT_FOLDERS_NAMES = (
    "dist build lib out output es esm cjs umd types typings dts bundle bundles module commonjs .output temp"
)
BUILT_FOLDERS = frozenset(BUILT_FOLDERS_NAMES.split())
SOURCE_FOLDERS = ("src", "source", "lib", "")
MAX_DEPTH = 20


class Leaf(NamedTuple):
    """A target in `exports` or `imports`, and the conditions under which it applies."""

    target: str
    conditions: tuple[str, ...]


class Packages:
    """The packages visible to a file: its own, those of enclosing workspaces, and those linked by a path."""

    def __init__(self, paths: Collection[str], read: Callable[[str], str | None]) -> None:
        self._paths = paths
        self._read = read
        self.manifest = cache(self._manifest)
        """The parsed `package.json` of a folder; empty if it has none."""
        self.nearest = cache(self._nearest)
        """The nearest folder, from this one upwards, that holds a `package.json`."""
        self.named = cache(self._named)
        """The folder of the package that files in a folder import under a name."""
        self._members_of = cache(self._members)
        self._links_of = cache(self._links)

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders that hold a `package.json`, sorted."""
        parts = (path.rpartition("/") for path in self._paths if path.endswith(MANIFEST))
        return tuple(sorted(folder for folder, _, name in parts if name == MANIFEST))

    def _manifest(self, folder: str) -> Mapping[str, object]:
        path = join(folder, MANIFEST)
        return read_object(self._read(path)) if path in self._paths else {}

    def _nearest(self, folder: str) -> str | None:
        return next((one for one in above(folder) if join(one, MANIFEST) in self._paths), None)

    def _named(self, folder: str, name: str) -> str | None:
        own = self.nearest(folder)
        if own is None and not self.folders:
            return None
        if own is not None and self.manifest(own).get("name") == name:
            return own
        for around in above(folder):
            for known in (self._members_of(around), self._links_of(around)):
                if name in known:
                    return known[name]
        return None

    def entry(self, folder: str, inside: str, *, typed: bool) -> str | None:
        """The source file that the package in `folder` exports as `inside` ("." or "./…")."""
        manifest = self.manifest(folder)
        exports = manifest.get("exports")
        if exports is not None:
            targets = [leaf.target for leaf in ordered(leaves(exports, inside), typed=typed)]
            if not targets:
                return None
        elif inside == ".":
            names = ENTRIES if typed else ENTRIES[2:]
            targets = [as_text(manifest.get(name)) for name in names]
        else:
            targets = [inside]
        usual = usual_bases(folder, as_text(manifest.get("name"))) if inside == "." else []
        for target in filter(None, targets):
            found = self.target(folder, target, typed=typed)
            if found is None and is_built(target):
                # The usual source of a built file takes precedence over fallbacks for other platforms.
                found = self._first_file(usual, typed=typed)
            if found is not None:
                return found
        return self._first_file(usual or [join(folder, f"src/{inside}")], typed=typed)

    def target(self, folder: str, target: str, *, typed: bool) -> str | None:
        """The file that `target` in the folder's `package.json` names, or the source that it is built from."""
        return self._first_file([join(folder, target), *source_bases(folder, target)], typed=typed)

    def folder_entry(self, folder: str, *, typed: bool) -> str | None:
        """The file that importing the folder itself loads."""
        manifest = self.manifest(folder)
        for name in ENTRIES if typed else ENTRIES[2:]:
            target = as_text(manifest.get(name))
            found = self.target(folder, target, typed=typed) if target else None
            if found is not None:
                return found
        return find_index(folder, self._paths, typed=typed)

    def entry_bases(self) -> Iterator[str]:
        """Paths, without suffix, that any `package.json` may lead to; patterns keep their star."""
        for folder in self.folders:
            manifest = self.manifest(folder)
            yield from usual_bases(folder, as_text(manifest.get("name")))
            targets = [as_text(manifest.get(name)) for name in ENTRIES]
            for name in ("exports", "imports"):
                targets.extend(leaf.target for leaf in _all_leaves(manifest.get(name), (), MAX_DEPTH))
            for target in targets:
                if target:
                    yield without_suffix(join(folder, target))
                    yield from source_bases(folder, target)

    def _first_file(self, bases: list[str], *, typed: bool) -> str | None:
        for base in bases:
            found = find_file(base, self._paths, typed=typed) or find_index(base, self._paths, typed=typed)
            if found is not None:
                return found
        return None

    def _members(self, root: str) -> Mapping[str, str]:
        """Name -> folder of the packages in the workspace that `root` declares, including its own."""
        globs = self._workspace_globs(root)
        found: dict[str, str] = {}
        inside = (folder for folder in self.folders if _is_member(folder, root, globs))
        for folder in (root, *inside) if globs else ():
            if name := as_text(self.manifest(folder).get("name")):
                found.setdefault(name, folder)
        return found

    def _workspace_globs(self, root: str) -> tuple[str, ...]:
        declared = self.manifest(root).get("workspaces")
        if isinstance(declared, dict):
            declared = declared.get("packages")
        globs = list(as_texts(declared))
        if (path := join(root, PNPM)) in self._paths:
            globs.extend(read_packages(self._read(path)))
        if (path := join(root, LERNA)) in self._paths:
            globs.extend(as_texts(read_object(self._read(path)).get("packages")))
        return tuple(globs)

    def _links(self, folder: str) -> Mapping[str, str]:
        """Name -> folder of the folder's dependencies that are given as paths."""
        manifest = self.manifest(folder)
        versions = (item for kind in DEPENDENCIES for item in as_object(manifest.get(kind)).items())
        found: dict[str, str] = {}
        for name, version in versions:
            scheme, colon, path = as_text(version).partition(":")
            if colon and scheme in LINKS and join(join(folder, path), MANIFEST) in self._paths:
                found.setdefault(name, join(folder, path))
        return found


def split_package(specifier: str) -> tuple[str, str]:
    """Split a specifier into the package's name (with its scope) and the rest."""
    parts = specifier.split("/", 2 if specifier.startswith("@") else 1)
    size = 2 if specifier.startswith("@") else 1
    return "/".join(parts[:size]), "/".join(parts[size:])


def leaves(offered: object, inside: str) -> tuple[Leaf, ...]:
    """The targets of `exports` or `imports` for a key, in their order; empty if the key is not offered.

    leaves({"./x/*": {"import": "./src/*.js"}}, "./x/a") == (Leaf("./src/a.js", ("import",)),)
    """
    table = as_object(offered)
    if not table or not next(iter(table)).startswith((".", "#")):
        return tuple(_all_leaves(offered, (), MAX_DEPTH)) if inside == "." else ()
    if inside in table and "*" not in inside:
        return tuple(_all_leaves(table[inside], (), MAX_DEPTH))
    best: tuple[int, str] = (-1, "")
    for key in table:
        prefix, star, suffix = key.partition("*")
        if not star and not key.endswith("/"):
            continue
        fits = (
            len(inside) >= len(prefix) + len(suffix) and inside.startswith(prefix) and inside.endswith(suffix)
        )
        if fits and len(prefix) > best[0]:
            best = len(prefix), key
    if not best[1]:
        return ()
    prefix, star, suffix = best[1].partition("*")
    middle = inside[len(prefix) : len(inside) - len(suffix)]
    found = _all_leaves(table[best[1]], (), MAX_DEPTH)
    return tuple(
        Leaf(leaf.target.replace("*", middle) if star else leaf.target + middle, leaf.conditions)
        for leaf in found
    )


def ordered(found: tuple[Leaf, ...], *, typed: bool) -> list[Leaf]:
    """The order in which to try them: types only for TypeScript, other platforms last."""
    wanted = [leaf for leaf in found if typed or not any(one.startswith("types") for one in leaf.conditions)]
    return sorted(wanted, key=lambda leaf: not ELSEWHERE.isdisjoint(leaf.conditions))


def source_bases(folder: str, target: str) -> list[str]:
    """Paths, without suffix, where the source of a built file may be."""
    parts = [part for part in target.split("/") if part not in {"", "."}]
    bases: list[str] = []
    while parts:
        stem = without_suffix("/".join(parts))
        head, _, name = stem.rpartition("/")
        plain = join(head, name.partition(".")[0] or name)
        for one in dict.fromkeys((stem, plain)):
            bases.extend(join(folder, join(source, one)) for source in SOURCE_FOLDERS)
        if parts[0] not in BUILT_FOLDERS:
            break
        parts = parts[1:]
    return bases


def is_built(target: str) -> bool:
    """Whether the file is build output, judging by its folder."""
    return target.removeprefix("./").partition("/")[0] in BUILT_FOLDERS


def usual_bases(folder: str, name: str) -> list[str]:
    """Paths, without suffix, where the entry of a package usually is when its manifest does not say."""
    short = name.rpartition("/")[2]
    names = ["src/index", "src/main", "index", "lib/index", *([f"src/{short}"] if short else [])]
    return [join(folder, one) for one in names]


def _all_leaves(value: object, conditions: tuple[str, ...], depth: int) -> Iterator[Leaf]:
    if isinstance(value, str):
        yield Leaf(value, conditions)
    elif isinstance(value, list) and depth:
        for one in value:
            yield from _all_leaves(one, conditions, depth - 1)
    elif isinstance(value, dict) and depth:
        for key, one in value.items():
            yield from _all_leaves(one, (*conditions, key), depth - 1)


def _is_member(folder: str, root: str, globs: tuple[str, ...]) -> bool:
    if root and not folder.startswith(f"{root}/"):
        return False
    inside = folder[len(root) :].lstrip("/")
    member = False
    for glob in globs:
        if glob.startswith("!"):
            member = member and not _glob_matches(glob[1:], inside)
        else:
            member = member or _glob_matches(glob, inside)
    return member


def _glob_matches(glob: str, path: str) -> bool:
    patterns = expand_braces(whole_name_stars(glob.removeprefix("./").strip("/")))
    return compile_globs(tuple(f"{pattern}/" for pattern in patterns)).match(f"{path}/") is not None
