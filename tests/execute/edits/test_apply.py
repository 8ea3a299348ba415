import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditCode, EditKind, PatchEdit
from clean_room_agent.artifacts.plans import FileRole, TargetFile
from clean_room_agent.execute.edits.apply import Applied, apply_edits, paths_named
from clean_room_agent.execute.edits.rules import EditRules, Places
from clean_room_agent.file_contents import decode

A = """\
import os


class Box:
    def open(self):
        x = 1
        return x

    def close(self):
        x = 1
        return None


def main():
    return Box()
"""
TARGETS = (
    TargetFile(path="a.py"),
    TargetFile(path="new.py", role="create"),
    TargetFile(path="old.py", role="delete"),
)
RULES = EditRules(targets=TARGETS, protected=(".env", "*.lock"))
FILES = {
    "a.py": A,
    "old.py": "x\n",
    "b.py": "def f():\n    return 1\n",
    "tests/test_a.py": "def test():\n    pass\n",
}
CONTEXT = package(
    shown_file("a.py", A),
    shown_file("b.py", FILES["b.py"], detail="supporting"),
    shown_file("tests/test_a.py", FILES["tests/test_a.py"]),
)
NARROW = package(shown_symbol("a.py", A, "Box.open", 5, 7), shown_symbol("a.py", A, "Box.close", 9, 11))


def edit(search: str, replacement: str, path: str = "a.py") -> PatchEdit:
    return PatchEdit(kind="edit", file_path=path, search=search, replacement=replacement)


def symbol(name: str, replacement: str, path: str = "a.py") -> PatchEdit:
    return PatchEdit(kind="symbol", file_path=path, symbol=name, replacement=replacement)


def create(path: str, text: str) -> PatchEdit:
    return PatchEdit(kind="create", file_path=path, replacement=text)


def delete(path: str) -> PatchEdit:
    return PatchEdit(kind="delete", file_path=path)


def apply(*edits: PatchEdit, shown: ContextPackage = CONTEXT, rules: EditRules = RULES) -> Applied:
    return apply_edits(edits, FILES, shown, rules)


def codes(applied: Applied) -> list[str]:
    return [report.code.value for report in applied.result.reports]


def text_of(applied: Applied, path: str = "a.py") -> str:
    assert applied.result.success, applied.result
    text = applied.texts[path]
    assert text is not None
    return text


def test_an_edit_changes_its_span_alone() -> None:
    applied = apply(edit("    return Box()", "    return Box().open()"))
    assert text_of(applied) == A.replace("return Box()", "return Box().open()")
    assert applied.result.reports[0].lines == (15,)
    assert applied.result.reports[0].tier == 2


def test_edits_are_judged_in_order_each_on_the_result_of_those_before() -> None:
    applied = apply(
        edit("import os", "import os\nimport sys"), edit("import sys\n\n", "import sys\nimport re\n\n")
    )
    assert codes(applied) == ["APPLIED", "APPLIED"]
    assert text_of(applied).startswith("import os\nimport sys\nimport re\n")


def test_all_stand_or_none() -> None:
    applied = apply(
        edit("import os", "import sys"), edit("nowhere at all", "y"), edit("return Box()", "return 1")
    )
    assert codes(applied) == ["APPLIED", "NO_MATCH", "APPLIED"]
    assert not applied.result.success
    assert applied.texts == {}
    assert applied.result.error_info == "edit 2 (a.py): NO_MATCH"


@pytest.mark.parametrize(
    "repeated",
    [
        edit("    return Box()", "    return 1"),
        symbol("main", "def main():\n    return 1"),
        PatchEdit(
            kind="insert",
            file_path="a.py",
            symbol="main",
            place="after",
            replacement="def f():\n    return 1",
        ),
        create("new.py", "x = 1\n"),
        delete("old.py"),
    ],
)
def test_the_same_edit_twice_is_made_once(repeated: PatchEdit) -> None:
    twice = apply(repeated, repeated)
    assert codes(twice) == ["APPLIED", "ALREADY_APPLIED"]
    assert twice.texts == apply(repeated).texts


