"""Whatever was edited, committed, renamed or taken back since: the index is the one that a fresh build gives."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.repositories import commit, git, make_repository
from tests.indexer.dump import dump_of, index

from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.workspace import Workspace

NAMES = ("m.py", "pkg/__init__.py", "pkg/a.py", "pkg/b.py", "web/x.ts", "web/y/index.ts", "notes.md")
TEXTS = (
    "from pkg import a, helper\n\ndef run(): pass\n",
    "from .b import helper\nfrom .a import *\n",
    "from pkg.b import helper\n\nclass K:\n    'Doc.'\n    def m(self): pass  # because\n",
    "def helper(): pass\n" * 3,
    "import { y } from './y'\nexport const x = () => y\n",
    "broken (\n",
    "",
    "\0binary",
)
Step = tuple[str, str, str]
STEPS = st.tuples(st.sampled_from(("write", "delete", "commit", "rename", "undo", "index")), st.sampled_from(NAMES),
                  st.sampled_from(TEXTS))  # fmt: skip
BASE = {"m.py": TEXTS[0], "pkg/__init__.py": TEXTS[1], "pkg/b.py": TEXTS[3], "web/x.ts": TEXTS[4]}
CONFIG = IndexConfig(history=6, pair_bound=3)


def act(top: Path, step: Step, number: int) -> None:
    what, name, text = step
    path = top / name
    if what == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    elif what == "delete":
        path.unlink(missing_ok=True)
    elif what == "commit":
        commit(top, {}, f"Step {number} of {name}")
    elif what == "rename" and path.exists():
        path.rename(path.with_stem(f"r{number}"))
    elif what == "undo":
        git(top, "checkout", "-q", "--", ".")
    elif what == "index":
        index(top, config=CONFIG)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=10))
def test_any_sequence_of_edits_ends_in_the_index_of_a_fresh_build(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = make_repository(Path(folder) / "repo", BASE)
        index(top, config=CONFIG)
        for number, step in enumerate(steps):
            act(top, step, number)
        index(top, config=CONFIG)
        updated = dump_of(top)
        Workspace(repo=top).curated.unlink()
        index(top, config=CONFIG)
        assert updated == dump_of(top)
