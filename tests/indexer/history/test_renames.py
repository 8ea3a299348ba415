from clean_room_agent.indexer.history.renames import NO_BOUND, Move, PastPlaces, Step, find_moves


def step(*, old: bool = True, number: int | None = None, **renames: str) -> Step:
    return Step(in_old=old, id=number, renames=list(renames.items()))


def test_renames_are_followed_backwards_to_the_files_of_today() -> None:
    places = PastPlaces({"c": 1, "a": 2})
    assert places["b"] == -1
    places.follow([("b", "c")])
    places.follow([("a", "b")])
    assert [places[path] for path in ("a", "b", "c", "d")] == [1, 1, 1, -2]
    assert places.lost == ["b", "d"]


def test_names_exchanged_in_one_commit_are_exchanged_before_it() -> None:
    places = PastPlaces({"a": 1, "b": 2})
    places.follow([("a", "b"), ("b", "a")])
    assert (places["a"], places["b"]) == (2, 1)


def test_a_new_rename_moves_the_whole_past() -> None:
    steps = [step(old=False, a="b"), step(number=20), step(number=10, x="a")]
    assert find_moves(steps) == [Move("a", "b", 10, NO_BOUND), Move("a", "b", 0, 9)]


def test_a_rename_between_known_commits_moves_what_is_older() -> None:
    steps = [step(number=30), step(old=False, a="b"), step(number=20)]
    assert find_moves(steps) == [Move("a", "b", 0, 29)]


def test_a_rename_before_a_known_one_leaves_two_pasts_that_cannot_be_told_apart() -> None:
    steps = [step(number=30, x="a"), step(old=False, a="q"), step(number=20)]
    assert find_moves(steps) == [Move("a", None, 0, 29)]
