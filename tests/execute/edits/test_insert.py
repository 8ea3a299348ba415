"""New code beside a definition or in a class: the place, the blank lines and the indentation are the program's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import InsertPlace, PatchEdit
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import Applied, apply_edits
from clean_room_agent.execute.edits.feedback import describe
from clean_room_agent.execute.edits.rules import EditRules

PYTHON = """\
import os

LIMIT = 3


# What holds things.
@final
class Box:
    \"\"\"A box.\"\"\"

    size = 1

    # It opens.
    @cached
    def open(self):
        return 1

    def close(self):
        return 2
        # the end


def main():
    return Box()
"""
SCRIPT = """\
import { a } from "./a";

/** Adds. */
export function add(x) {
  return x;
}

@Injectable()
export class Cart {
  items = [];

  @Input()
  @Bound()
  total() {
    return 1;
  }

  // last
  clear() {}
}

export const half = (x) => {
  return x / 2;
};

export default class Empty extends Cart {}
"""
OVERLOADS = """\
interface Shape {
  name: string;
}

export function area(a: number): number;
export function area(a: string): number;
export function area(a: any): number {
  return 1;
}
"""
METHOD = "def lock(self):\n    return 3"
FUNCTION = "def new():\n    return 3"


def insert(place: InsertPlace, symbol: str, text: str, path: str = "a.py") -> PatchEdit:
    return PatchEdit(kind="insert", file_path=path, symbol=symbol, place=place, replacement=text)


def apply(
    *edits: PatchEdit, text: str = PYTHON, shown: ContextPackage | None = None, target: bool = True
) -> Applied:
    path = edits[0].file_path
    rules = EditRules(targets=(TargetFile(path=path),) if target else ())
    return apply_edits(edits, {path: text}, shown or package(shown_file(path, text)), rules)


def result(*edits: PatchEdit, text: str = PYTHON) -> str:
    applied = apply(*edits, text=text)
    assert applied.result.success, applied.result
    changed = applied.texts[edits[0].file_path]
    assert changed is not None
    return changed


def added(before: str, after: str) -> str:
    """What stands in `after` more than in `before`; all else is the same."""
    old, new = before.split("\n"), after.split("\n")
    head = next(index for index in range(len(new)) if index >= len(old) or old[index] != new[index])
    tail = len(old) - head
    assert new[len(new) - tail :] == old[head:]
    return "\n".join(new[head : len(new) - tail])


@pytest.mark.parametrize(
    ("place", "symbol", "text", "expected"),
    [
        ("after", "main", FUNCTION, "    return Box()\n\n\ndef new():\n    return 3\n"),
        ("after", "Box", FUNCTION, "        # the end\n\n\ndef new():\n    return 3\n\n\ndef main"),
        ("before", "main", FUNCTION, "        # the end\n\n\ndef new():\n    return 3\n\n\ndef main"),
        (
            "before",
            "Box",
            FUNCTION,
            "LIMIT = 3\n\n\ndef new():\n    return 3\n\n\n# What holds things.\n@final",
        ),
        (
            "after",
            "Box.open",
            METHOD,
            "        return 1\n\n    def lock(self):\n        return 3\n\n    def close",
        ),
        (
            "before",
            "open",
            METHOD,
            "    size = 1\n\n    def lock(self):\n        return 3\n\n    # It opens.\n    @cached",
        ),
        (
            "after",
            "Box.close",
            METHOD,
            "        # the end\n\n    def lock(self):\n        return 3\n\n\ndef main",
        ),
        ("in", "Box", METHOD, "        # the end\n\n    def lock(self):\n        return 3\n\n\ndef main"),
    ],
)
def test_python_code_goes_where_it_is_told_to(
    place: InsertPlace, symbol: str, text: str, expected: str
) -> None:
    after = result(insert(place, symbol, text))
    assert expected in after
    added(PYTHON, after)


@pytest.mark.parametrize(
    ("place", "symbol", "text", "expected"),
    [
        ("before", "add", "const b = 1;", '"./a";\n\nconst b = 1;\n\n/** Adds. */\nexport function add'),
        ("after", "add", "function b() {}", "  return x;\n}\n\nfunction b() {}\n\n@Injectable()"),
        ("before", "Cart", "function b() {}", "}\n\nfunction b() {}\n\n@Injectable()\nexport class Cart"),
        ("before", "Cart.total", "b() {}", "  items = [];\n\n  b() {}\n\n  @Input()\n  @Bound()\n  total"),
        ("after", "Cart.total", "  b() {}", "    return 1;\n  }\n\n  b() {}\n\n  // last\n  clear"),
        ("before", "clear", "b() {\n  add();\n}", "  }\n\n  b() {\n    add();\n  }\n\n  // last\n  clear"),
        ("in", "Cart", "b() {}", "  clear() {}\n  b() {}\n}\n\nexport const half"),
        ("after", "half", "const b = 1;", "};\n\nconst b = 1;\n\nexport default"),
        ("in", "Empty", "b() {}", "class Empty extends Cart {\n  b() {}\n}\n"),
    ],
)
def test_script_code_goes_where_it_is_told_to(
    place: InsertPlace, symbol: str, text: str, expected: str
) -> None:
    for path in ("a.ts", "a.tsx"):
        assert expected in result(insert(place, symbol, text, path), text=SCRIPT)


def test_code_goes_above_the_overloads_of_its_neighbour() -> None:
    after = result(insert("before", "area", "const one = 1;", "a.ts"), text=OVERLOADS)
    assert "}\n\nconst one = 1;\n\nexport function area(a: number): number;\n" in after


def test_a_property_goes_under_the_others_of_an_interface() -> None:
    after = result(insert("in", "Shape", "sides: number;", "a.ts"), text=OVERLOADS)
    assert after.startswith("interface Shape {\n  name: string;\n  sides: number;\n}\n")


@pytest.mark.parametrize(
    "text", [METHOD, "    def lock(self):\n        return 3", "def lock(self):\n        return 3", f"\n\n{METHOD}\n\n"]
)  # fmt: skip
def test_inserted_code_takes_the_indentation_of_its_place(text: str) -> None:
    assert result(insert("after", "Box.open", text)) == result(insert("after", "Box.open", METHOD))


def test_blank_lines_follow_the_neighbours() -> None:
    tight = "def a():\n    return 1\n\ndef b():\n    return 2\n\ndef c():\n    return 3\n"
    after = result(insert("after", "a", FUNCTION), text=tight)
    assert after.startswith("def a():\n    return 1\n\ndef new():\n    return 3\n\ndef b():\n")
    lines = "class A:\n    x = 1\n\n    def f(self): return 1\n    def g(self): return 2\n"
    assert result(insert("after", "f", "def h(self): return 3"), text=lines).endswith(
        "    def f(self): return 1\n    def h(self): return 3\n    def g(self): return 2\n"
    )
    assert "return 1\n\n    def lock(self):\n        return 3\n\n    def g" in result(
        insert("after", "f", METHOD), text=lines
    )


@pytest.mark.parametrize(
    ("before", "symbol", "text", "expected"),
    [
        ("let a = 1;\n\nrun(a);\n", "a", "let b = 2;", "let a = 1;\nlet b = 2;\n\nrun(a);\n"),
        (
            "let a = 1;\n\nrun(a);\n",
            "a",
            "function f() {\n}",
            "let a = 1;\n\nfunction f() {\n}\n\nrun(a);\n",
        ),
        (
            "let a = 1,\n  c = 2;\nrun(a);\n",
            "a",
            "let b = 2;",
            "let a = 1,\n  c = 2;\n\nlet b = 2;\n\nrun(a);\n",
        ),
        (
            "class A {\n  x = 1;\n\n  f() {\n  }\n}\n",
            "x",
            "y = 2;",
            "class A {\n  x = 1;\n  y = 2;\n\n  f() {\n  }\n}\n",
        ),
    ],
)
def test_a_line_goes_under_a_line_and_more_stands_apart(
    before: str, symbol: str, text: str, expected: str
) -> None:
    assert result(insert("after", symbol, text, "a.js"), text=before) == expected


def test_too_few_blank_lines_around_are_made_up() -> None:
    text = "import os\ndef a():\n    return 1\nx = 1\n"
    assert result(insert("after", "a", FUNCTION), text=text) == (
        "import os\ndef a():\n    return 1\n\n\ndef new():\n    return 3\n\n\nx = 1\n"
    )
    assert result(insert("before", "a", FUNCTION), text=text).startswith(
        "import os\n\n\ndef new():\n    return 3\n\n\ndef a():\n"
    )


def test_a_class_of_a_docstring_alone_gets_its_first_method() -> None:
    text = 'class A:\n    """An a."""\n'
    assert result(insert("in", "A", METHOD), text=text) == f"{text}\n    def lock(self):\n        return 3\n"


def test_several_definitions_go_in_at_once() -> None:
    after = result(insert("in", "Box", f"{METHOD}\n\n{METHOD.replace('lock', 'free')}"))
    assert (
        "    def lock(self):\n        return 3\n\n    def free(self):\n        return 3\n\n\ndef main"
        in after
    )


def test_of_two_inserts_after_one_symbol_the_second_goes_below_the_first() -> None:
    after = result(insert("after", "Box", FUNCTION), insert("after", "Box", FUNCTION.replace("new", "newer")))
    assert after.index("def new()") < after.index("def newer()") < after.index("def main()")
    assert "return 3\n\n\ndef newer():\n    return 3\n\n\ndef main()" in after


def test_a_symbol_and_its_new_neighbours_change_in_one_answer() -> None:
    shown = package(shown_symbol("a.py", PYTHON, "Box.open", 14, 16))
    edits = (
        insert("after", "Box.open", METHOD),
        insert("before", "Box.open", METHOD.replace("lock", "free")),
        PatchEdit(
            kind="symbol",
            file_path="a.py",
            symbol="Box.open",
            replacement="@cached\ndef open(self):\n    return 9",
        ),
    )
    applied = apply(*edits, shown=shown)
    assert applied.result.success, applied.result
    assert (
        "    def free(self):\n        return 3\n\n    # It opens.\n    @cached\n    def open(self):\n        return 9\n\n"
        "    def lock(self):\n        return 3\n\n    def close"
    ) in str(applied.texts["a.py"])


@pytest.mark.parametrize(
    ("edit", "code", "detail"),
    [
        (insert("after", "Box.shut", METHOD), "NO_MATCH", "Box.shut is not defined in a.py; like it: Box"),
        (insert("after", "Crate.open", METHOD), "NO_MATCH", "like it: Box.open"),
        (insert("in", "main", METHOD), "NO_MATCH", "main is no class with a body"),
        (insert("in", "Box", "\n"), "NO_MATCH", "there is no text to insert"),
        (insert("after", "main", "def new():\n    # ... rest of the code ..."), "ELISION", ""),
        (insert("after", "main", "def new(:\n    return 1"), "SYNTAX", "no longer parses"),
        (insert("after", "main", FUNCTION, "b.py"), "WRONG_FILE", "neither a target"),
        (insert("after", "main", FUNCTION, ".git/config"), "PROTECTED", ""),
        (insert("after", "main", f"{FUNCTION}\n</replacement>"), "TRUNCATED", ""),
    ],
)
def test_a_refused_insert_has_its_code_and_changes_nothing(edit: PatchEdit, code: str, detail: str) -> None:
    rules = EditRules(targets=(TargetFile(path="a.py"),))
    applied = apply_edits((edit,), {"a.py": PYTHON}, package(shown_file("a.py", PYTHON)), rules)
    (report,) = applied.result.reports
    assert (report.code.value, report.kind) == (code, "insert")
    assert detail in report.detail
    assert applied.texts == {}


def test_a_name_that_is_defined_twice_is_ambiguous() -> None:
    text = "class A:\n    @property\n    def x(self):\n        return 1\n\n    @x.setter\n    def x(self, v):\n        pass\n"
    applied = apply(insert("after", "A.x", METHOD), text=text)
    (report,) = applied.result.reports
    assert (report.code.value, report.matches, report.lines) == ("AMBIGUOUS", 2, (2, 6))
    assert "The name matches more than one definition." in describe(applied.result)
    assert "It matched 2 times, at lines 2, 6." in describe(applied.result)


def test_an_unknown_neighbour_is_not_spoken_of_as_a_search_text() -> None:
    words = describe(apply(insert("after", "Box.opens", METHOD)).result)
    assert "NO_MATCH. There is no such place." in words
    assert "like it: Box.open" in words


def test_an_insert_into_what_an_earlier_edit_wrote_overlaps() -> None:
    whole = "class Box:\n    def a(self):\n        return 7\n\n    def b(self):\n        return 8"
    replaced = PatchEdit(kind="symbol", file_path="a.py", symbol="Box", replacement=whole)
    reports = apply(replaced, insert("after", "Box.a", METHOD)).result.reports
    assert [report.code.value for report in reports] == ["APPLIED", "OVERLAP"]


@pytest.mark.parametrize("place", ["after", "before", "in"])
def test_what_was_inserted_already_is_not_inserted_again(place: InsertPlace) -> None:
    edit = insert(place, "Box" if place == "in" else "Box.close", METHOD)
    once = result(edit)
    again = apply(edit, text=once)
    assert [report.code.value for report in again.result.reports] == ["ALREADY_APPLIED"]
    assert again.result.success
    assert again.texts == {}


def test_in_a_file_that_is_no_target_the_place_is_at_or_in_what_was_shown() -> None:
    shown = package(shown_symbol("a.py", PYTHON, "Box.open", 14, 16))
    assert apply(insert("after", "Box.open", METHOD), shown=shown, target=False).result.success
    reports = apply(insert("after", "main", FUNCTION), shown=shown, target=False).result.reports
    assert [report.code.value for report in reports] == ["WRONG_FILE"]


def test_a_neighbour_that_only_the_context_knows_is_found() -> None:
    shown = package(shown_symbol("a.py", PYTHON, "LIMIT", 3, 3))
    applied = apply(insert("after", "LIMIT", "MOST = 4"), shown=shown)
    assert "LIMIT = 3\nMOST = 4\n" in str(applied.texts["a.py"])


def test_without_a_final_newline_there_is_none_afterwards() -> None:
    assert result(insert("after", "a", FUNCTION), text="def a():\n    pass") == (
        "def a():\n    pass\n\n\ndef new():\n    return 3"
    )


@given(
    place=st.sampled_from(("after", "before", "in")),
    target=st.sampled_from(("Box", "Box.open", "Box.close", "main")),
    ends=st.sampled_from(("\n", "\r\n")),
    final=st.booleans(),
    text=st.sampled_from((METHOD, "size = 2", f"@cached\n{METHOD}", f"# why\n{METHOD}\n\n\nx = 1")),
)
def test_all_but_the_inserted_lines_stays_as_it_is(
    place: InsertPlace, target: str, ends: str, final: bool, text: str
) -> None:
    before = PYTHON if final else PYTHON.removesuffix("\n")
    written = before.replace("\n", ends)
    symbol = "Box" if place == "in" else target
    after = result(insert(place, symbol, text), text=written)
    assert ("\r\n" in after) == (ends == "\r\n")
    assert after.count("\n") == after.count(ends)
    middle = added(before + "\n", after.replace("\r\n", "\n") + "\n")
    kept = [line.strip() for line in text.split("\n") if line.strip()]
    assert [line.strip() for line in middle.split("\n") if line.strip()] in (
        kept,
        [*kept[1:], kept[0]],
    )
    assert after.endswith(("\n", "\r\n")) == final