def test_beside_another_edit_what_changes_nothing_does_no_harm() -> None:
    useful = edit("    return Box()", "    return 1")
    applied = apply(edit("import os", "import os"), useful)
    assert codes(applied) == ["ALREADY_APPLIED", "APPLIED"]
    assert applied.texts == apply(useful).texts
    blanks = replace(useful, replacement="    return 1  ")
    assert codes(apply(useful, blanks)) == ["APPLIED", "ALREADY_APPLIED"]


def test_two_different_edits_of_one_place_are_refused() -> None:
    assert codes(
        apply(edit("    return Box()", "    return 1"), edit("    return Box()", "    return 2"))
    ) == [
        "APPLIED",
        "OVERLAP",
    ]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (symbol("main", "def main():\n&nbsp;&nbsp;&nbsp;&nbsp;return 1 &lt; 2"), "    return 1 < 2\n"),
        (symbol("main", "def main():\n    return 1 &lt; 2 and 3 &gt; 2"), "    return 1 < 2 and 3 > 2\n"),
        (edit("    return Box()", "    return 6 &amp; 3"), "    return 6 & 3\n"),
        (edit("    return Box()", "    return &#39;&amp;lt;&#39;"), "    return '&lt;'\n"),
        (edit("    return Box()", "    return 6 &#60; 3 &#x3e; 2"), "    return 6 < 3 > 2\n"),
        (edit("    return Box()", "    return '&lt;'"), "    return '&lt;'\n"),
        (create("new.py", "x = &quot;a&quot;\n"), 'x = "a"\n'),
    ],
)
def test_entities_are_replaced_where_only_that_can_be_meant(written: PatchEdit, text: str) -> None:
    assert text_of(apply(written), written.file_path).endswith(text)


def test_entities_in_a_search_text_and_in_scripts_are_replaced() -> None:
    files = {"a.js": "function less(a, b) {\n  return a < b;\n}\n"}
    rules = EditRules(targets=(TargetFile(path="a.js"),))
    shown = package(shown_file("a.js", files["a.js"]))
    change = edit("  return a &lt; b;", "  return a &lt; b &amp;&amp; b &gt; 0;", "a.js")
    after = apply_edits((change,), files, shown, rules)
    assert text_of(after, "a.js") == files["a.js"].replace("a < b;", "a < b && b > 0;")
    change = edit("  return a < b;", "  return a &lt; b &amp;&amp; b;", "a.js")
    after = apply_edits((change,), files, shown, rules)
    assert text_of(after, "a.js") == files["a.js"].replace("a < b;", "a < b && b;")


def test_entities_of_a_file_that_has_some_are_its_own() -> None:
    files = {"a.py": "X = '&lt;'\n"}
    rules = EditRules(targets=(TargetFile(path="a.py"),))
    refused = apply_edits(
        (edit("X = '<'", "X = '&amp;'"),), files, package(shown_file("a.py", files["a.py"])), rules
    )
    assert codes(refused) == ["NO_MATCH"]


def test_a_refused_text_with_entities_is_told_about_them() -> None:
    (report,) = apply(edit("nowhere &lt; at all", "y")).result.reports
    assert report.code is EditCode.NO_MATCH
    assert report.detail.endswith("write <, > and & themselves, not &lt;, &gt; and &amp;")


def test_the_summary_says_why_a_file_must_stay_and_what_does_not_parse() -> None:
    rules = EditRules(targets=RULES.targets, uneditable={"a.py": "filter driver 'lfs' does not run here"})
    refused = apply(edit("    return Box()", "    return (", "a.py"))
    assert refused.result.error_info.startswith("edit 1 (a.py): SYNTAX: the file no longer parses")
    kept = apply_edits((edit("    return Box()", "    return 1", "a.py"),), FILES, CONTEXT, rules)
    assert kept.result.error_info == (
        "edit 1 (a.py): PROTECTED: a.py is not editable: filter driver 'lfs' does not run here"
    )


