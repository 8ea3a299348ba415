"""Finds the file for a path without a suffix, or with another one, as TypeScript and JavaScript runtimes do."""

import posixpath
from collections.abc import Collection, Iterator, Sequence

TYPED = (".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
"""Suffixes of files that TypeScript's order of suffixes holds for."""
TYPES_FIRST = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs", ".json")
SCRIPTS_FIRST = (".js", ".jsx", ".mjs", ".cjs", ".json", ".ts", ".tsx", ".mts", ".cts", ".d.ts")
SWAPS = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
"""What TypeScript calls by the suffix of what it will be compiled to."""
BUILT = (".d.mts", ".d.cts", ".d.ts", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json")
"""Suffixes of what a build makes of a source file."""


def is_typed(source: str) -> bool:
    """Whether the file's imports are looked up in TypeScript's order."""
    return source.endswith(TYPED)


def find_file(base: str, paths: Collection[str], *, typed: bool) -> str | None:
    """Return the file (not folder) that `base` refers to."""
    return next((path for path in file_names(base, typed=typed) if path in paths), None)


def find_index(folder: str, paths: Collection[str], *, typed: bool) -> str | None:
    """Return the index file of the folder, ignoring its `package.json`."""
    base = join(folder, "index")
    order = TYPES_FIRST if typed else SCRIPTS_FIRST
    return next((base + suffix for suffix in order if base + suffix in paths), None)


def file_names(base: str, *, typed: bool) -> Iterator[str]:
    """Candidate paths for `base`, best first."""
    stem, suffix = posixpath.splitext(base)
    swaps = SWAPS.get(suffix, ())
    if not typed or not swaps:
        yield base
    yield from (stem + swap for swap in swaps)
    if typed and swaps:
        yield base
    order: Sequence[str] = TYPES_FIRST if typed else SCRIPTS_FIRST
    yield from (base + one for one in order)


def without_suffix(path: str) -> str:
    """Strip the suffix of a source file, or of a file built from one."""
    return next((path[: -len(suffix)] for suffix in BUILT if path.endswith(suffix)), path)


def join(folder: str, name: str) -> str:
    """Normalise `name` relative to `folder`; "" is the repository's root, and ".." at the start leads outside it."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if path == "." else path
