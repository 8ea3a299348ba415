"""Which files of a plan are shown whole."""

from clean_room_agent.retrieval.targets import choose_whole


def test_files_are_whole_from_the_smallest_on_while_each_fits_an_even_share() -> None:
    assert choose_whole({"a": 100, "b": 200, "c": 5000}, {}, 1000) == {"a", "b"}
    assert choose_whole({"a": 900, "b": 901}, {}, 1000) == frozenset()
    assert choose_whole({}, {}, 1000) == frozenset()


def test_what_the_plan_names_elsewhere_keeps_its_room() -> None:
    assert choose_whole({"stub": 400, "large": 5000}, {"large": 500}, 1000) == frozenset()
    assert choose_whole({"stub": 200, "large": 5000}, {"large": 500}, 1000) == {"stub"}


def test_what_the_plan_names_in_a_file_is_paid_for_once() -> None:
    assert choose_whole({"a": 700, "b": 9000}, {"a": 650, "b": 150}, 1000) == {"a"}
