"""Files that begin with their declarations, and files that are written at once, are measured on the same coders."""

import random

import pytest
from benchmarks.recovery.scaffolds import (
    CODERS,
    LEDGER,
    WAYS,
    Outcome,
    cut_after,
    errs,
    forgets,
    invents,
    measure,
    page,
)
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.execute.implement import IMPLEMENT

CREATE = f'<create file="till/ledger.py">\n{LEDGER}</create>\n'


def call() -> ChatCall:
    return ChatCall(
        number=0,
        model="coder:3b",
        system="",
        prompt=f"{IMPLEMENT.heading}\n",
        schema=None,
        options={},
        body={},
    )


@pytest.mark.parametrize(("way", "solved"), [("never", False), ("auto", True)])
def test_what_is_cut_off_when_written_at_once_is_written_piece_by_piece(way: str, solved: bool) -> None:
    assert [coder.name for coder in CODERS][1] == "answers are cut off after 600 tokens"
    assert measure(1, way, 0).solved is solved


def test_the_coders_err_where_they_are_said_to() -> None:
    luck = random.Random(1)
    said = cut_after(100)(call(), CREATE, luck)
    assert isinstance(said, Answer)
    assert (len(said.text), said.done_reason) == (400, "length")
    assert str(errs(1.0)(call(), CREATE, luck)).count("return None and ") == 8
    assert "def " not in str(forgets(1.0)(call(), CREATE, luck))
    assert "import till.rows\n" in str(invents(1.0)(call(), CREATE, luck))
    for spoil in (errs(0.0), forgets(0.0), invents(0.0), cut_after(10_000)):
        assert spoil(call(), CREATE, luck) == CREATE


def test_the_table_has_a_row_for_each_coder_and_way() -> None:
    outcome = Outcome(solved=True, attempts=1, calls=2, prompt_tokens=300, answer_tokens=100)
    text = page({(number, way): [outcome] for number in range(len(CODERS)) for way in WAYS})
    assert text.count("| 1/1 | 1 | 2 | 300 | 100 |") == len(CODERS) * len(WAYS)