def test_no_edits_are_no_success() -> None:
    assert not apply().result.success


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (edit("x = 1", "x = 2"), "AMBIGUOUS"),
        (edit("y = 1", "y = 2"), "NO_MATCH"),
        (edit("", "y = 2"), "NO_MATCH"),
        (edit("import os", "import os"), "NO_CHANGE"),
        (symbol("Box.open", "    def open(self):\n        x = 1\n        return x"), "NO_CHANGE"),
        (symbol("Box.shut", "def shut(self): pass"), "NO_MATCH"),
        (symbol("Box.open", ""), "NO_MATCH"),
        (edit("return 1", "return 2", "b.py"), "WRONG_FILE"),
        (edit("return 1", "return 2", "c.py"), "WRONG_FILE"),
        (edit("x", "y", "/etc/passwd"), "WRONG_FILE"),
        (edit("x", "y", "../a.py"), "WRONG_FILE"),
        (edit("x", "y", "new.py"), "WRONG_FILE"),
        (edit("x", "y", ".git/config"), "PROTECTED"),
        (create(".gitmodules", "x\n"), "PROTECTED"),
        (create("sub/.env", "KEY=1\n"), "PROTECTED"),
        (edit("pass", "return", "tests/test_a.py"), "PROTECTED"),
        (delete("a.py"), "PROTECTED"),
        (create("a.py", "x = 1\n"), "WRONG_FILE"),
        (create("unplanned.py", "x = 1\n"), "WRONG_FILE"),
        (edit("    return Box()", "    # ... rest unchanged"), "ELISION"),
        (edit("    return Box()", "    return (Box()"), "SYNTAX"),
        (edit("    return Box()", "    return Crate()"), "UNDEFINED"),
        (create("new.py", "```python\nx = 1\n```\n"), "SYNTAX"),
        (create("new.py", "x = helper()\n"), "UNDEFINED"),
        (symbol("main", "def start():\n    return 1"), "NO_DEFINITION"),
        (symbol("Box.open", "def close(self):\n    return 2"), "NO_DEFINITION"),
        (edit("    return Box()", "</replacement>\n    return 2"), "TRUNCATED"),
    ],
)
def test_a_refused_edit_has_its_code_and_changes_nothing(bad: PatchEdit, code: str) -> None:
    applied = apply(bad)
    assert codes(applied) == [code]
    assert applied.texts == {}
    assert not applied.result.success


def test_the_places_of_an_ambiguous_text_are_named() -> None:
    report = apply(edit("x = 1", "x = 2")).result.reports[0]
    assert (report.matches, report.lines, report.tier) == (2, (6, 10), 2)


def test_the_nearest_real_text_is_given() -> None:
    report = apply(edit("    def close(self):\n        x = 2\n        return None", "")).result.reports[0]
    assert report.nearest == "    def close(self):\n        x = 1\n        return None"
    assert "first differs at line 10" in report.detail


def test_inside_a_shown_symbol_a_text_need_not_be_unique_in_the_file() -> None:
    shown = package(shown_symbol("a.py", A, "Box.close", 9, 11))
    applied = apply(edit("        x = 1", "        x = 2"), shown=shown)
    assert applied.result.reports[0].tier == 1
    assert text_of(applied).count("x = 2") == 1
    assert text_of(applied).index("x = 2") > text_of(applied).index("def close")


def test_symbols_are_followed_when_earlier_edits_move_them() -> None:
    applied = apply(
        edit("import os", "import os\nimport sys\nimport re"),
        symbol("Box.open", "def open(self):\n    return 7"),
        symbol("close", "    def close(self):\n        return 8"),
        shown=NARROW,
    )
    assert text_of(applied) == (
        "import os\nimport sys\nimport re\n\n\nclass Box:\n    def open(self):\n        return 7\n\n"
        "    def close(self):\n        return 8\n\n\ndef main():\n    return Box()\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        "    def open(self):\n        return 2",
        "def open(self):\n    return 2",
        "def open(self):\n        return 2",
        "        def open(self):\n            return 2",
    ],
)
def test_a_symbol_takes_the_indentation_of_its_place(source: str) -> None:
    expected = A.replace("        x = 1\n        return x\n", "        return 2\n", 1)
    assert text_of(apply(symbol("Box.open", source), shown=NARROW)) == expected


