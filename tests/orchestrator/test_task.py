from clean_room_agent.orchestrator.task import Hint, Hints


def test_a_new_hint_is_shown_from_the_first_pass_that_is_not_done() -> None:
    hints = Hints((Hint(text="a"),))
    assert hints.begin("t:meta_plan", known=True) == ()
    assert hints.with_task("task") == "task"
    assert hints.begin("t:part_plan:p1", known=False) == ("a",)
    assert hints.begin("t:impl:p1:s1", known=False) == ()
    assert hints.with_task("task") == "task\n\nThe user has added since: a"


def test_a_hint_that_was_shown_is_shown_from_the_same_pass_on_in_another_run() -> None:
    hints = Hints((Hint(text="a", since="impl:p1:s1"), Hint(text="b")))
    assert hints.begin("u:meta_plan", known=True) == ()
    assert hints.by("u:impl:p1:s1") == 2
    assert hints.by("u:impl:p1:s2") == 1
    assert hints.begin("u:impl:p1:s1", known=True) == ()
    assert hints.with_task("x").endswith(": a")
