from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.oracle.forms import UNSHOWN, function_for, lines_for, text_of_gap
from testing.oracle.oracle import Oracle
from testing.servers.ollama_in_memory import MemoryOllama

from clean_room_agent.artifacts.goals import GoalSource, GoalTest
from clean_room_agent.execute.forms import function, lines, masked
from clean_room_agent.execute.forms.place import Applied, Assignment, Place
from clean_room_agent.training.gold_edits import GoldFile

BEFORE = "def mean(values):\n    total = sum(values)\n    if not values:\n        return 1\n    return total / len(values)\n"
AFTER = BEFORE.replace("return 1", "return 0")
FILES = {"a.py": GoldFile(path="a.py", before=BEFORE, after=AFTER)}
PLACE = Place(path="a.py", name="mean", first_line=1, last_line=5, lines=(4, 3, 2, 5))
ASSIGNMENT = Assignment(
    task="mean([]) is wrong",
    goals=(GoalTest(name="t", source=GoalSource.STATED, call="mean([])", wanted="0", got="1"),),
)


def test_the_oracle_answers_every_form_as_a_model_would() -> None:
    oracle = Oracle(tuple(FILES.values()))
    client = model_client(
        MemoryOllama(answerer=oracle, fills="rightly").transport(models_config()), MemorySink()
    )
    assert client.can_fill(pass_id="t:p")
    gap = next(masked.requests(PLACE, BEFORE, ASSIGNMENT))
    filled = masked.apply(PLACE, BEFORE, gap.mask, client.fill(gap.fill, pass_id="t:p").text)
    whole = next(function.requests(PLACE, BEFORE, ASSIGNMENT))
    written = client.ask(whole.prompt, whole.inputs, pass_id="t:p").value
    some = next(lines.requests(PLACE, BEFORE, ASSIGNMENT))
    changed = client.ask(some.prompt, some.inputs, pass_id="t:p").value
    assert isinstance(written, str)
    assert isinstance(changed, tuple)
    done = (filled, function.apply(PLACE, BEFORE, written), lines.apply(PLACE, BEFORE, changed))
    assert [one.text for one in done if isinstance(one, Applied)] == [AFTER] * 3


def test_the_oracle_fills_every_gap_of_a_place_as_the_commit_has_it() -> None:
    for request in masked.requests(PLACE, AFTER, ASSIGNMENT):
        if request.mask.kind in {"line", "part"}:
            text = AFTER[request.mask.start : request.mask.end]
            filled = text_of_gap(FILES, (request.fill.gap.before, request.fill.gap.after))
            assert filled.strip() == text.strip()


def test_the_oracle_says_what_it_does_not_see() -> None:
    assert function_for(FILES, "## Code to change\nother in a.py\n") == UNSHOWN
    assert function_for(FILES, "") == UNSHOWN
    assert lines_for(FILES, "## Code to change\nmean in b.py\n") == UNSHOWN
    assert text_of_gap(FILES, ("x = 1\n", "\ny = 2\n")) == ""
