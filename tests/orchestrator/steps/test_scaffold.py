from testing.runs.memory_run import MemoryProject

from clean_room_agent.artifacts.edits import PatchEdit, Stub
from clean_room_agent.orchestrator.steps.scaffold import NO_SCAFFOLD, Scaffold, without_rewritten

STANDING = Scaffold(
    reason="it creates new.py",
    commit="c0ffee",
    paths=("new.py",),
    stubs=(Stub(path="new.py", symbol="parse"),),
    said="it parses and imports",
)


def test_without_a_scaffold_attempts_are_made_from_the_head(project: MemoryProject) -> None:
    head = project.open(lambda _: "").run.commits.tree()
    assert NO_SCAFFOLD.on(head) is head
    assert NO_SCAFFOLD.texts(head) == {}
    assert NO_SCAFFOLD.merged({"a.py": "a = 1\n", "gone.py": None}, head) == {"a.py": "a = 1\n"}


def test_a_line_says_why_it_was_made_and_what_is_left_to_write() -> None:
    assert STANDING.described() == "it creates new.py; it parses and imports; stubs: new.py::parse"
    dropped = Scaffold(reason="it creates new.py", said="its answer was cut off")
    assert dropped.described() == "it creates new.py; dropped: its answer was cut off"


def test_a_file_of_the_scaffold_alone_may_be_written_anew(project: MemoryProject) -> None:
    head = project.open(lambda _: "").run.commits.tree()
    texts = {"a.py": "a = 0\n", "new.py": "def parse(): ...\n"}
    created = PatchEdit(kind="create", file_path="new.py", replacement="x")
    assert list(without_rewritten(texts, (created,), head)) == ["a.py"]
    over = PatchEdit(kind="create", file_path="a.py", replacement="x")
    assert list(without_rewritten(texts, (over,), head)) == ["a.py", "new.py"]
