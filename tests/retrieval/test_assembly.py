from collections.abc import Callable

import pytest
from tests.retrieval.world import World, room_request

from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.router import Window
from clean_room_agent.retrieval.assembly import Assembled, assemble
from clean_room_agent.retrieval.judging import ThresholdJudge
from clean_room_agent.retrieval.stage import Selection, StageContext

Make = Callable[..., World]
BODY = "".join(f"line {number} of text\n" for number in range(1, 201))


def pick(path: str, start: int, end: int, **fields: object) -> Selection:
    values: dict[str, object] = {
        "symbol": f"s{start}", "detail": "primary", "tier": 0, "score": 0.5, "reason": "judged", "outline": "",
    }  # fmt: skip
    return Selection(path=path, start_line=start, end_line=end, **{**values, **fields})  # type: ignore[arg-type]


def put_together(world: World, room: int, *selections: Selection, mode: str = "implement") -> Assembled:
    context = StageContext(
        request=room_request(mode=mode),
        room_tokens=room,
        candidates=(),
        selections=selections,
        detail_chosen=True,
    )
    window = Window(context=room + 100, reserved=100)
    return assemble(context, world.source(), window, ThresholdJudge(threshold=0.5))


def shown(assembled: Assembled) -> list[tuple[str, str | None]]:
    return [(item.detail, item.symbol) for item in assembled.package.items]


def test_detail_comes_before_tier_and_tier_before_score(make: Make) -> None:
    world = make({"a.txt": BODY, "b.txt": BODY})
    made = put_together(
        world, 1000,
        pick("b.txt", 1, 2, tier=2, score=0.9), pick("a.txt", 1, 2, score=0.1),
        pick("b.txt", 5, 6, detail="type_context", outline="sig\n", tier=0), pick("b.txt", 9, 9, detail="supporting", outline="sig\n", tier=3),
    )  # fmt: skip
    assert shown(made) == [("primary", "s1"), ("primary", "s1"), ("supporting", "s9"), ("type_context", "s5")]
    assert [item.path for item in made.package.items[:2]] == ["a.txt", "b.txt"]


def test_items_of_one_file_stand_in_the_order_of_their_lines(make: Make) -> None:
    world = make({"a.txt": BODY})
    made = put_together(world, 1000, pick("a.txt", 50, 51, score=0.9), pick("a.txt", 3, 4, score=0.1))
    assert shown(made) == [("primary", "s3"), ("primary", "s50")]


def test_the_whole_text_with_its_frames_fits_the_room(make: Make) -> None:
    world = make({"a.txt": BODY})
    pieces = [pick("a.txt", start, start + 9, score=start / 200, fill=True) for start in range(1, 200, 10)]
    made = put_together(world, 300, *pieces)
    assert made.package.budget.used_tokens == len(made.package.to_prompt_text().split()) <= 300
    assert {item.symbol for item in made.package.items} >= {"s191", "s181"}
    assert len(made.package.items) + len(made.package.dropped) == len(pieces)
    assert {decision.included for decision in made.decisions} == {True, False}


def test_references_take_a_quarter_of_the_room_before_the_fill(make: Make) -> None:
    world = make({"a.txt": BODY, "b.txt": BODY})
    fill = [pick("a.txt", start, start + 9, fill=True) for start in range(1, 100, 10)]
    references = [pick("b.txt", start, start + 9, detail="supporting", tier=1) for start in range(1, 100, 10)]
    made = put_together(world, 400, *fill, *references)
    spent = sum(item.tokens for item in made.package.items if item.detail == "supporting")
    assert 0 < spent <= 100
    assert sum(item.tokens for item in made.package.primary()) > 200


def test_every_target_file_shows_something(make: Make) -> None:
    world = make({"a.txt": BODY, "b.txt": BODY})
    near = [pick("a.txt", start, start + 9, score=0.9, fill=True) for start in range(1, 200, 10)]
    made = put_together(world, 300, *near, pick("b.txt", 1, 5, score=0.01, fill=True))
    assert {item.path for item in made.package.primary()} == {"a.txt", "b.txt"}


def test_fill_that_does_not_fit_is_shown_by_its_outline(make: Make) -> None:
    world = make({"a.txt": BODY})
    large = pick("a.txt", 1, 150, score=0.9, fill=True, outline="def large()\n")
    made = put_together(world, 200, large, pick("a.txt", 160, 165, fill=True))
    assert shown(made) == [("primary", "s160"), ("supporting", "s1")]
    assert "outline is shown instead" in made.package.dropped[0].reason


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
        put_together(world, 200, pick("a.txt", 1, 150, fill=True))


def test_nothing_chosen_is_an_empty_package(make: Make) -> None:
    made = put_together(make({"a.txt": BODY}), 200)
    assert made.package.items == ()
    assert made.package.budget.used_tokens == 0
