"""The stop watch's places are where it looks for them."""

import importlib
from functools import reduce

import pytest
from benchmarks.overhead.parts import PARTS


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[0])
def test_each_part_that_is_timed_is_there(part: tuple[str, str, str]) -> None:
    _, module, function = part
    assert callable(reduce(getattr, function.split("."), importlib.import_module(module)))
