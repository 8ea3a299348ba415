from pathlib import Path

from benchmarks.real.prompting import applied, around, code_of, prompt_for

FILE = """import re

def first(text):
    return text[1]

class Reader:
    def read(self):
        return 1

    def close(self):
        return 2
"""


def test_a_function_comes_back_in_its_own_place() -> None:
    code = code_of("Here:\n```python\ndef first(text):\n    return text[0]\n```\nDone.")
    assert applied(FILE, code) == FILE.replace("text[1]", "text[0]")


def test_a_method_may_come_without_its_class_and_indented() -> None:
    code = code_of("```python\n    def read(self):\n        return 3\n```")
    assert applied(FILE, code) == FILE.replace("return 1", "return 3")


def test_of_methods_with_one_name_it_is_the_shown_one() -> None:
    text = FILE + FILE[FILE.index("class Reader") :].replace("Reader", "Other").replace("1", "4")
    code = "def read(self):\n    return 3\n"
    assert applied(text, code) is None
    changed = applied(text, code, "    def read(self):\n        return 4")
    assert changed == text.replace("return 4", "return 3")


def test_a_new_function_is_added_where_one_is_asked_for() -> None:
    code = "import re\nimport os\n\ndef other(x):\n    return os.sep\n"
    assert applied(FILE, code) is None
    assert applied(FILE, code, words="Add: long.py: def other(x)") == (
        FILE + "\n\nimport os\n\ndef other(x):\n    return os.sep\n"
    )
    helped = applied(FILE, "def helper():\n    return 0\n\ndef first(text):\n    return text[helper()]\n")
    assert helped is not None
    assert helped.endswith("def helper():\n    return 0\n")


def test_code_with_all_definitions_is_the_whole_file() -> None:
    code = "import os\n\n\nclass Reader:\n    pass\n\n\ndef first(text):\n    return os.sep\n"
    assert applied(FILE, code) == code


def test_what_changes_nothing_or_is_no_python_is_not_applied() -> None:
    assert applied(FILE, "def first(text):\n    return text[1]\n") is None
    assert applied(FILE, "def first(text:\n") is None
    assert applied(FILE, code_of("I cannot see any bug.")) is None
    assert applied(FILE, "def other():\n    pass\n") is None


def test_the_named_function_is_shown_and_tests_are_not(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_first():\n    first('first')\n", encoding="utf-8")
    (tmp_path / "long.py").write_text(FILE + "\n" * 2000, encoding="utf-8")
    (tmp_path / "other.py").write_text("def other():\n    return 'first'\n", encoding="utf-8")
    shown = list(around(tmp_path, "`first('ab')` gives `b`, but it should give `a`.", 4000))
    assert shown[0].path == "long.py"
    assert shown[0].text == "def first(text):\n    return text[1]"
    prompt, parts = prompt_for(tmp_path, "`first` is wrong.", ("other.py",), 1000)
    assert [part.path for part in parts] == ["other.py"]
    assert prompt.startswith("other.py\n```python\ndef other():")
