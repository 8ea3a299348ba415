import pytest

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.parse import parse_edits
from clean_room_agent.execute.edits.render import render_edit, render_edits


def test_an_edit_is_written_as_a_model_would_write_it() -> None:
    edit = PatchEdit(kind="edit", file_path="a.py", search="x = 1", replacement="x = 2")
    assert render_edit(edit) == (
        '<edit file="a.py">\n<search>\nx = 1\n</search>\n<replacement>\nx = 2\n</replacement>\n</edit>\n'
    )


def test_a_name_with_a_quote_is_put_into_the_other_quotes() -> None:
    assert render_edit(PatchEdit(kind="delete", file_path='a"b.py')) == "<delete file='a\"b.py'/>\n"


def test_a_text_that_looks_fenced_comes_back_with_its_fence() -> None:
    edit = PatchEdit(kind="symbol", file_path="a.py", symbol="f", replacement="```\nx\n```")
    read = parse_edits(render_edits([edit]))
    assert isinstance(read, tuple)
    assert read[0].replacement == edit.replacement


def test_what_would_not_read_back_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot carry"):
        render_edits([PatchEdit(kind="create", file_path="a.py", replacement="no final newline")])
