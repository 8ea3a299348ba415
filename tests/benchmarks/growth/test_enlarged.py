"""A repository several times over: each copy has names of its own, and leads to itself alone."""

from pathlib import Path

from benchmarks.commits.checkouts import git
from benchmarks.growth.enlarged import COMMITS, copied, make_enlarged, read_original
from testing.index_dump import dump_of, index
from testing.repositories import Files, make_repository

FILES: Files = {
    "src/tool/__init__.py": "from .core import Core\n",
    "src/tool/core.py": "class Core:\n    def __init__(self): self.run()\n    def run(self): return len(())\n",
    "tests/test_core.py": "from tool.core import Core\n\ndef test_core():\n    Core().run()\n",
    "README.md": "The tool runs the Core.\n",
    "data.bin": b"\xff\0",
}


def test_names_of_a_copy_end_in_its_number_wherever_they_stand(tmp_path: Path) -> None:
    files = dict(copied(read_original(make_repository(tmp_path / "r", FILES)), 3))
    assert sorted(files) == [
        "copy3/README.md",
        "copy3/data.bin",
        "copy3/src/toolx3/__init__.py",
        "copy3/src/toolx3/corex3.py",
        "copy3/tests/test_corex3.py",
    ]
    assert files["copy3/src/toolx3/corex3.py"].decode() == (
        "class Corex3:\n    def __init__(self): self.runx3()\n    def runx3(self): return len(())\n"
    )
    assert files["copy3/tests/test_corex3.py"].startswith(b"from toolx3.corex3 import Corex3\n")
    assert files["copy3/README.md"] == b"The tool runs the Core.\n"


def test_imports_stay_within_their_copy_and_each_has_its_history(tmp_path: Path) -> None:
    original = read_original(make_repository(tmp_path / "r", FILES))
    top = make_enlarged(original, tmp_path / "x3", 3)
    assert git(top, "status", "--porcelain") == ""
    assert int(git(top, "rev-list", "--count", "HEAD")) == 3 * (COMMITS + 1)
    index(top)
    edges = [(str(row[0]), str(row[1])) for row in dump_of(top)["dependencies"]]
    assert len(edges) == 6
    assert [edge for edge in edges if edge[0].split("/")[0] != edge[1].split("/")[0]] == []
