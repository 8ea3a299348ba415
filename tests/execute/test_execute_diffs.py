from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.execute.diff_pieces import join_hunks, split_hunks

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
