from benchmarks.solve_real.__main__ import HEAD, kept_lines, text_of

ROWS = (
    "| click-1 | 1 | 42 | 8k | **no** | yes |  | 0 | 5.0 | 1.5 |",
    "| click-1 | 1 | 42 | 32k | yes | **no** | 15 | 13,185 | 27.1 | 2.4 |",
)
LOSS = "- click-1 at 8k: exit 3: error: too large"


def test_a_page_that_was_written_is_read_back_as_it_was() -> None:
    page = "\n".join([HEAD, *ROWS, "", LOSS, ""])
    lines = kept_lines(page)
    assert list(lines) == [("click-1", 8), ("click-1", 32)]
    again = text_of(list(lines.values()))
    assert all(row in again for row in (*ROWS, LOSS))
    assert "- window 8k: 0 of 1 solved, the user's tree identical in 1 of 1" in again
    assert "- window 32k: 1 of 1 solved, the user's tree identical in 0 of 1" in again
    assert kept_lines(again) == lines
