from collections.abc import Callable

import pytest
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.context import ContextPackage, Section
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.router import Window
from clean_room_agent.retrieval.assembly import assemble
from clean_room_agent.retrieval.judges import ThresholdJudge
from clean_room_agent.retrieval.stage import Selection, StageContext

Make = Callable[..., World]
BODY = "".join(f"line {number} of text\n" for number in range(1, 201))


def pick(path: str, start: int, end: int, **fields: object) -> Selection:
    values: dict[str, object] = {
        "symbol": f"s{start}", "detail": "primary", "tier": 0, "score": 0.5, "reason": "judged", "outline": "",
    }  # fmt: skip
    return Selection(path=path, start_line=start, end_line=end, **{**values, **fields})  # type: ignore[arg-type]


def put_together(
    world: World, available: int, *selections: Selection, mode: str = "implement"
) -> ContextPackage:
    context = StageContext(
        request=context_request(mode=mode),
        available_tokens=available,
        candidates=(),
        selections=selections,
        detail_chosen=True,
    )
    window = Window(context=available + 100, reserved=100)
    return assemble(context, world.source(), window, ThresholdJudge(threshold=0.5))[0]


def shown(package: ContextPackage) -> list[tuple[str, str | None]]:
    return [(item.detail, item.symbol) for item in package.items]


def test_items_stand_by_file_the_one_of_the_best_item_first(make: Make) -> None:
    world = make({"a.txt": BODY, "b.txt": BODY})
    made = put_together(
        world, 1000,
        pick("b.txt", 1, 2, tier=2, score=0.9), pick("a.txt", 1, 2, score=0.1),
        pick("b.txt", 5, 6, detail="type_context", outline="sig\n", tier=0), pick("b.txt", 9, 9, detail="supporting", outline="sig\n", tier=3),
    )  # fmt: skip
    assert shown(made) == [("primary", "s1"), ("primary", "s1"), ("type_context", "s5"), ("supporting", "s9")]
    assert [item.path for item in made.items] == ["a.txt", "b.txt", "b.txt", "b.txt"]


def test_where_the_window_is_short_the_sections_go_in_a_fixed_order(make: Make) -> None:
    world = make({"a.txt": BODY})
    sections: tuple[Section, ...] = ("code", "tests", "uses", "callers", "green")
    pieces = [pick("a.txt", 1, 9)] + [
        pick("a.txt", line, line, detail="supporting", section=section, outline="word " * 2 * line + "\n")
        for line, section in zip((10, 20, 40, 60), sections[1:], strict=True)
    ]
    seen = set()
    for available in range(60, 400, 10):
        made = put_together(world, available, *reversed(pieces))
        there = tuple(item.section for item in made.items)
        assert there == sections[: len(there)]
        assert made.budget.used_tokens <= available
        seen.add(len(there))
    assert seen == {1, 2, 3, 4, 5}


def test_detail_comes_before_tier_and_tier_before_score(make: Make) -> None:
    world = make({"a.txt": BODY})
    line = {"outline": "word " * 20 + "\n"}
    pieces = [
        pick("a.txt", 40, 40, detail="type_context", tier=0, score=0.9, **line),
        pick("a.txt", 30, 30, detail="supporting", tier=2, score=0.9, **line),
        pick("a.txt", 20, 20, detail="supporting", tier=1, score=0.1, **line),
        pick("a.txt", 10, 10, detail="supporting", tier=1, score=0.2, **line),
    ]
    seen = set()
    for available in range(20, 200, 10):
        there = {item.symbol for item in put_together(world, available, *pieces).items}
        assert there == set(["s10", "s20", "s30", "s40"][: len(there)])
        seen.add(len(there))
    assert seen == {0, 1, 2, 3, 4}


def test_code_with_only_empty_lines_between_stands_in_one_frame(make: Make) -> None:
    lines = ["one", "two", "", "", "three", "   ", "four", ""]
    world = make({"a.txt": "\n".join(lines)})
    made = put_together(world, 1000, pick("a.txt", 1, 2), pick("a.txt", 5, 5), pick("a.txt", 7, 7))
    assert [item.adjoins for item in made.items] == [False, True, False]
    assert made.to_prompt_text() == (
        "===== code: a.txt :: s1, s5 (lines 1-5)\none\ntwo\n\n\nthree\n===== end\n\n"
        "===== code: a.txt :: s7 (lines 7-7)\nfour\n===== end\n"
    )


def test_the_whole_text_with_its_frames_fits_the_budget(make: Make) -> None:
    world = make({"a.txt": BODY})
    pieces = [pick("a.txt", start, start + 9, score=start / 200) for start in range(1, 200, 10)]
    made = put_together(world, 300, *pieces)
    assert made.budget.used_tokens == len(made.to_prompt_text().split()) <= 300
    assert {item.symbol for item in made.items} >= {"s191", "s181"}
    assert len(made.items) + len(made.dropped) == len(pieces)


def test_what_a_primary_item_holds_is_not_shown_twice(make: Make) -> None:
    world = make({"a.txt": BODY})
    whole = pick("a.txt", 1, 200, symbol=None)
    made = put_together(world, 2000, whole, pick("a.txt", 5, 9), pick("a.txt", 7, 8, detail="supporting"))
    assert shown(made) == [("primary", None)]


def test_a_large_symbol_of_another_file_gives_way_where_something_else_is_primary(make: Make) -> None:
    world = make({"a.txt": BODY, "b.txt": BODY})
    made = put_together(
        world, 200, pick("a.txt", 1, 5), pick("b.txt", 1, 150, tier=2, outline="def large()\n")
    )
    assert shown(made) == [("primary", "s1"), ("supporting", "s1")]


def test_a_planner_gets_the_outline_of_what_is_too_large(make: Make) -> None:
    world = make({"a.txt": BODY})
    made = put_together(world, 200, pick("a.txt", 1, 150, outline="def large()\n"), mode="plan")
    assert shown(made) == [("supporting", "s1")]


def test_a_target_of_which_nothing_fits_is_an_error(make: Make) -> None:
    world = make({"a.txt": BODY})
    with pytest.raises(WindowExceeded, match=r"a\.txt :: s1 \(lines 1-150\)"):
        put_together(world, 200, pick("a.txt", 1, 150))
