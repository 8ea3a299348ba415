"""The prompt whether a prompt is worth an adapter."""

from clean_room_agent.llm.answers import Choice
from clean_room_agent.retrieval.stage import SingleInputs
from clean_room_agent.training.prompts.target_judgment import TARGET_JUDGMENT


def test_the_question_shows_its_option_and_is_answered_by_one_word() -> None:
    inputs = SingleInputs(question="## Task\nMend it", option="asked about: a.py", others=("implement",))
    text = TARGET_JUDGMENT.render(inputs)
    assert text.index("Mend it") < text.index("asked about: a.py")
    value = TARGET_JUDGMENT.parse("No.")
    assert isinstance(value, Choice)
    assert value.word == "no"
