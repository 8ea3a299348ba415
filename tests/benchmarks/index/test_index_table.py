"""The table of the index benchmark: figures beyond what they may be are bold."""

from benchmarks.index.copies import Edit, Edits
from benchmarks.index.index_table import FLOOR, KINDS, PULL_FLOOR, Contents, Figures, render
from testing.processes import Peak, Spent


def spent(*seconds: float) -> list[Spent]:
    return [Spent(wall=one, processor=2 * one, said="") for one in seconds]


def figures(name: str, *, cold: float, pull: float, unchanged: float) -> Figures:
    edit = Edit(path="a.py", before=b"", after=b"x")
    return Figures(
        name=name,
        spent={
            FLOOR: spent(1, 1, 9),
            "cold": spent(cold),
            "nothing changed": spent(unchanged),
            PULL_FLOOR: spent(0.5),
            "commits pulled": spent(pull),
        },
        peaks={"cold": Peak(total=300, files=10)},
        files=3,
        source_mb=1,
        commits=100,
        changed=(2, 0.5),
        edits=Edits(body=edit, added=edit, hub=edit, renamed=edit, importers=1, renamed_name="f", mentions=2),
        contents=Contents(database_mb=1, rows=dict.fromkeys(KINDS, 1)),
        tags=0,
    )


def row_of(text: str, name: str) -> list[str]:
    return next(
        [cell.strip() for cell in line.strip("|").split("|")][1:]
        for line in text.splitlines()
        if line.startswith(f"| {name} ")
    )


def test_each_repository_is_compared_with_its_own_floor_and_target() -> None:
    said = render(
        [
            figures("sympy", cold=4.0, pull=1.6, unchanged=0.09),
            figures("sqlalchemy", cold=5.1, pull=2.2, unchanged=0.12),
            figures("other", cold=9.0, pull=9.0, unchanged=0.09),
        ],
        rounds=1,
        versions="",
    )
    assert row_of(said, "cold") == [
        "4.00 s (4.00), 4.0x", "**5.10 s (5.10), 5.1x**", "9.00 s (9.00), 9.0x", "<= 4x / 5x / -"
    ]  # fmt: skip
    assert row_of(said, "commits pulled") == [
        "**1.60 s (1.60), 3.2x**", "2.20 s (2.20), 4.4x", "9.00 s (9.00), 18.0x", "<= 3x / 4.5x / -"
    ]  # fmt: skip
    assert row_of(said, "nothing changed") == ["90 ms (90)", "**120 ms (120)**", "90 ms (90)", "<= 100 ms"]