def test_an_answer_for_a_symbol_is_put_right_where_it_has_one_meaning() -> None:
    applied = apply(
        symbol("Box.open", "import math\n\ndef open(self):\n    return math.pi"), symbol("main", "return 2")
    )
    assert text_of(applied) == A.replace("import os\n", "import os\nimport math\n").replace(
        "        x = 1\n        return x\n", "        return math.pi\n"
    ).replace("return Box()", "return 2")


def test_a_symbol_of_a_file_shown_whole_is_found_by_its_syntax() -> None:
    assert text_of(apply(symbol("main", "def main():\n    return 3"))).endswith("def main():\n    return 3\n")
    assert "return 4" in text_of(apply(symbol("Box.close", "def close(self):\n    return 4")))


def test_outside_its_targets_a_step_edits_only_the_shown_symbols() -> None:
    files = FILES | {"c.py": A}
    shown = package(shown_symbol("c.py", A, "Box.open", 5, 7))
    inside = apply_edits((edit("        return x", "        return 2", "c.py"),), files, shown, RULES)
    assert codes(inside) == ["APPLIED"]
    outside = apply_edits((edit("import os", "import re", "c.py"),), files, shown, RULES)
    assert codes(outside) == ["WRONG_FILE"]


def test_what_already_stands_is_accepted_without_a_change() -> None:
    applied = apply(edit("def start():\n    return Box", "def main():\n    return Box()"))
    assert codes(applied) == ["ALREADY_APPLIED"]
    assert applied.result.success
    assert applied.texts == {}


def test_a_lone_bracket_that_stands_once_is_not_already_applied() -> None:
    files = {"a.py": "f(\n)\n"}
    assert codes(apply_edits((edit("g(1", ")"),), files, CONTEXT, RULES)) == ["NO_MATCH"]


def test_overlapping_edits_are_refused() -> None:
    assert codes(apply(edit("return Box()", "return 1"), edit("return 1", "return 2"))) == [
        "APPLIED",
        "OVERLAP",
    ]
    assert codes(apply(edit("return Box()", "return 1"), edit("return Box()", "return 2"))) == [
        "APPLIED",
        "OVERLAP",
    ]
    assert codes(apply(delete("old.py"), create("old.py", "y\n"))) == ["APPLIED", "OVERLAP"]
    assert codes(apply(create("new.py", "y\n"), create("new.py", "z\n"))) == ["APPLIED", "OVERLAP"]


def test_two_insertions_at_one_place_stand_both() -> None:
    applied = apply(edit("import os", "import os\nimport re"), edit("import os", "import os\nimport sys"))
    assert text_of(applied).startswith("import os\nimport sys\nimport re\n")


def test_files_are_created_and_deleted_as_the_plan_says() -> None:
    applied = apply(create("new.py", "y = 1\n"), delete("old.py"))
    assert applied.texts == {"new.py": "y = 1\n", "old.py": None}


def test_creating_what_is_there_and_deleting_what_is_gone_is_already_applied() -> None:
    rules = EditRules(targets=(TargetFile(path="a.py"), TargetFile(path="gone.py", role="delete")))
    assert codes(apply(create("a.py", A), delete("gone.py"), rules=rules)) == [
        "ALREADY_APPLIED",
        "ALREADY_APPLIED",
    ]


def test_an_empty_file_may_be_created_over() -> None:
    applied = apply_edits((create("a.py", "x = 1\n"),), {"a.py": "\n"}, CONTEXT, RULES)
    assert applied.texts == {"a.py": "x = 1\n"}


