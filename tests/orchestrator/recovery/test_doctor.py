import pytest

from clean_room_agent.orchestrator.config import RecoveryConfig
from clean_room_agent.orchestrator.failures import Category
from clean_room_agent.orchestrator.recovery.doctor import known_cause, whom_to_ask
from clean_room_agent.orchestrator.recovery.situation import RULES, WHOLE_SYMBOLS, Advice, DoctorSeen

CONFIG = RecoveryConfig()
ALWAYS = RecoveryConfig(doctor="always", high_risk=())
TOLD = Advice(decision="retry_with_fix", by="model")
STRONG = Advice(decision="retry_with_fix", by="model big", strong=True)
INFRASTRUCTURE = Advice(decision="retry_with_fix", by=RULES, infrastructure=True)


@pytest.mark.parametrize(
    ("category", "message", "again", "hint"),
    [
        (
            "name",
            "NameError: name 'rest' is not defined",
            False,
            "rest is not defined where your edit uses it: define it or import it there.",
        ),
        (
            "import",
            "ModuleNotFoundError: No module named 'numpy'",
            False,
            "There is no module numpy here: do without it.",
        ),
        ("patch", "edit 1 (till/money.py): NO_MATCH", True, WHOLE_SYMBOLS),
        ("patch", "edit 1 (till/money.py): NO_MATCH", False, None),
        ("logic", "AssertionError: 5 != 6", True, None),
        ("name", "AttributeError: no", False, None),
    ],
)
def test_rules_turn_a_known_cause_into_a_hint(
    category: Category, message: str, again: bool, hint: str | None
) -> None:
    advice = known_cause(category, message, DoctorSeen(), CONFIG, again=again)
    assert (advice.hint if advice else None) == hint
    assert advice is None or (advice.decision, advice.by) == ("retry_with_fix", RULES)


def test_a_test_command_that_gives_no_result_is_tried_again_and_then_a_persons_business() -> None:
    first = known_cause("infrastructure", "", DoctorSeen(), CONFIG, again=False)
    assert first == INFRASTRUCTURE
    later = known_cause("infrastructure", "", DoctorSeen(), CONFIG, again=True)
    assert later is not None
    assert (later.decision, later.hint[:16]) == ("fatal_error", "the test command")
    often = DoctorSeen(run=(INFRASTRUCTURE,) * 3)
    spent = known_cause("infrastructure", "", often, CONFIG, again=False)
    assert spent is not None
    assert spent.decision == "fatal_error"


def test_by_default_only_a_stronger_model_is_asked() -> None:
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(), CONFIG) is None
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(strong="big"), CONFIG) == "big"
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(strong="big"), RecoveryConfig(doctor="never")) is None


@pytest.mark.parametrize(
    ("category", "attempts", "share", "told", "config", "asked"),
    [
        ("logic", 2, 0.0, (), ALWAYS, ""),
        ("logic", 2, 0.0, (), RecoveryConfig(doctor="always"), "big"),
        ("logic", 4, 0.0, (), ALWAYS, "big"),
        ("logic", 2, 0.8, (), ALWAYS, "big"),
        ("logic", 3, 0.0, (Advice(decision="replan", by="model", confidence=0.6),), ALWAYS, "big"),
        ("logic", 3, 0.0, (TOLD,), ALWAYS, ""),
        ("logic", 4, 0.0, (STRONG,), ALWAYS, ""),
        ("logic", 4, 0.0, (STRONG,), CONFIG, None),
        ("logic", 4, 0.0, (TOLD, STRONG), ALWAYS, None),
        ("logic", 4, 0.0, (Advice(decision="replan", by=RULES),) * 2, ALWAYS, "big"),
    ],
)
def test_the_cheap_model_is_asked_first_and_the_strong_one_once_a_step(
    category: Category,
    attempts: int,
    share: float,
    told: tuple[Advice, ...],
    config: RecoveryConfig,
    asked: str | None,
) -> None:
    doctor = DoctorSeen(step=told, run=told, strong="big")
    assert whom_to_ask(category, attempts, share, doctor, config) == asked


def test_a_runs_limits_hold_over_its_steps() -> None:
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(run=(TOLD,) * 10, strong="big"), ALWAYS) is None
    assert whom_to_ask("logic", 4, 0.0, DoctorSeen(run=(STRONG,) * 5, strong="big"), ALWAYS) == ""
