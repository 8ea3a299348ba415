"""Docstrings, comments and the heads of files, mutated and indexed: no reader may raise, give a file up or take more than a second.

python -m testing.faults.fuzz_index 123456    # one input again, by the number that a finding is told with
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from clean_room_agent.db.curated.files import NOT_PARSED
from clean_room_agent.indexer.docstrings import read_docstring
from clean_room_agent.indexer.extract import FileFacts, extract
from clean_room_agent.indexer.languages.comments import classify
from testing.faults import fuzz
from testing.faults.figures import Effort, Figure
from testing.faults.fuzz_targets import Broken, Target
from testing.faults.mutation import damaged

TIMES: dict[Effort, int] = {"short": 1_000, "full": 100_000}
MAX_BYTES = 200_000
SCRIPTS = ("source.ts", "source.tsx", "source.js")
DOCSTRINGS = (
    "Do it.\n\n:param x: what\n:type x: int\n:returns: that\n:rtype: int\n:raises ValueError: when\n",
    "Do it.\n\n:param int x: what\n:  : odd\n:param: nothing\n::\n:raises: always\n:yields x: y\n",
    "Do it.\n\nArgs:\n    x (int, optional): What. Defaults to 1.\n    *more: The rest.\n\nReturns:\n    int: That.\n\nRaises:\n    ValueError: When.\n",
    "Do it.\n\nParameters\n----------\nx, y : int, optional\n    What.\n\nReturns\n-------\nint\n    That.\n\nRaises\n------\nValueError\n    When.\n",
    "Do it.\n\n@param x: what\n@type x: int\n@return: that\n@rtype: int\n@raise ValueError: when\n",
    "Do it.\n@param {{a: {b: string}}} x - what\n@param {number} [y=[1]] that\n@returns {Promise<void>} then\n@throws {Error} when\n@template T\n",
)
DOC_WORDS = (
    ":param", ":param x:", ":  :", "::", ":", ":raises", ":returns:", "@param", "@param {", "@return:", "Args:\n", "Returns:\n",
    "Raises:\n", "Parameters\n---\n", "----------\n", "\n    ", "\n\n", "(int)", "x : ", "[", "]", "{", "}", ", optional", "Defaults to ",
)  # fmt: skip
COMMENTS = (
    "# TODO(me): do it, because it must not stay; see #123\n# FIXME: later\nx = 1  # noqa: E501\n# type: ignore[x]\n# -*- coding: utf-8 -*-\n",
    "// eslint-disable-next-line no-x -- since it is so\n/* a workaround */\nlet x = 1 // @ts-ignore\n/** @type {number} */\n//#region x\n",
)
COMMENT_WORDS = (
    "#",
    "//",
    "/*",
    "*/",
    "/**",
    "\n# ",
    "TODO",
    "NOTE:",
    "noqa: ",
    "type: ignore",
    "because ",
    "must not ",
    "GH-1",
    "'''",
)
HEADS = (
    (
    '#!/usr/bin/env python3\n# coding: utf-8\n"""Boxes."""\nfrom __future__ import annotations\nimport os, sys as s\nfrom . import (a, b as c)\ntry:\n'
    '    import x\nexcept ImportError:\n    x = None\n__all__ = ["f"]\n@d(1)\nasync def f(x: int = 1, /, *a, y=(2), **k) -> "T": pass\nclass C[T](B, m=M): x: int = 1\n'
    ),
    (
    '#!/usr/bin/env node\n"use strict"\nimport a, { type B, c as d } from "./a.js"\nimport * as e from "e"\nexport * as f from "f"\nexport { a as default }\n'
    'const { g, ...h } = require("g")\nmodule.exports = { g }\nexport default class C extends D { static #x = 1; get y() { return 1 } }\ndeclare module "m" {}\n'
    ),
)  # fmt: skip
HEAD_WORDS = (
    "import ",
    "from ",
    "from . import *\n",
    "export ",
    "def ",
    "class ",
    "@",
    "(",
    ")",
    "[",
    "=>",
    "`",
    "as ",
    "\\\n",
    "async ",
    "lambda ",
)


def make_targets(folder: Path) -> tuple[Target, ...]:
    """The readers of an index. `folder` holds the files that must exist to be read."""
    return (
        Target(name="docstrings", weight=5, seeds=DOCSTRINGS, words=DOC_WORDS, longest=8_000, read=partial(_docstring, folder)),
        Target(name="comments", weight=2, seeds=COMMENTS, words=COMMENT_WORDS, longest=8_000, read=partial(_comment, folder)),
        Target(name="heads of files", weight=3, seeds=HEADS, words=HEAD_WORDS, longest=8_000, read=partial(_file, folder)),
    )  # fmt: skip


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """The figures of all inputs."""
    return fuzz.figures(
        TIMES[effort],
        work,
        make_targets,
        what="index: mutated docstrings, comments and heads of files",
        target="0 in 100,000",
    )


def _docstring(folder: Path, text: str, rng: random.Random) -> None:
    read_docstring(text, is_jsdoc=rng.random() < 0.3)
    inner = text.replace("\n", "\n    ")
    _file(folder, f'def f(x):\n    """{inner}\n    """\n', rng, ("source.py",))
    _file(folder, f"/** {text} */\nfunction f(x) {{}}\n", rng, SCRIPTS)


def _comment(folder: Path, text: str, rng: random.Random) -> None:
    classify(text)
    _file(folder, text, rng)


def _file(
    folder: Path, text: str, rng: random.Random, names: Sequence[str] = ("source.py", *SCRIPTS)
) -> None:
    name = rng.choice(names)
    (folder / name).write_bytes(damaged(rng, text) if rng.random() < 0.2 else text.encode("utf-8", "replace"))
    found = extract(folder, name, max_bytes=MAX_BYTES)
    if isinstance(found, FileFacts) and (found.file.parse_error or "").startswith(f"{NOT_PARSED}a bug"):
        raise Broken(found.file.parse_error)


if __name__ == "__main__":
    fuzz.main(make_targets)
