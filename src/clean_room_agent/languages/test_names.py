"""What the name of a test says. Runners name tests in three forms, and a file that could not be loaded by its path alone, or
unittest's by `unittest.loader._FailedTest.module`:

    path::Class::test[param]    pytest; go test has path::Test/subtest
    path > suite > test         runners of JavaScript; some leave the path out
    module.Class.test           unittest; the module begins at the top, or at the folder where discovery did
"""

import re
from collections.abc import Collection
from pathlib import PurePosixPath

SEPARATOR = " > "
"""Separates the titles of JavaScript's tests; the first part is the file, if the runner says it."""
FIRST_MARK = re.compile(r"::| > ")
DOTTED = re.compile(r"(?:[A-Za-z_][\w-]*\.)*[A-Za-z_]\w*\.[A-Za-z_]\w*")
UNLOADED = "unittest.loader._FailedTest."
"""Precedes the name of a module that unittest could not load."""
CODE_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?|go)\Z")
NUMBER = re.compile(r" #\d+\Z")


def file_part(name: str) -> str:
    """The part before the first `::` or ` > `: the test's file, or its first title; the whole name if there is neither.
    A file that could not be loaded is named by its path alone.
    """
    return FIRST_MARK.split(name, maxsplit=1)[0]


def is_of_file(name: str) -> bool:
    """Whether the name is that of a whole file, which could not be loaded."""
    return name.startswith(UNLOADED) or (CODE_FILE.search(name) is not None and file_part(name) == name)


def is_bare(name: str) -> bool:
    """Whether the name has neither a file nor a class, as that of a folder that could not be loaded."""
    return file_part(name) == name and not DOTTED.fullmatch(name)


def split_pytest_id(name: str) -> tuple[str, str]:
    """File and qualified name of a pytest id, without parameters; ("", name) for a bare name."""
    path, marked, rest = name.partition("::")
    if not marked:
        return "", name.partition("[")[0]
    return path, ".".join(part.partition("[")[0] for part in rest.split("::"))


def names_test(name: str, path: str, symbol: str) -> bool:
    """Whether a runner's name may be that of the definition `symbol` in the file at `path`, or of that whole file."""
    if is_of_file(name):
        return path in files_meant(name)
    stated, qualified = split_pytest_id(name)
    return stated in {"", path} and f".{qualified}".endswith(f".{symbol}")


def group_of(name: str) -> str:
    """The group of a test: its file, or its first title; the class of a dotted name."""
    return name.rpartition(".")[0] if DOTTED.fullmatch(name) else file_part(name)


def files_meant(name: str) -> tuple[str, ...]:
    """The relative paths that a test's name may refer to, likeliest first; some of them, or all, may not exist.

    unittest's dotted names start where its discovery did: the longest module comes first.
    """
    if name.startswith(UNLOADED):
        return (f"{name.removeprefix(UNLOADED).replace('.', '/')}.py",)
    if not DOTTED.fullmatch(name) or is_of_file(name):
        return (file_part(name),)
    parts = name.split(".")
    return (name, *("/".join(parts[:count]) + ".py" for count in range(len(parts) - 1, 0, -1)))


def titles_of(name: str) -> str:
    """The titles after the file in `path > suite > test`, still joined; "" if there are none."""
    return name.partition(SEPARATOR)[2]


def unnumbered(name: str) -> str:
    """The name without the number that distinguishes equal names."""
    return NUMBER.sub("", name)


def is_in(name: str, files: Collection[str]) -> bool:
    """Whether the test `name` belongs to one of `files` (relative paths), as far as the name shows. A node id is exact;
    unittest's dotted names start at the folder where discovery did, so the ends of paths are compared; mocha's and
    node's names contain no file.
    """
    path, _, rest = name.partition("::")
    if rest or path in files:
        return path in files
    if name.partition(SEPARATOR)[0] in files:
        return True
    modules = (PurePosixPath(file.removesuffix(".py")).parts for file in files)
    return any(
        name.startswith(".".join(parts[start:]) + ".") for parts in modules for start in range(len(parts))
    )


def module_or_file(name: str) -> str:
    """The file of a test as its runner writes it: a path, or a module."""
    path, marked, _ = name.partition("::")
    module = name.removeprefix(UNLOADED)
    if marked or path.endswith(".py"):
        return path
    return module if module != name else name.rpartition(".")[0].rpartition(".")[0]


def spellings(name: str) -> set[str]:
    """A test `path::Class::test`, or a file, as pytest and unittest may name it: from each folder of its path."""
    path, marked, rest = name.partition("::")
    parts = path.split("/")
    paths = ["/".join(parts[start:]) for start in range(len(parts))]
    modules = [one.removesuffix(".py").replace("/", ".") for one in paths]
    return {
        *(f"{one}{marked}{rest}" for one in paths),
        *(".".join(filter(None, (one, *rest.split("::")))) for one in modules),
    }
