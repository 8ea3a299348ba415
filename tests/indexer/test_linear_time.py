"""Files of 120 KB that are made to take long: what `extract` needs grows as they do."""

from pathlib import Path

import pytest
from testing.growth import QUADRATIC, growth

from clean_room_agent.indexer.extract import ExtractedFile, extract
from clean_room_agent.languages.comments import classify

UNITS = (
    *(
        ("py", ".b"),
        ("py", ".a()"),
        ("py", "a.b"),
        ("ts", "a.b."),
        ("py", "not "),
        ("ts", "{a:"),
        ("py", "f("),
    ),
    *(
        ("ts", "// must not x\n"),
        ("py", "# must not x\n"),
        ("ts", "namespace a{"),
        ("ts", "<a>"),
        ("txt", "aB"),
    ),
)


@pytest.mark.parametrize(("suffix", "unit"), UNITS)
def test_a_file_is_read_in_time_linear_in_its_length(suffix: str, unit: str, tmp_path: Path) -> None:
    def read(text: str) -> None:
        (tmp_path / f"x.{suffix}").write_text(text)
        extract(tmp_path, f"x.{suffix}", max_bytes=1_000_000)

    assert growth(read, unit, small=33_000) < QUADRATIC


@pytest.mark.parametrize(
    "unit", ["must not x ", "do not a\n", "because", "TODO ", "GH-", "A-", "since ", "to "]
)
def test_a_comment_is_classified_in_time_linear_in_its_length(unit: str) -> None:
    assert growth(classify, unit) < QUADRATIC


def test_a_chain_deeper_than_any_code_does_not_hide_what_stands_before_it(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def f(): pass\na" + ".b" * 100_000)
    facts = extract(tmp_path, "x.py", max_bytes=1_000_000)
    assert isinstance(facts, ExtractedFile)
    assert [symbol.name for symbol in facts.symbols] == ["f"]
