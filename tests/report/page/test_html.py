"""Diffs as markup."""

from tests.report.conftest import Solved

from clean_room_agent.report.page.html import diff_files, run_page


def test_every_text_of_the_page_was_made_safe(solved: Solved) -> None:
    page = run_page(solved.conn, solved.trace, "cents", lambda text: text.replace("cents", "[hidden]"))
    assert list(page.texts) == [call.id for call in solved.trace.calls] == [use.call.id for use in page.uses]
    assert [row.kind for row in page.tests] == ["baseline", "final"]
    assert page.result == "[hidden]"
    assert not any("cents" in text.call.request.prompt for text in page.texts.values())


DIFF = "diff --git a/x y.py b/x y.py\n--- a/x y.py\n+++ b/x y.py\n@@ -1 +1 @@\n-a < b\n+<script>\n"


def test_a_diff_is_coloured_file_by_file_and_its_code_is_text() -> None:
    (one, other) = diff_files(DIFF + DIFF.replace("x y", "z"))
    assert (one[0], other[0]) == ("x y.py", "z.py")
    assert '<span class="gd">-a &lt; b' in one[1]
    assert "<script>" not in one[1]
    assert diff_files("") == []
