import pytest
from tests.orchestrator.testing.tiny_project import Runner, Write

from clean_room_agent.orchestrator.testing.progress import PercentReader


def told_by(*pieces: bytes) -> list[int]:
    told: list[int] = []
    reader = PercentReader(told.append)
    for piece in pieces:
        reader.feed(piece)
    return told


def test_each_percentage_is_told_once_and_never_one_below() -> None:
    assert told_by(b"a.py ...  [  3%]\nb.py ..  [ 47%]\n", b"c.py [ 47%]", b"[ 12%]", b"... [100%]") == [
        47,
        100,
    ]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_figure_may_come_in_two_pieces(cut: int) -> None:
    line = b"a.py ... [ 42%]"
    assert told_by(line[:cut], line[cut:]) == [42]


def test_other_output_tells_nothing() -> None:
    assert told_by(b"ok 1 - adds [x%]", b"[999%] [12 %] 50%") == []


def test_pytest_tells_while_it_runs(run: Runner, write: Write) -> None:
    """As pytest of today writes it, into a pipe."""
    write({"test_a.py": "def test_a(): pass\ndef test_b(): pass\n", "test_b.py": "def test_c(): pass\n"})
    told: list[int] = []
    run(heard=PercentReader(told.append).feed)
    assert told[-1] == 100
