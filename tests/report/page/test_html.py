"""Diffs as markup."""

from clean_room_agent.report.page.html import diff_files

DIFF = "diff --git a/x y.py b/x y.py\n--- a/x y.py\n+++ b/x y.py\n@@ -1 +1 @@\n-a < b\n+<script>\n"


def test_a_diff_is_coloured_file_by_file_and_its_code_is_text() -> None:
    (one, other) = diff_files(DIFF + DIFF.replace("x y", "z"))
    assert (one[0], other[0]) == ("x y.py", "z.py")
    assert '<span class="gd">-a &lt; b' in one[1]
    assert "<script>" not in one[1]
    assert diff_files("") == []
