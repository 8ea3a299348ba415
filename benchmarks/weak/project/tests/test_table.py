from timesheet.table import render_table


def test_columns_are_as_wide_as_the_longest_name() -> None:
    assert render_table({"garden": 5400, "hi": 60}) == "garden  1h30m\nhi      1m\ntotal   1h31m"


def test_a_table_of_nothing_has_its_total() -> None:
    assert render_table({}) == "total  0m"
