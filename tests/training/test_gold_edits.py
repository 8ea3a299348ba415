"""The oracle's edits, whatever their form, make of a file exactly what the commit made of it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testing.packages import package, shown_file

from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.training.gold_edits import GoldFile, ShownPiece, edits_for

CLASS = '''\
import os


class Till:
    """Holds cents."""

    def open_it(self):
        return os.name

    def close_it(self):
        return None


def main():
    return Till()
'''
METHOD = "    def count_it(self):\n        return 3\n"


def gold(after: str, before: str = CLASS, path: str = "a.py") -> GoldFile:
    return GoldFile(path=path, before=before, after=after)


def kinds(after: str, *shown: ShownPiece, before: str = CLASS) -> list[tuple[str, str, str]]:
    return [(edit.kind, edit.place, edit.symbol) for edit in edits_for(gold(after, before), shown)]


def whole(text: str = CLASS) -> ShownPiece:
    return ShownPiece(path="a.py", editable=True, text=text)


def test_a_whole_new_definition_is_inserted_beside_a_shown_one() -> None:
    method = CLASS.replace("    def close_it", f"{METHOD}\n    def close_it")
    assert kinds(method, whole()) == [("insert", "after", "Till.open_it")]
    last = CLASS.replace("return None\n", f"return None\n\n{METHOD}")
    assert kinds(last, whole()) == [("insert", "after", "Till.close_it")]
    first = CLASS.replace("    def open_it", f"{METHOD}\n    def open_it")
    assert kinds(first, whole()) == [("insert", "before", "Till.open_it")]


def test_a_neighbour_shown_as_a_signature_is_enough() -> None:
    after = CLASS.replace("\n\ndef main", "\n\ndef other_one():\n    return 3\n\n\ndef main")
    reference = ShownPiece(path="a.py", editable=False, text="def main()")
    assert kinds(after, reference) == [("insert", "before", "main")]
    assert kinds(after, ShownPiece(path="b.py", editable=False, text="def main()")) == []


def test_a_neighbour_that_is_only_called_in_editable_code_is_not_shown() -> None:
    after = CLASS.replace("\n\ndef main", "\n\ndef other_one():\n    return 3\n\n\ndef main")
    assert kinds(after, ShownPiece(path="a.py", editable=True, text="x = main()")) == []


def test_what_is_not_definitions_alone_is_searched_for() -> None:
    both = CLASS.replace("return None\n", f"return 0\n\n{METHOD}")
    assert [kind for kind, _, _ in kinds(both, whole())] == ["edit"]
    odd_blank_lines = CLASS.replace("return None\n", f"return None\n\n\n\n\n{METHOD}")
    assert [kind for kind, _, _ in kinds(odd_blank_lines, whole())] == ["edit"]


NAMES = ("alpha_one", "beta_two", "gamma_three", "delta_four", "epsilon_five")
BODY = st.sampled_from(("return 1", "value = [1, 2, 3]\n\nreturn value", "# why\nreturn None", "pass"))
DECORATOR = st.sampled_from(("", "@staticmethod\n", "# It does.\n", "@cached\n@other(1)\n"))


def function(name: str, decorator: str, body: str) -> str:
    lines = "\n".join(f"    {line}".rstrip() for line in body.split("\n"))
    return f"{decorator}def {name}(x):\n{lines}\n"


def indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


FUNCTIONS = st.lists(st.sampled_from(NAMES), unique=True, max_size=4).flatmap(
    lambda names: st.tuples(*(st.builds(function, st.just(name), DECORATOR, BODY) for name in names))
)
CLASSES = st.builds(
    lambda head, methods: head + "\n" + indented("\n".join(methods)).rstrip() + "\n",
    st.sampled_from(('class Thing:\n    """A thing."""\n', "class Thing(Base):\n    size_of_it = 1\n")),
    FUNCTIONS,
)
FILES = st.builds(
    lambda head, functions, one, gap: gap.join((head, *functions, *([one] if one else ()))),
    st.sampled_from(("from os import *\n", '"""A module."""\n\nfrom os import *\n\nLIMIT_OF_IT = 3\n')),
    FUNCTIONS,
    st.one_of(st.just(""), CLASSES),
    st.sampled_from(("\n\n", "\n")),
)


TWINS = "\n\n".join(
    (
        "LIMIT = 3\n",
        *(
            f"@staticmethod\ndef {name}(x):\n    value = [1, 2, 3]\n\n    return value\n"
            for name in ("beta_two", "alpha_one")
        ),
        "def gamma_three(x):\n    return 1\n",
    )
)


@example(
    before=TWINS,
    after=TWINS.replace(
        "alpha_one(x):\n    value = [1, 2, 3]\n\n    return value", "beta_two(x):\n    return 1"
    )
    .replace("beta_two", "alpha_one", 1)
    .replace("three(x):\n    return 1", "three(x):\n    value = [1, 2, 3]\n\n    return value"),
)
@given(before=FILES, after=FILES)
def test_edits_of_all_forms_give_exactly_what_the_commit_made(before: str, after: str) -> None:
    edits = edits_for(gold(after, before), (whole(before),))
    if before == after:
        assert edits == []
        return
    read = parse_edits(render_edits(edits))
    assert isinstance(read, tuple)
    rules = EditRules(targets=(TargetFile(path="a.py"),))
    applied = apply_edits(read, {"a.py": before}, package(shown_file("a.py", before)), rules)
    assert applied.result.success, applied.result
    assert applied.texts == {"a.py": after}


@pytest.mark.parametrize(
    "before", ["{dropped}\n\n{kept}", "{kept}\n\n{dropped}"], ids=["after it", "before it"]
)
def test_a_function_is_deleted_though_the_empty_lines_beside_it_are_not_shown(before: str) -> None:
    kept, dropped = "def keep_this():\n    return 1\n", "def drop_this_one():\n    return 2\n"
    file = GoldFile(path="a.py", before=before.format(kept=kept, dropped=dropped), after=kept)
    shown_pieces = [ShownPiece(path="a.py", editable=True, text=dropped.rstrip("\n"))]
    (edit,) = edits_for(file, shown_pieces)
    assert (edit.search, edit.replacement) == (dropped.rstrip("\n"), "")


def test_a_line_is_inserted_after_a_shown_one_though_an_empty_line_stands_between() -> None:
    before = "import os\n\nLIMIT_OF_ALL = 1\n\n\ndef main():\n    return LIMIT_OF_ALL\n"
    new = "# Why it is so.\nLIMIT_OF_ONE = 2\n"
    for shown_text, after in (
        ("import os\n\nLIMIT_OF_ALL = 1", before.replace("= 1\n\n", f"= 1\n\n{new}\n")),
        ("def main():\n    return LIMIT_OF_ALL", before.replace("\ndef", f"\n{new}\n\ndef")),
    ):
        file = gold(after, before)
        (edit,) = edits_for(file, [ShownPiece(path="a.py", editable=True, text=shown_text)])
        assert before.replace(edit.search, edit.replacement) == after


def test_where_nothing_else_fits_a_line_is_inserted_above_the_empty_lines_that_it_follows() -> None:
    before = "import os\n\nLIMIT_OF_ALL = 1\n\n\ndef main():\n    return LIMIT_OF_ALL\n"
    after = before.replace("= 1\n\n", "= 1\n\n# Why it is so.\nLIMIT_OF_ONE = 2\n")
    (edit,) = edits_for(
        gold(after, before), [ShownPiece(path="a.py", editable=True, text="LIMIT_OF_ALL = 1")]
    )
    written = before.replace(edit.search, edit.replacement)
    assert written != after
    assert [line for line in written.split("\n") if line] == [line for line in after.split("\n") if line]