def test_a_created_file_can_be_edited_in_the_same_answer() -> None:
    applied = apply(create("new.py", "a = 1\nb = 2\n"), edit("b = 2", "b = 2\nc = 3", "new.py"))
    assert applied.texts["new.py"] == "a = 1\nb = 2\nc = 3\n"


def test_a_test_may_be_edited_where_the_plan_names_it() -> None:
    rules = EditRules(targets=TARGETS, planned=("tests/test_a.py",))
    assert codes(apply(edit("pass", "return", "tests/test_a.py"), rules=rules)) == ["APPLIED"]


@pytest.mark.parametrize(
    ("path", "before", "search", "replacement", "code"),
    [
        ("pyproject.toml", '[project]\nname = "a"\n[tool.x]\ny = 1\n', 'name = "a"', 'name = "b"', "APPLIED"),
        ("pyproject.toml", '[project]\nname = "a"\n[tool.x]\ny = 1\n', "y = 1", "y = 2", "PROTECTED"),
        (
            "package.json",
            '{"name": "a", "scripts": {"test": "jest"}}\n',
            '"name": "a"',
            '"name": "b"',
            "APPLIED",
        ),
        ("package.json", '{"name": "a", "scripts": {"test": "jest"}}\n', '"jest"', '"true"', "PROTECTED"),
        ("setup.cfg", "[x]\na = 1\n", "a = 1", "a = 2", "PROTECTED"),
    ],
)
def test_what_steers_the_tests_stays_where_the_plan_does_not_name_it(
    path: str, before: str, search: str, replacement: str, code: str
) -> None:
    shown = package(shown_file(path, before))
    applied = apply_edits((edit(search, replacement, path),), {path: before}, shown, RULES)
    assert codes(applied) == [code]
    planned = EditRules(targets=(TargetFile(path=path),))
    assert apply_edits((edit(search, replacement, path),), {path: before}, shown, planned).result.success


def test_a_file_that_is_no_text_is_protected() -> None:
    rules = EditRules(targets=TARGETS, uneditable={"new.py": "binary"})
    assert codes(apply(create("new.py", "x\n"), rules=rules)) == ["PROTECTED"]


def test_lines_replaced_by_nothing_leave_no_blank_line() -> None:
    assert text_of(apply(edit("import os", ""))) == A.removeprefix("import os\n")
    end = apply_edits((edit("b", ""),), {"a.py": "a\nb"}, CONTEXT, RULES)
    assert end.texts == {"a.py": "a"}


def test_mixed_line_ends_stay_as_they_are_around_an_edit() -> None:
    text = "a = 1\r\nb = 2\r\nc = 3\nd = 4\n"
    applied = apply_edits(
        (edit("b = 2", "b = 5\nb = 6"), edit("c = 3", "c = 5\nc = 6")), {"a.py": text}, CONTEXT, RULES
    )
    assert applied.texts["a.py"] == "a = 1\r\nb = 5\r\nb = 6\r\nc = 5\nc = 6\nd = 4\n"


def test_tags_in_a_text_stand_where_the_file_holds_tags() -> None:
    text = "Write:\n<search>\nx\n</search>\n"
    shown = package(shown_file("doc.md", text))
    rules = EditRules(targets=(TargetFile(path="doc.md"),))
    applied = apply_edits((edit("x\n</search>", "y\n</search>", "doc.md"),), {"doc.md": text}, shown, rules)
    assert applied.texts == {"doc.md": text.replace("x", "y")}


def test_a_file_that_was_broken_before_may_stay_broken() -> None:
    files = {"a.py": "def f(:\n    pass\nx = 1\n"}
    assert codes(apply_edits((edit("x = 1", "x = ("),), files, CONTEXT, RULES)) == ["APPLIED"]


def test_the_syntax_error_is_named_at_the_last_edit_of_the_file() -> None:
    applied = apply(edit("return Box()", "return (Box()"), edit("import os", "import re"))
    assert codes(applied) == ["APPLIED", "SYNTAX"]
    assert "syntax error is at line" in applied.result.reports[1].detail


