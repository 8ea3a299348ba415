"""What test files import and the repository does not have yet."""

from collections.abc import Callable

import pytest
from tests.retrieval.world import World

from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.search.missing_imports import missing_imports

Make = Callable[..., World]

FILES = {
    "src/shop/__init__.py": "from shop.cart import Cart\n\nLIMIT = 3\n__all__ = ['Cart', 'dynamic']\n",
    "src/shop/cart.py": "class Cart:\n    pass\n",
    "src/shop/web/views.py": "def show():\n    pass\n",
    "tools/make.py": "",
    "tests/helpers.py": "def build():\n    pass\n",
    "tests/unit/test_a.py": "",
}


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("from shop import Cart, LIMIT, dynamic", set()),
        ("from shop import Cart, Coupon", {"Coupon"}),
        ("from shop import Coupon as Card", {"Card"}),
        ("from shop import (\n    Cart,\n    Coupon,\n)", {"Coupon"}),
        ("from shop import cart, web, stock", {"stock"}),
        ("from shop.stock import *", set()),
        ("from shop.stock import Shelf, Box", {"Shelf", "Box"}),
        ("from shop.cart import Cart, Box", {"Box"}),
        ("import shop.stock", {"shop"}),
        ("import shop.stock as stock, os", {"stock"}),
        ("import shop, shop.cart", set()),
        ("from ..helpers import build, pack", {"pack"}),
        ("from .. import helpers, others", {"others"}),
        ("import numpy as np\nfrom typing import Never", set()),
        ("try:\n    from shop import refund\nexcept ImportError:\n    refund = None", {"refund"}),
        ("def f():\n    from shop import later", {"later"}),
        ("from shop import (", set()),
    ],
)
def test_names_that_no_module_of_the_repository_has_are_missing(
    make: Make, source: str, missing: set[str]
) -> None:
    text = FileText(path="tests/unit/test_a.py", lines=tuple(source.split("\n")), content_hash="")
    assert missing_imports(text, make(FILES).source()) == missing


def test_other_languages_are_not_read(make: Make) -> None:
    text = FileText(path="a.ts", lines=("import {b} from './b'",), content_hash="")
    assert missing_imports(text, make(FILES).source()) == frozenset()
