"""How two models' answers are printed side by side."""

from clean_room_agent.app.what_if import ComparedAnswers, Side, WhatIf
from clean_room_agent.cli.views.replay import comparison_object, render_comparison


def side(word: str) -> Side:
    return Side(
        answer=word or None,
        unreadable="" if word else "no text",
        prompt_tokens=10,
        completion_tokens=1,
        latency_ms=5,
    )


def compared(item: str, then: str, now: str) -> ComparedAnswers:
    return ComparedAnswers(
        pass_id="meta_plan",
        prompt="scope",
        item=item,
        call_id=7,
        decides=(item,),
        then=side(then),
        now=side(now),
    )


FOUND = WhatIf(
    replay_of="run",
    stage="scope",
    model="other",
    recorded=("first",),
    task_id="task",
    compared=(
        compared("a.py", "yes", "yes"),
        compared("b.py", "yes", "no"),
        compared("c.py", "yes", ""),
        compared("d.py", "", ""),
    ),
)


def test_what_differs_is_shown_with_what_it_decided() -> None:
    lines = render_comparison(FOUND).splitlines()
    assert lines[0] == "scope: asked again of other; recorded with first"
    assert "agree   meta_plan scope a.py: yes" in lines
    at = lines.index("DIFFER  meta_plan scope b.py")
    assert lines[at + 1 : at + 4] == [
        "          then yes",
        "          now  no",
        "          it decided about b.py",
    ]
    assert "2 of 4 agree" in lines
    assert lines[-1] == "now: 40 + 4 tokens, 20 ms, 2 unreadable"


def test_the_object_has_both_sides_of_each_question() -> None:
    told = comparison_object(FOUND)
    assert (told["replay_of"], told["agree"], told["differ"]) == ("run", 2, 2)
    assert (told["questions"][2]["now"]["answer"], told["questions"][2]["now"]["unreadable"]) == (
        None,
        "no text",
    )
