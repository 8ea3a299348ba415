"""Whatever was edited, committed, renamed or taken back since: the index is the one that a fresh build gives."""

import contextlib
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from testing.index_dump import dump_of, index
from testing.repositories import commit, copy_repository, git, make_repository

from clean_room_agent.errors import CommandError
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.workspace import Workspace

NAMES = (
    "m.py",
    "pkg/__init__.py",
    "pkg/a.py",
    "pkg/b.py",
    "pkg/sub/__init__.py",
    "pkg/sub/c.py",
    "src/tool.py",
    "web/x.ts",
    "web/y/index.ts",
    "web/z.js",
    "web/app.tsx",
    "web/lib.js",
    "tsconfig.json",
    "package.json",
    "notes.md",
)
TEXTS = (
    "from pkg import a, helper\n\ndef run():\n    return helper(a.K().m())\n",
    "from .b import helper\nfrom .a import *\n",
    "from .b import helper as assist\nfrom .sub.c import Deep\n\n__all__ = ['assist']\n",
    "from pkg.b import helper\n\nclass K:\n    'Doc.'\n    def m(self): return helper()  # because\n",
    "class K:\n    limit: int = 3\n    def m(self): return self.n()\n    def n(self): return self.limit\n",
    "from pkg.a import K\nimport pkg.b as other\n\nclass L(K):\n    def n(self): return super().n() + other.helper()\n",
    "from pkg import *\nfrom pkg import assist\n\ndef use(thing: 'K'):\n    thing.m()\n    thing.rarely()\n    assist()\n",
    "def helper(): pass\n" * 3,
    "if True:\n    def helper(): pass\nelse:\n    def helper(): return 1\n\nclass Deep:\n    def rarely(self): pass\n",
    "import tool\nfrom tool import helper\n\n@helper\ndef decorated(): return tool.run()\n",
    "def run(): return rarely()\n\ndef rarely(): return run\n",
    "import { y } from './y'\nexport const x = () => y\n",
    "import { x } from '@/x'\nimport type { T } from 'till/y'\nconst z = require('./z')\n",
    "export * from './x'\nexport { K as Kept, helper } from './z'\nexport * as whole from './y'\n",
    "export * from './y'\nexport class K { m() { return this.n() } n() { return helper() } }\nexport function helper() {}\n",
    (
        "import { K, Kept, helper, whole } from './y'\nexport class L extends K { n() { return super.n() } }\n"
        "export function use(k: Kept, l = new L()) { k.m(); l.n(); helper(); whole.helper(); k.rarely(); l.seldom() }\n"
    ),
    "import D, { type K } from './z'\nexport const made: K = new D()\nexport default function App() { return <D m={made.m()} /> }\n",
    "export default class { m(): void {} }\nexport interface K { m(): void; n(): K }\nexport const seldom = () => 1\n",
    "const { helper } = require('./z')\nconst x = require('./x')\nfunction seldom() { helper(); return x.K }\nmodule.exports = { seldom }\n",
    "exports.helper = function () { return seldom() }\nfunction seldom() {}\nexports.K = class { rarely() {} }\n",
    '{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["web/*"]}}}\n',
    '{"name": "till", "exports": {"./y": "./web/y/index.ts"}}\n',
    "broken (\n",
    "",
    "\0binary",
)
WEB_NAMES = tuple(name for name in NAMES if name.startswith("web/"))
WEB_TEXTS = TEXTS[11:20]
GO_NAMES = ("go.mod", "go/a.go", "go/b.go", "go/in/c.go", "go/in/c_test.go", "m.go", "r1.go")
GO_TEXTS = (
    "module x.y/web\n",
    "module x.y/go\n",
    'package go\nimport "x.y/web/go/in"\nfunc Use(t in.Thing) { t.Run(); helper(t) }\n',
    'package go\nimport "x.y/go/in"\ntype Own struct { in.Thing }\nfunc (o *Own) helper() { o.Run(); helper(o) }\n',
    "package in\ntype Thing struct{}\nfunc (t Thing) Run() { helper(t) }\n",
    "package in\nfunc helper(t any) { new(Thing).Run() }\n",
    "package in\nfunc (t *Thing) Stop() { Use(t); t.Run() }\n",
    "package broken (\n",
)
ACTS = ("write", "write", "write", "delete", "commit", "rename", "undo", "index", "branch", "merge", "reset")
BASE = {
    "m.py": TEXTS[0],
    "pkg/__init__.py": TEXTS[1],
    "pkg/a.py": TEXTS[3],
    "pkg/b.py": TEXTS[7],
    "web/x.ts": TEXTS[11],
    "web/y/index.ts": TEXTS[13],
    "web/app.tsx": TEXTS[15],
    "tsconfig.json": TEXTS[20],
}
CONFIG = IndexConfig(history=6, pair_bound=3)
SEEDS = int(os.environ.get("CRA_SEEDS", "5"))
STEPS = 9


