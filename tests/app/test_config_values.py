"""Values changed in the text of a configuration."""

import tomllib

from clean_room_agent.app.config_values import edited


def test_a_table_that_is_not_there_is_added_and_inline_ones_are_changed() -> None:
    assert tomllib.loads(edited("", ["models", "overrides"], "a", "b")) == {
        "models": {"overrides": {"a": "b"}}
    }
    inline = 'models = { coding = "a" }  # mine\n'
    assert edited(inline, ["models"], "coding", "b") == 'models = { coding = "b" }  # mine\n'


def test_a_new_table_stands_apart_from_what_follows() -> None:
    text = '[models]\ncoding = "a"\n\n[edit]\n'
    said = '[models]\ncoding = "a"\n\n[models.temperature]\ncoding = 0.5\n\n[edit]\n'
    assert edited(text, ["models", "temperature"], "coding", 0.5) == said
    assert edited("[edit]\n", ["solve"], "samples", 3) == "[edit]\n\n[solve]\nsamples = 3\n"
