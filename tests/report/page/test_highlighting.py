"""Diffs by file, line and colour."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from clean_room_agent.report.page.highlighting import LEXERS, LONGEST_LINE, coloured_lines
from clean_room_agent.unified_diff import DiffLine, FileDiff, file_diffs

DIFF = """\
diff --git a/tally/money.py b/tally/money.py
index 1..2 100644
--- a/tally/money.py
+++ b/tally/money.py
@@ -3,3 +3,4 @@ def f():
 x = 1
-    return "<b>"
+    y = 2
+    return "<i>"
 # end
\\ No newline at end of file
diff --git a/old name.txt b/old name.txt
deleted file mode 100644
index 1..0
--- a/old name.txt
+++ /dev/null
@@ -1 +0,0 @@
---- a/x
diff --git a/new.bin b/new.bin
new file mode 100644
index 0..1
Binary files /dev/null and b/new.bin differ
"""


def test_a_diff_is_read_by_file_with_the_numbers_of_its_lines() -> None:
    changed, gone, binary = file_diffs(DIFF)
    assert (changed.path, changed.status, changed.added, changed.deleted) == (
        "tally/money.py",
        "changed",
        2,
        1,
    )
    assert [(line.kind, line.old, line.new) for line in changed.lines] == [
        ("hunk", 3, 3),
        ("same", 3, 3),
        ("deleted", 4, None),
        ("added", None, 4),
        ("added", None, 5),
        ("same", 5, 6),
        ("note", None, None),
    ]
    assert (gone.path, gone.status, gone.lines[1].text) == ("old name.txt", "deleted", "--- a/x")
    assert (binary.path, binary.status, binary.lines[0].kind) == ("new.bin", "created", "note")


def test_nothing_is_read_from_nothing() -> None:
    assert file_diffs("") == ()
    assert file_diffs("no diff\nat all") == ()


def test_lines_are_coloured_as_their_version_reads_and_escaped() -> None:
    lines = coloured_lines(file_diffs(DIFF)[0])
    assert '<span class="ts">&lt;b&gt;</span>' in lines[2]
    assert '<span class="tk">return</span>' in lines[4]
    assert lines[5].startswith('<span class="tc"># end')


@given(st.text(), st.sampled_from(sorted(LEXERS)))
def test_whatever_a_file_holds_its_text_stays(text: str, suffix: str) -> None:
    text = text.replace("\n", "").replace("\r", "").removeprefix("\ufeff")
    change = FileDiff(
        path=f"a.{suffix}",
        status="changed",
        lines=(DiffLine(kind="added", text=text), DiffLine(kind="deleted", text="x")),
    )
    lines = coloured_lines(change)
    assert unescape(re.sub(r"</?span[^>]*>", "", lines[0])) == text
    assert len(lines) == 2


def test_a_line_of_any_length_is_shown_without_colours() -> None:
    text = "(" * (LONGEST_LINE + 1)
    change = FileDiff(path="a.py", status="changed", lines=(DiffLine(kind="added", text=text),))
    assert coloured_lines(change) == (Markup(text),)