def try_git(top: Path, *arguments: str) -> None:
    """What git refuses (no such commit, a conflict) is no step."""
    with contextlib.suppress(CommandError):
        git(top, *arguments)


def act(top: Path, what: str, name: str, text: str, number: int) -> None:
    path = top / name
    match what:
        case "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        case "delete":
            path.unlink(missing_ok=True)
        case "commit":
            commit(top, {}, f"Step {number} of {name}")
        case "rename" if path.exists():
            path.rename(path.with_stem(f"r{number}"))
        case "undo":
            try_git(top, "checkout", "-q", "--", ".")
        case "branch":
            try_git(top, "checkout", "-q", "-f", "-B", f"b{number}", "HEAD~1" if number % 2 else "HEAD")
        case "merge":
            git(top, "reset", "-q", "--hard")
            try_git(top, "merge", "-q", "-X", "ours", "main", "--allow-unrelated-histories")
            git(top, "reset", "-q", "--hard")
        case "reset":
            try_git(top, "reset", "-q", "--hard", "HEAD~1")
        case "index":
            index(top, config=CONFIG)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = make_repository(tmp_path_factory.mktemp("base") / "repo", BASE)
    commit(top, {"notes.md": "Notes.\n"}, "Take notes")
    index(top, config=CONFIG)
    return top


@pytest.mark.parametrize(
    "world", [(NAMES, TEXTS), (WEB_NAMES, WEB_TEXTS), (GO_NAMES, GO_TEXTS)], ids=["all", "web", "go"]
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_sequence_of_edits_ends_in_the_index_of_a_fresh_build(
    base: Path, tmp_path: Path, seed: int, world: tuple[Sequence[str], Sequence[str]]
) -> None:
    chance = random.Random(seed)
    top = copy_repository(base, tmp_path / "repo")
    names, texts = world
    steps = [(chance.choice(ACTS), chance.choice(names), chance.choice(texts)) for _ in range(STEPS)]
    for number, (what, name, text) in enumerate(steps):
        act(top, what, name, text, number)
    index(top, config=CONFIG)
    updated = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top, config=CONFIG)
    fresh = dump_of(top)
    for table, rows in fresh.items():
        assert updated[table] == rows, (table, steps)


def test_a_name_is_the_only_one_of_its_language(tmp_path: Path) -> None:
    use, rarely = "def use(thing):\n    thing.rarely()\n", "def rarely(): pass\n"
    top = make_repository(
        tmp_path / "repo", {"a.py": use, "b.py": rarely, "c.py": "", "d.js": "function rarely() {}\n"}
    )
    index(top)
    assert [row[3] for row in dump_of(top)["symbol_references"]] == ["rarely:0"]
    (top / "c.py").write_text(rarely)
    (top / "d.js").write_text("")
    index(top)
    assert dump_of(top)["symbol_references"] == []
