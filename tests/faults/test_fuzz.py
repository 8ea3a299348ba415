"""Short runs of the fuzzers that `python -m benchmarks.faults fuzz fuzz_index` runs for long."""

from pathlib import Path

import pytest
from testing.faults import fuzz, fuzz_index
from testing.faults.fuzz_targets import Broken, Target

SHORT = 400
FEW = 300


def test_no_fuzzed_input_raises_breaks_a_promise_or_takes_long(tmp_path: Path) -> None:
    findings = list(fuzz.fuzz(range(SHORT), tmp_path))
    fuzz.report(findings)
    assert findings == []


def test_no_docstring_comment_or_head_of_a_file_ends_its_reader(tmp_path: Path) -> None:
    findings = list(fuzz.fuzz(range(FEW), tmp_path, fuzz_index.make_targets))
    fuzz.report(findings)
    assert findings == []


def test_an_input_is_the_same_each_time_it_is_made(tmp_path: Path) -> None:
    services = fuzz.Services(tmp_path)
    for number in range(50):
        first, second = services.case(number), services.case(number)
        assert (first.target, first.text) == (second.target, second.text)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [(ValueError("x"), "exception"), (Broken("x"), "promise"), (fuzz.StuckError(), "slow")],
)
def test_what_a_reader_raises_is_found(raised: BaseException, kind: str, tmp_path: Path) -> None:
    def read(_text: str, _rng: object) -> None:
        raise raised

    services = fuzz.Services(tmp_path)
    services.targets = (Target(name="x", weight=1, seeds=("a",), words=("b",), read=read),)
    finding = services.try_one(1)
    assert finding is not None
    assert (finding.target, finding.kind) == ("x", kind)
