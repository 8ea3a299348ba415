from clean_room_agent.artifacts.evidence import Evidence, FailingTest


def test_failing_tests_are_named_in_the_order_in_which_they_are_shown() -> None:
    evidence = Evidence(tests=(FailingTest(name="b", message="boom"), FailingTest(name="a")))
    assert evidence.failing_tests == ("b", "a")
    assert Evidence().failing_tests == ()
