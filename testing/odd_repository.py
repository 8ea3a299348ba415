"""A repository of everything that a tool may stumble over: odd contents, names, links, kinds of files and commits."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from testing.repositories import FIRST_DATE, commit, git, init_repository, make_repository, write

Fate = Literal["symbols", "text", "bytes", "large", "undecodable"]
"""What the index is to make of a file: its symbols are known; only its words are; it is binary; it is beyond the size
bound; it is source code that cannot be decoded. The last three have no place in the index."""

LONG_NAME = "n" * 240 + ".py"
NAMES = (
    "with space.py",
    "quo'te\".py",
    "new\nline.py",
    "tab\t.py",
    "back\\slash.py",
    "-dash.py",
    "--full.py",
    ":(exclude)magic.py",
    "glob[*?].py",
    "a'; DROP TABLE files; --.py",
    "%s{0}$HOME`id`.py",
    "esc\x1b[31m.py",
    "bell\x07.py",
    "ünï-\N{SNOWMAN}-\N{GRINNING FACE}.py",
    "rtl\N{RIGHT-TO-LEFT OVERRIDE}yp.py",
    "e\N{COMBINING ACUTE ACCENT}.py",
    "\N{LATIN SMALL LETTER E WITH ACUTE}.py",
    "trailing .py",
    " leading.py",
    "UPPER.PY",
    "upper.py",
    "C:drive.py",
    "folder.py/inside.py",
    "folder with\nline/inside.py",
    "deep/" * 60 + "bottom.py",
    LONG_NAME,
    "...py",
)
NOT_UTF8 = os.fsdecode(b"caf\xe9.py")


USUAL_FILES, LARGE_BYTES, LINE_BYTES, FUNCTIONS, BRACKETS = 200, 2_500_000, 100_000, 500, 1_000


def make_odd_repository(top: Path) -> dict[str, Fate]:
    """What is to become of every regular file in the work tree, by path, names that are no UTF-8 left out."""
    init_repository(top)
    contents = odd_contents()
    usual = dict(usual_contents(USUAL_FILES))
    names = {
        name: f"def odd_{number}():\n    return {number}\n".encode() for number, name in enumerate(NAMES)
    }
    write(top, {**usual, **names, **{name: content for name, (content, _) in contents.items()}})
    write(top, {NOT_UTF8: b"x = 1\n"})
    add_links(top)
    add_submodule(top)
    commit(top, {}, "Everything")
    add_odd_commits(top)
    add_odd_kinds(top)
    fates: dict[str, Fate] = dict.fromkeys((*usual, *names), "symbols")
    return fates | {name: fate for name, (_, fate) in contents.items()} | {".gitmodules": "text"}


def usual_contents(count: int) -> Iterator[tuple[str, bytes]]:
    """Small modules, 100 to a package, each of which uses the one before."""
    for number in range(count):
        package, before = number // 100, max(number - 1, 0)
        yield (
            f"usual/p{package}/m{number}.py",
            (
                f'"""Module {number}."""\n\n'
                f"from usual.p{before // 100}.m{before} import Part{before}\n\n\n"
                f"class Part{number}(Part{before}):\n"
                f'    """Part {number} of the whole."""\n\n'
                f"    def size_{number % 50}(self, other):\n"
                f"        # the order matters, because the other is older\n"
                f"        return len(other) + {number}\n"
            ).encode(),
        )


def odd_contents() -> dict[str, tuple[bytes, Fate]]:
    """Files by what stands in them, with what is to become of them."""
    many = "".join(f"def function_{number}(a):\n    return a + {number}\n\n\n" for number in range(FUNCTIONS))
    large = "def f(a):\n    return a  # as before\n\n\n"
    return {
        "bytes/empty.py": (b"", "text"),
        "bytes/blank.py": (b"\n \n\t\n\x0c\n", "text"),
        "bytes/no_newline.py": (b"def f(): pass", "symbols"),
        "bytes/crlf.py": (b"def f():\r\n    pass\r\n", "symbols"),
        "bytes/cr.py": (b"def f():\r    pass\r", "symbols"),
        "bytes/mixed.py": (b"def f():\r\n    pass\ndef g():\n    pass\r\n", "symbols"),
        "bytes/separators.py": ("def f():\n    'a\u2028b\u0085c'\n".encode(), "symbols"),
        "bytes/bom.py": (b"\xef\xbb\xbfdef f(): pass\n", "symbols"),
        "bytes/bom_alone.py": (b"\xef\xbb\xbf", "text"),
        "bytes/utf16.py": ("\ufeffdef f(): pass\n".encode("utf-16-le"), "symbols"),
        "bytes/utf16_be.txt": ("\ufeffwords\n".encode("utf-16-be"), "text"),
        "bytes/utf16_torn.py": (b"\xff\xfed\x00e", "bytes"),
        "bytes/utf32.js": ("\ufefffunction f() {}\n".encode("utf-32-le"), "symbols"),
        "bytes/latin.py": (b"# coding: latin-1\ndef f(): return '\xe9'\n", "symbols"),
        "bytes/invalid.py": (b"def f(): return '\xff\xfe\xe9'\n", "symbols"),
        "bytes/invalid_declared.py": (b"# coding: ascii\nname = '\xff'\n", "undecodable"),
        "bytes/unknown_coding.py": (b"# coding: no-such-coding\nname = '\xff'\n", "undecodable"),
        "bytes/surrogate.py": (b"def f(): return '\xed\xa0\x80'\n", "symbols"),
        "bytes/nul.py": (b"def f(): pass\n\0\n", "bytes"),
        "bytes/nul_late.py": (b"x = 1\n" * 2_000 + b"\0\n", "bytes"),
        "bytes/nul.txt": (b"words\0words\n", "bytes"),
        "bytes/picture.py": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "bytes"),
        "size/large.py": (large.encode() * (LARGE_BYTES // len(large)), "large"),
        "size/large.txt": (b"word " * (LARGE_BYTES // 5), "large"),
        "size/line.js": (b"var x=[" + b"1," * (LINE_BYTES // 2) + b"]\n", "text"),
        "size/line.txt": (b"w" * LINE_BYTES, "text"),
        "size/line_of_words.md": (b"some words " * (LINE_BYTES // 11), "text"),
        "size/camel.py": (b"aB" * (LINE_BYTES // 2) + b" = 1\n", "symbols"),
        "size/underscores.py": (b"_" * LINE_BYTES + b" = 1\n", "symbols"),
        "size/comment.py": (b"# " + b"- " * (LINE_BYTES // 2) + b"\nx = 1\n", "symbols"),
        "size/docstring.py": (
            b'def f(a):\n    """Do.\n\n    Args:\n' + b"        a: b\n" * (LINE_BYTES // 13) + b'    """\n',
            "symbols",
        ),
        "size/spaces.py": (b'def f(a):\n    """' + b" " * LINE_BYTES + b'."""\n', "symbols"),
        "size/jsdoc.js": (
            b"/**\n" + b" * @param {{a: {b: c}}} x - y\n" * (LINE_BYTES // 30) + b" */\nfunction f() {}\n",
            "symbols",
        ),
        "size/functions.py": (many.encode(), "symbols"),
        "size/functions.ts": (
            b"".join(b"export function f%d(a: number) { return a }\n" % n for n in range(FUNCTIONS)),
            "symbols",
        ),
        "size/lines.py": (b"x = 1\n" * (LINE_BYTES // 6), "symbols"),
        **deep_contents(BRACKETS),
    }


def deep_contents(depth: int) -> dict[str, tuple[bytes, Fate]]:
    """Files whose parts stand in one another, `depth` times."""
    blocks = b"".join(b" " * level + b"if x:\n" for level in range(min(depth, 1_500)))
    classes = b"".join(b" " * level + b"class C:\n" for level in range(min(depth, 300)))
    functions = b"function f() {" * depth + b"}" * depth
    return {
        "deep/brackets.py": (b"x = " + b"(" * depth + b")" * depth + b"\n", "symbols"),
        "deep/open_brackets.py": (b"x = " + b"[" * depth + b"\n", "text"),
        "deep/brackets.js": (b"var x = " + b"[" * depth + b"]" * depth + b"\n", "symbols"),
        "deep/objects.ts": (b"const x = " + b"{a:" * depth + b"1" + b"}" * depth + b"\n", "symbols"),
        "deep/types.ts": (b"type X = " + b"Array<" * depth + b"string" + b"> " * depth + b"\n", "symbols"),
        "deep/calls.py": (b"def f(x):\n    return " + b"f(" * depth + b"x" + b")" * depth + b"\n", "symbols"),
        "deep/chain.py": (b"def f(x):\n    return x" + b".y" * depth + b"\n", "symbols"),
        "deep/called_chain.py": (b"def f(x):\n    return x" + b".y()" * depth + b"\n", "symbols"),
        "deep/sum.py": (b"x = 1" + b" + 1" * depth + b"\n", "symbols"),
        "deep/blocks.py": (blocks + b" " * min(depth, 1_500) + b"pass\n", "text"),
        "deep/classes.py": (classes + b" " * min(depth, 300) + b"pass\n", "symbols"),
        "deep/functions.js": (functions + b"\n", "symbols"),
        "deep/elif.py": (b"if x:\n    pass\n" + b"elif x:\n    pass\n" * depth, "text"),
        "deep/else_if.js": (b"if (x) {}" + b" else if (x) {}" * depth + b"\n", "text"),
        "deep/markup.jsx": (b"const x = " + b"<a>" * depth + b"</a>" * depth + b"\n", "symbols"),
        "deep/package.json": (b'{"a":' * depth + b"1" + b"}" * depth, "text"),
        "deep/tsconfig.json": (b'{"compilerOptions":{"paths":' + b"[" * depth, "text"),
        "deep/bases.py": (b"".join(b"class C%d(C%d): pass\n" % (n + 1, n) for n in range(depth)), "symbols"),
    }


def add_links(top: Path) -> None:
    """Links that lead in circles, nowhere, out of the repository and back into it."""
    for name, target in {
        "links/loop_a": "loop_b",
        "links/loop_b": "loop_a",
        "links/self.py": "self.py",
        "links/up": "..",
        "links/dangling.py": "nowhere.py",
        "links/outside.py": "/etc/hostname",
        "links/file.py": "../usual/p0/m0.py",
        "links/folder.py": "../usual",
        "links/names": "../usual/p0",
    }.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).symlink_to(target)


def add_submodule(top: Path) -> None:
    """A submodule."""
    other = make_repository(top.parent / f"{top.name}-other", {"inside.py": "def inside(): pass\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "submodule")


def add_odd_commits(top: Path) -> None:
    """Dates that no calendar has, words that are no UTF-8, no words at all, very many words."""
    for number, (author, date, message) in enumerate(
        (
            (b"A <a@example.org>", b"99999999999 +0000", b"Far away\n"),
            (b"A <a@example.org>", b"999999999999999 +0000", b"Farther\n"),
            (b"A <a@example.org>", b"%d +9959" % FIRST_DATE, b"A zone of its own\n"),
            (b"Caf\xe9 <a@example.org>", b"%d +0000" % FIRST_DATE, b"Caf\xe9 \xff\n"),
            (b" <>", b"0 +0000", b""),
            (b"A <a@example.org>", b"%d -0000" % FIRST_DATE, b"Words and words. " * 60_000),
            (b"A <a@example.org>", b"%d +0000" % FIRST_DATE, b"One\r\n\r\ntwo\0three\x1e\x1f\x01\n"),
        )
    ):
        write(top, {"history.md": f"Version {number}\n"})
        git(top, "add", "history.md")
        tree, parent = git(top, "write-tree"), git(top, "rev-parse", "HEAD")
        text = f"tree {tree}\nparent {parent}\n".encode()
        text += b"author %b %b\ncommitter %b %b\n\n%b" % (author, date, author, date, message)
        made = git(top, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", feed=text)
        git(top, "update-ref", "HEAD", made)
    (top / "history.md").unlink()


def add_odd_kinds(top: Path) -> None:
    """What is neither file nor folder, what is listed and not there, what git was only told of,
    repositories that only happen to lie in this one."""
    os.mkfifo(top / "fifo.py")
    make_repository(top / "nested", {"inside.py": "def inside(): pass\n"})
    init_repository(top / "unborn")
    write(top, {"gone.py": "x = 1\n", "told.py": "", "kind.py": "x = 1\n"})
    git(top, "add", "gone.py", "kind.py")
    git(top, "add", "--intent-to-add", "told.py")
    (top / "told.py").unlink()
    (top / "gone.py").unlink()
    (top / "kind.py").unlink()
    (top / "kind.py").mkdir()
