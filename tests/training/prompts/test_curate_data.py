"""The prompt whether a doubtful answer is a good example."""

from clean_room_agent.llm.answers import Choice
from clean_room_agent.retrieval.stage import SingleInputs
from clean_room_agent.training.prompts.curate_data import CURATE_DATA


def test_the_question_shows_its_option_and_is_answered_by_one_word() -> None:
    inputs = SingleInputs(question="## Task\nMend it", option="asked about: a.py", others=())
    text = CURATE_DATA.render(inputs)
    assert text.index("Mend it") < text.index("asked about: a.py")
    value = CURATE_DATA.parse("No.")
    assert isinstance(value, Choice)
    assert value.word == "no"
