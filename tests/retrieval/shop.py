"""A small shop as a repository, and answers of a model that judge its files and code."""

import json
from collections.abc import Callable

from tests.retrieval.world import numbers_of

from clean_room_agent.llm.transport import ChatRequest

CART = '''\
"""The shopping cart."""

import decimal

from shop import money


class Cart:
    """Holds what a customer wants."""

    def __init__(self):
        self.items = []

    def add_item(self, item, count):
        """Put an item in."""
        self.items.append((item, count))

    def total_price(self):
        """What all items cost."""
        return sum(item.price for item, count in self.items)
'''
MONEY = '''\
"""Amounts."""


def round_amount(value):
    """Round to cents."""
    return round(value, 2)


def format_amount(value):
    """With two digits."""
    return f"{value:.2f}"
'''
TEST_CART = """\
from shop.cart import Cart


def test_total_price_counts():
    cart = Cart()
    assert cart.total_price() == 0


def test_unrelated():
    assert True
"""
SHOP = {
    "shop/cart.py": CART,
    "shop/money.py": MONEY,
    "shop/users.py": "def greet(name):\n    return name\n",
    "tests/test_cart.py": TEST_CART,
    "README.md": "# Shop\n\nA cart with a total price.\n",
}
IMPORTS = {"shop/cart.py": ("shop/money.py",), "tests/test_cart.py": ("shop/cart.py",)}


def large_module(functions: int, lines: int = 12) -> str:
    parts = ["import os", "import sys", "", ""]
    for number in range(functions):
        parts.append(f"def task_{number}(value):")
        parts.append(f'    """Do number {number}."""')
        parts.extend(
            f"    value = value + {number} * {line}  # step {line} of {number}" for line in range(lines)
        )
        parts.extend(["    return value", "", ""])
    return "\n".join(parts)


def choose(label: str, *words: str) -> Callable[[ChatRequest], str]:
    """An answer to `precision_batch`: what holds one of the words gets the label."""

    def answer(request: ChatRequest) -> str:
        return json.dumps({"change": [], label: numbers_of(request, *words)})

    return answer


def relevant(*words: str) -> Callable[[ChatRequest], str]:
    return lambda request: json.dumps({"relevant": numbers_of(request, *words)})
