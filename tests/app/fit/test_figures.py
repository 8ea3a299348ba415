"""When a figure is clear."""

from msgspec.structs import replace

from clean_room_agent.app.fit.figures import Measured, auc, evidence, is_clear


def shares(*right: bool) -> list[Measured]:
    return [Measured(task=str(place), held=False, applied=True, right=one) for place, one in enumerate(right)]


def judged(needed: list[float], others: list[float]) -> list[Measured]:
    kinds = [("needed", score) for score in needed] + [("other", score) for score in others]
    return [
        Measured(task=str(place), held=False, applied=True, right=True, kind=kind, score=score)
        for place, (kind, score) in enumerate(kinds)
    ]


def test_a_form_that_is_never_right_is_clear_after_eight_answers() -> None:
    assert not is_clear("function", shares(*[False] * 7))
    assert is_clear("function", shares(*[False] * 8))
    assert evidence("function", shares(*[False] * 8)) < 0


def test_answers_of_which_none_can_be_used_are_clear_sooner() -> None:
    unusable = [replace(one, applied=False) for one in shares(*[False] * 4)]
    assert is_clear("lines", unusable)
    assert not is_clear("lines", unusable[:3])
    assert not is_clear("lines", [*unusable[:3], *shares(False)])


def test_right_answers_are_clear_sooner_but_not_before_an_order_can_be_told() -> None:
    assert not is_clear("function", shares(True, True))
    assert is_clear("function", shares(True, True, False, True, True))


def test_plans_that_fail_twice_are_clear() -> None:
    assert is_clear("plan", shares(False, False))
    assert not is_clear("plan", shares(True, False))
    assert is_clear("plan", shares(True, True))


def test_a_judge_that_always_says_the_same_tells_nothing() -> None:
    assert auc(judged([1.0, 1.0], [1.0, 1.0])) == 0.5
    assert auc(judged([2.0, 3.0], [1.0, 0.0])) == 1.0
    assert auc(judged([2.0], [])) is None


def test_a_judge_is_clear_after_two_questions_if_it_knows_or_says_the_same_of_all() -> None:
    assert is_clear("judgment", judged([1.0] * 4, [0.0] * 4))
    assert is_clear("judgment", judged([1.0] * 4, [1.0] * 4))
    assert not is_clear("judgment", judged([1.0] * 3, [1.0] * 3))
    assert not is_clear("judgment", judged([1.0, 0.0] * 3, [1.0, 0.0] * 3))


def drawn(usual: str, other: str) -> list[Measured]:
    """Answers at two temperatures, by whether they are right (1) or not."""
    return [
        Measured(task=str(at), held=False, applied=True, right=sign == "1", kind=kind)
        for at, signs in enumerate(zip(usual, other, strict=True))
        for kind, sign in zip(("0.7", "0.4"), signs, strict=True)
    ]


def test_temperatures_are_clear_once_no_other_can_lead() -> None:
    assert is_clear("redrawn", drawn("0", "0"))
    assert is_clear("redrawn", drawn("1", "1"))
    assert not is_clear("redrawn", drawn("0", "1"))
    assert not is_clear("redrawn", drawn("00", "11"))
    assert is_clear("redrawn", drawn("01", "11"))
