import pytest

from clean_room_agent.orchestrator.failures import likeness, normalised


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NameError: name 'share' is not defined", "NameError: name <value> is not defined"),
        ('expected "a \\"b\\"" here', "expected <value> here"),
        ("it doesn't fit, and can't", "it doesn't fit, and can't"),
        ('File "till/money.py", line 7, in split', "File <value>, <line>, in split"),
        ("till/money.py:12:3: error", "<path><line>: error"),
        ("<Share object at 0x7f3a12> differs", "<Share object at <address>> differs"),
        ("began 2026-01-02T10:11:12.5 and took 3.25 s", "began <time> and took <time>"),
        ("AssertionError: 99 != 100", "AssertionError: 99 != 100"),
        ("  many\n\twords ", "many words"),
    ],
)
def test_what_differs_from_run_to_run_becomes_a_placeholder(message: str, expected: str) -> None:
    assert normalised(message) == expected


def test_messages_are_alike_whatever_they_quote() -> None:
    first = "ImportError: cannot import name 'split' from 'till.money' (/tmp/one/till/money.py)"
    other = "ImportError: cannot import name 'negate' from 'till.receipt' (/tmp/two/till/receipt.py)"
    assert likeness(first, other) == 1.0
    assert likeness(first, "AssertionError: Lists differ: [7, 1, 1] != [3, 3, 3]") < 0.5
    assert likeness("AssertionError: 99 != 100 in total", "AssertionError: 98 != 100 in total") > 0.9
