from dataclasses import replace

from tests.fakes.rooms import shown_file

from clean_room_agent.execute.fit import Load, _without_next


def test_what_only_fills_the_room_goes_first_and_the_lowest_score_before_others() -> None:
    asked = shown_file("a.py", "a = 1\n")
    weak = replace(shown_file("b.py", "b = 1\n"), fill=True, score=0.1)
    strong = replace(shown_file("c.py", "c = 1\n"), fill=True, score=0.9)
    kept = Load(items=(asked, strong, weak))
    gone = []
    while (without := _without_next(kept)) is not None:
        kept, name, _ = without
        gone.append(name)
    assert gone == ["primary b.py", "primary c.py"]
    assert kept.items == (asked,)
