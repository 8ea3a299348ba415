import pytest

from clean_room_agent.execute.edits.indent_units import units_of

TABS = "class A:\n\tdef f(self):\n\t\treturn 1\n"
BLANKS = TABS.replace("\t", "    ")


ALIGNED = "class A {\n\t/**\n\t * x\n\t */\n\tf() {\n\t\treturn (1 +\n\t\t        2);\n\t}\n}\n"
MIXED = "def a():\n\treturn 1\n\n\ndef b():\n    return 1\n"
STRING = "\tdef g(self):\n\t\treturn '''\n    x\n'''\n"
TWO = "class A {\n  f() {\n    return 1;\n  }\n}\n"


@pytest.mark.parametrize(
    ("file", "texts", "expected"),
    [
        (TABS, ("        for x in y:\n            z", "    z"), ("\t\tfor x in y:\n\t\t\tz", "\tz")),
        (TABS, ("", "  if x:\n    y"), ("", "\tif x:\n\t\ty")),
        (TABS, ("", "        return 1"), ("", "\treturn 1")),
        (
            TABS,
            ("", "    x = (1 +\n         2)\n    if x:\n        y"),
            ("", "\tx = (1 +\n\t     2)\n\tif x:\n\t\ty"),
        ),
        (BLANKS, ("", "\tif x:\n\t\ty\n\n"), ("", "    if x:\n        y\n\n")),
        (
            ALIGNED,
            ("", "  f() {\n    /*\n     * y\n     */\n  }"),
            ("", "\tf() {\n\t\t/*\n\t\t * y\n\t\t */\n\t}"),
        ),
        (TWO, ("    f() {\n        return 1;", "    f() {"), ("  f() {\n    return 1;", "  f() {")),
        (TWO, ("    return 1;", "    if (x) {\n        y"), ("    return 1;", "    if (x) {\n        y")),
        (TABS, ("", "\tif x:\n\t\ty"), ("", "\tif x:\n\t\ty")),
        (BLANKS, ("", "  x"), ("", "  x")),
        (TABS, ("", "   x\n     y"), ("", "   x\n     y")),
        (TABS + "    z = 1\n", ("", "    x"), ("", "\tx")),
        (MIXED, ("", "    x"), ("", "    x")),
        (TABS, ("\t\treturn 1", "        if x:\n            y"), ("\t\treturn 1", "\t\tif x:\n\t\t\ty")),
        (TABS, ("\t\treturn 1", "        x\n        y"), ("\t\treturn 1", "\t\tx\n\t\ty")),
        (BLANKS, ("        return 1", "\t\tx\n\t\ty"), ("        return 1", "        x\n        y")),
        (
            TABS.replace("1", "g(1,\n\t\t         2)"),
            ("        return g(1,\n                 2)", "        return g(0,\n                 2)"),
            ("\t\treturn g(1,\n\t\t         2)", "\t\treturn g(0,\n\t\t         2)"),
        ),
        (
            TABS.replace("1", "g(1,\n\t\t      2)"),
            ("        return g(1,\n              2)", "        return g(1,\n              3)"),
            ("\t\treturn g(1,\n\t\t      2)", "\t\treturn g(1,\n\t\t      3)"),
        ),
        (TABS + STRING, ("", STRING.replace("\t", "    ")), ("", STRING)),
        (
            TABS,
            ("", "    def g(self):\n        return '''\n    x\n'''"),
            ("", "\tdef g(self):\n\t\treturn '''\n    x\n'''"),
        ),
        (TABS, ("", "    x\n\ty"), ("", "    x\n\ty")),
        ("x = 1\n", ("", "    x"), ("", "    x")),
    ],
)
def test_an_answer_takes_the_units_of_its_files_indentation_where_they_are_clear(
    file: str, texts: tuple[str, str], expected: tuple[str, str]
) -> None:
    assert units_of("a.py" if "def" in file else "a.js", file, *texts) == expected
