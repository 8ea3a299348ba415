import jinja2
import pytest
from inline_snapshot import snapshot
from testing.client.model_client import COLOUR, RELEVANT, Colour, Note

from clean_room_agent.llm.answers import TextAnswer
from clean_room_agent.llm.prompt import Prompt


def test_a_rendered_prompt_begins_with_its_title_and_ends_with_the_question() -> None:
    assert RELEVANT.render(Note(text="<a & b>\n{{ c }}")) == snapshot("""\
# Instructions: Is it relevant?

Answer with one word.

The thing: <a & b>
{{ c }}\
""")


def test_a_template_can_show_the_schema() -> None:
    assert '"required":["name","shades"]' in COLOUR.render(Note(text="grass"))


def test_the_example_parses() -> None:
    assert COLOUR.parse(COLOUR.example) == Colour(name="red", shades=(1, 2))


def test_an_undefined_variable_raises() -> None:
    prompt: Prompt[Note, str] = Prompt(
        name="odd",
        role="coding",
        title="Odd",
        system="",
        template="{{ missing }}",
        answer=TextAnswer(str.upper),
        max_answer_tokens=5,
        example="x",
    )
    with pytest.raises(jinja2.UndefinedError):
        prompt.render(Note(text=""))