def test_only_usable_paths_are_read() -> None:
    assert paths_named([create("b.py", ""), edit("", "", "a.py"), edit("", "", "../x"), delete("b.py")]) == (
        "a.py",
        "b.py",
    )


LINES = st.lists(st.text("abc =#\t", min_size=1, max_size=8), min_size=1, max_size=12)


@given(LINES, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_bytes_outside_the_span_survive(lines: list[str], data: st.DataObject, eol: str, final: bool) -> None:
    original = (eol.join(lines) + (eol if final else "")).encode()
    file = decode(original)
    eol = eol if eol.encode() in original else "\n"
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    new = data.draw(st.lists(st.text("xyz", min_size=1, max_size=4), min_size=1, max_size=3))
    search = "\n".join(lines[first : last + 1])
    applied = apply_edits(
        (edit(search, "\n".join(new), "a.txt"),),
        {"a.txt": file.text},
        package(shown_file("a.txt", file.text)),
        EditRules(targets=(TargetFile(path="a.txt"),)),
    )
    report = applied.result.reports[0]
    assume(report.code is EditCode.APPLIED and report.tier == 2)
    text = applied.texts["a.txt"]
    assert text is not None
    kept_before = "".join(line + eol for line in lines[:first])
    kept_after = "".join(eol + line for line in lines[last + 1 :]) + (eol if final else "")
    assert file.encode(text) == (kept_before + eol.join(new) + kept_after).encode()


WORDS = st.sampled_from(
    ["x = 1", "    y", "...", "# ...", "", "def f():", "<search>", "</search>", "import os", "\t)"]
)
SOME_TEXT = st.lists(WORDS, max_size=5).map("\n".join)
SOME_PATHS = st.sampled_from(["a.py", "b.py", "new.py", "old.py", "tests/test_a.py", "../x", ".git/x", ""])
SOME_EDITS = st.builds(
    PatchEdit,
    kind=st.sampled_from(["edit", "symbol", "create", "delete"]),
    file_path=SOME_PATHS,
    search=st.one_of(SOME_TEXT, st.text()),
    replacement=st.one_of(SOME_TEXT, st.text()),
    symbol=st.sampled_from(["", "main", "Box", "Box.open"]),
)


@given(st.lists(SOME_EDITS, max_size=4), st.sampled_from([CONTEXT, NARROW]))
def test_any_edits_are_judged_without_an_exception_and_all_or_none(
    edits: list[PatchEdit], shown: ContextPackage
) -> None:
    applied = apply(*edits, shown=shown)
    reports = applied.result.reports
    assert [report.index for report in reports] == list(range(len(edits)))
    assert applied.result.success is (bool(edits) and all(report.code.accepted for report in reports))
    assert applied.result.success or applied.texts == {}
    assert set(applied.texts) <= {"a.py", "new.py", "old.py"}


@pytest.mark.parametrize(
    "source",
    [
        "def f(self):\n    return 2",
        "    @cached\n    def f(self):\n        return 2",
        "@cached\n    def f(self):\n        return 2",
    ],
)
def test_a_decorated_symbol_takes_the_indentation_of_its_place(source: str) -> None:
    text = "from a import cached\nclass A:\n    @cached\n    def f(self):\n        return 1\n"
    rules = EditRules(targets=(TargetFile(path="a.py"),))
    applied = apply_edits((symbol("A.f", source),), {"a.py": text}, package(shown_file("a.py", text)), rules)
    assert applied.texts == {"a.py": text.replace("1", "2")}


def test_a_decorated_method_of_a_script_is_replaced_with_its_decorators() -> None:
    text = "class A {\n  @In()\n  @Out()\n  f() {\n    return 1;\n  }\n}\n"
    rules = EditRules(targets=(TargetFile(path="a.ts"),))
    new = symbol("A.f", "@In()\nf() {\n  return 2;\n}", "a.ts")
    applied = apply_edits((new,), {"a.ts": text}, package(shown_file("a.ts", text)), rules)
    assert applied.texts == {"a.ts": "class A {\n  @In()\n  f() {\n    return 2;\n  }\n}\n"}


@pytest.mark.parametrize("whole", [True, False])
def test_a_symbol_keeps_the_line_ends_of_its_file(whole: bool) -> None:
    text = A.replace("\n", "\r\n")
    shown = package(shown_file("a.py", A)) if whole else NARROW
    applied = apply_edits(
        (symbol("Box.open", "def open(self):\n    return 7"),), {"a.py": text}, shown, RULES
    )
    wanted = A.replace("        x = 1\n        return x\n", "        return 7\n", 1)
    assert applied.texts == {"a.py": wanted.replace("\n", "\r\n")}


def test_a_text_across_two_neighbouring_shown_symbols_is_found() -> None:
    search = "        return x\n\n    def close(self):\n        x = 1"
    across = edit(search, search.replace("x = 1", "x = 9"), "c.py")
    files = FILES | {"c.py": A}
    shown = package(shown_symbol("c.py", A, "Box.open", 5, 7), shown_symbol("c.py", A, "Box.close", 9, 11))
    reports = apply_edits((across,), files, shown, RULES).result.reports
    assert [(report.code.value, report.tier) for report in reports] == [("APPLIED", 1)]
    apart = package(shown_symbol("c.py", A, "Box.open", 5, 7), shown_symbol("c.py", A, "Box.close", 10, 11))
    assert codes(apply_edits((across,), files, apart, RULES)) == ["WRONG_FILE"]
    target = EditRules(targets=(TargetFile(path="c.py"),))
    reports = apply_edits((across,), files, apart, target).result.reports
    assert [(report.code.value, report.tier) for report in reports] == [("APPLIED", 2)]


@pytest.mark.parametrize(
    ("kind", "path", "words"),
    [
        ("create", "link.py", "link.py is a link"),
        ("edit", "link.py", "link.py is a link"),
        ("delete", "link.py", "link.py is a link"),
        ("create", "a.py/b.py", "a.py is a file"),
        ("create", "pkg", "pkg is a folder"),
        ("create", "A.py", "letter case"),
    ],
)
def test_an_edit_where_no_file_can_be_is_refused(kind: EditKind, path: str, words: str) -> None:
    role: FileRole = "delete" if kind == "delete" else "create"
    places = Places(("a.py", "pkg/x.py"), {"link.py": "a link"})
    rules = EditRules(targets=(TargetFile(path=path, role=role),), places=places)
    edit = PatchEdit(kind=kind, file_path=path, search="x", replacement="y = 1\n")
    (report,) = apply_edits((edit,), {}, package(), rules).result.reports
    assert report.code is EditCode.WRONG_FILE
    assert words in report.detail


def test_a_file_may_become_a_folder_in_one_answer() -> None:
    targets = (TargetFile(path="a", role="delete"), TargetFile(path="a/b.py", role="create"))
    rules = EditRules(targets=targets, places=Places(("a",)))
    edits = (
        PatchEdit(kind="create", file_path="a/b.py", replacement="b = 1\n"),
        PatchEdit(kind="delete", file_path="a"),
    )
    applied = apply_edits(edits, {"a": "text\n"}, package(), rules)
    assert applied.texts == {"a": None, "a/b.py": "b = 1\n"}


def test_an_edit_keeps_the_characters_of_the_file_that_look_like_what_was_typed() -> None:
    text = "def f():\n    # it\u2019s a\u00a0note\n    return 1\n"
    change = edit("# it's a note\nreturn 1", "# it's a note\nreturn 2")
    done = apply_edits((change,), {"a.py": text}, package(shown_file("a.py", text)), RULES)
    assert done.texts == {"a.py": text.replace("1", "2")}
    assert done.result.reports[0].tier == 8
