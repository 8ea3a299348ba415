from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.unified_diff import diff_of_file, join_hunks, split_hunks, unquoted

DIFF = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@ def f():
-x
+y
@@ -9 +9 @@
-@@ z
+w
diff --git a/b.py b/c.py
rename from b.py
rename to c.py
"""


def test_a_diff_is_split_at_its_hunks() -> None:
    assert [hunk.name for hunk in split_hunks(DIFF)] == [
        "diff --git a/a.py b/a.py @@ -1,2 +1,2 @@ def f():",
        "diff --git a/a.py b/a.py @@ -9 +9 @@",
        "diff --git a/b.py b/c.py",
    ]


def test_what_is_left_keeps_the_header_of_its_file() -> None:
    text = join_hunks(split_hunks(DIFF)[1:2])
    assert text.startswith("diff --git a/a.py b/a.py\nindex")
    assert text.endswith("@@ -9 +9 @@\n-@@ z\n+w\n")


@given(st.lists(st.sampled_from(DIFF.splitlines())).map("\n".join))
def test_splitting_loses_nothing(diff: str) -> None:
    assert join_hunks(split_hunks(diff)).replace("\n", "") in {diff.replace("\n", ""), _merged(diff)}


def _merged(diff: str) -> str:
    """`diff` as joining gives it where one header stands twice in a row."""
    return join_hunks(split_hunks(join_hunks(split_hunks(diff)))).replace("\n", "")


def test_a_file_is_found_by_its_whole_path_with_its_lines_numbered() -> None:
    found = diff_of_file(DIFF, "a.py")
    assert found is not None
    assert [(line.kind, line.old, line.new) for line in found.lines] == [
        ("hunk", 1, 1),
        ("deleted", 1, None),
        ("added", None, 1),
        ("hunk", 9, 9),
        ("deleted", 9, None),
        ("added", None, 9),
    ]
    assert diff_of_file(DIFF, "py") is None
    assert diff_of_file(DIFF, "c.py") is not None


def test_a_line_that_looks_like_a_hunk_is_what_its_mark_says() -> None:
    text = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-@@ -5 +5 @@\n+@@ -6 +6 @@\n"
    found = diff_of_file(text, "a")
    assert found is not None
    assert [line.kind for line in found.lines] == ["hunk", "deleted", "added"]


def test_each_line_of_joined_hunks_is_about_its_file() -> None:
    assert [(span.first, span.last, span.path) for span in join_hunks(split_hunks(DIFF)).spans] == [
        (1, 7, "a.py"),
        (8, 10, "a.py"),
        (11, 13, "c.py"),
    ]


def test_a_quoted_name_is_read_as_git_writes_it() -> None:
    assert unquoted('"a/tab\\there \\"x\\" \\303\\266 \\\\"') == 'a/tab\there "x" ö \\'
    assert unquoted("plain name") == "plain name"
