"""What test files import and the repository does not have yet."""

from collections.abc import Callable

import pytest
from tests.retrieval.world import World

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.retrieval.candidates import test_files as files_of_tests
from clean_room_agent.retrieval.failing_tests import (
    MAX_HELPERS,
    TestCode,
    find_declared_tests,
    find_named_tests,
    find_tests,
    missing_imports,
)
from clean_room_agent.retrieval.stage_source import FileText

Make = Callable[..., World]
CART = """import {cart, LIMIT} from '../src/cart';

const PRICE = 3;
const unused = 4;
function fill(n) {
  return cart(n * PRICE);
}

describe('cart', () => {
  let shop;
  beforeEach(() => {
    shop = fill(1);
  });
  afterEach(() => {
    shop = null;
  });
  it('adds', () => {
    expect(shop.add(1)).toBe(2);
  });
  it.each([1, 2])('adds %d more', (n) => {
    expect(fill(n)).toBe(n);
  });
  describe('when full', () => {
    it('adds', () => {
      expect(shop.add(LIMIT)).toBe(0);
    });
  });
});

test(`top > level ${PRICE}`, () => {});
"""


PYTHON = '''import unittest
import pytest
from shop import total

RATES = {"a": 1}

@pytest.fixture
def rate(currency):
    return RATES[currency]

def check(value):
    assert value == total(RATES)

def unused(): pass

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.slow
def test_total(n, rate, basket):
    """It adds."""
    check(n)

class TestMore(unittest.TestCase):
    LIMIT = 3
    def setUp(self):
        self.made = self._make()
    def _make(self):
        return 1
    def test_limit(self):
        assert self.made == self.LIMIT
'''


FILES = {
    "web/test/cart.test.ts": CART,
    "web/src/cart.ts": "export const LIMIT = 3;\nexport const cart = (n) => n;\n",
    "tests/unit/test_total.py": PYTHON,
    "tests/conftest.py": "import pytest\n@pytest.fixture\ndef currency(): return 'a'\n@pytest.fixture\ndef basket(other): return []\n"
    "@pytest.fixture\ndef rate(): return 9\n@pytest.fixture\ndef other(): return 1\n",
    "shop.py": "def total(rates): return 1\n",
}


NEW_NAMES = """\
import unittest
from shop import total, refund
from shop.coupons import Coupon as Card


def paid():
    return refund(3)


def test_total():
    assert total({}) == 0


def test_refund():
    assert paid() == 3


class CardTest(unittest.TestCase):
    def test_card(self):
        assert Card(5).worth == 5

    def test_nothing(self):
        assert total({}) == 0
"""


FILES_OF_MISSING_IMPORTS = {
    "src/shop/__init__.py": "from shop.cart import Cart\n\nLIMIT = 3\n__all__ = ['Cart', 'dynamic']\n",
    "src/shop/cart.py": "class Cart:\n    pass\n",
    "src/shop/web/views.py": "def show():\n    pass\n",
    "tools/make.py": "",
    "tests/helpers.py": "def build():\n    pass\n",
    "tests/unit/test_a.py": "",
}


@pytest.fixture
def world(make: Make) -> World:
    return make(FILES)


def one(world: World, name: str) -> TestCode:
    (found,) = find_named_tests([name], world.source())
    return found


@pytest.mark.parametrize(
    ("failing", "lines"),
    [
        ((), [20, 24]),
        (("tests/unit/test_total.py::test_total[1-2]",), [20, 24]),
        (("web/test/cart.test.ts > cart > adds 2 more",), [24]),
        (("cart > when full > adds", "web/test/cart.test.ts > cart > adds 1 more #2"), []),
        (("web/test/cart.test.ts",), []),
    ],
)
def test_tests_that_a_call_declares_are_found_by_names_unless_they_fail(
    world: World, failing: tuple[str, ...], lines: list[int]
) -> None:
    names = frozenset({"fill", "LIMIT"})
    found = list(find_declared_tests(names, ["web/test/cart.test.ts", "gone.ts"], failing, world.source()))
    assert [line for _, _, line in found] == lines
    assert ("web/test/cart.test.ts", "cart > adds ... more", 20) in found or 20 not in lines


@pytest.mark.parametrize(
    ("name", "lines", "first"),
    [
        ("web/test/cart.test.ts > cart > adds", (17, 19), "  it('adds', () => {\n"),
        ("web/test/cart.test.ts > cart > adds #2", (17, 19), "  it('adds', () => {\n"),
        ("web/test/cart.test.ts > cart > adds 2 more", (20, 22), "  it.each([1, 2])("),
        ("web/test/cart.test.ts > cart > when full > adds", (24, 26), "    it('adds', () => {\n"),
        ("web/test/cart.test.ts > top > level 3", (30, 30), "test(`top > level"),
        ("cart.test.ts > cart > adds", (17, 19), "  it('adds', () => {\n"),
    ],
)
def test_a_test_of_javascript_is_found_by_its_titles(
    world: World, name: str, lines: tuple[int, int], first: str
) -> None:
    found = one(world, name)
    assert (found.path, found.start_line, found.end_line) == ("web/test/cart.test.ts", *lines)
    assert found.text.startswith(first)


def test_a_test_of_javascript_comes_with_its_hooks_and_helpers(world: World) -> None:
    found = one(world, "web/test/cart.test.ts > cart > when full > adds")
    assert [(helper.name, helper.start_line, helper.end_line) for helper in found.helpers] == [
        ("PRICE", 3, 3),
        ("fill", 5, 7),
        ("shop", 10, 10),
        ("", 11, 13),
    ]
    assert found.helpers[-1].text.startswith("  beforeEach(")


@pytest.mark.parametrize("name", ["cart > when full > adds", "top > level 3"])
def test_a_name_without_a_file_is_looked_for_in_the_test_files_of_the_trace(world: World, name: str) -> None:
    frames = tuple(StackFrame(path=path, line=1) for path in ("web/src/cart.ts", "web/test/cart.test.ts"))
    query = TaskQuery(test_names=(name,), frames=frames)
    (found,) = find_tests(query, world.source())
    assert found.path == "web/test/cart.test.ts"
    assert find_tests(TaskQuery(test_names=(name,)), world.source()) == ()


def test_a_test_of_python_comes_with_decorators_fixtures_and_helpers(world: World) -> None:
    found = one(world, "tests/unit/test_total.py::test_total[1]")
    assert (found.name, found.start_line) == ("test_total", 16)
    assert found.text.startswith('@pytest.mark.parametrize("n", [1, 2])\n@pytest.mark.slow\ndef')
    assert [(helper.path, helper.name) for helper in found.helpers] == [
        ("tests/unit/test_total.py", "RATES"),
        ("tests/unit/test_total.py", "rate"),
        ("tests/unit/test_total.py", "check"),
        ("tests/conftest.py", "currency"),
        ("tests/conftest.py", "basket"),
        ("tests/conftest.py", "other"),
    ]
    assert found.helpers[1].text.startswith("@pytest.fixture\ndef rate")


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_total.py::TestMore::test_limit",
        "tests.unit.test_total.TestMore.test_limit",
        "test_total.TestMore.test_limit",
        "test_limit",
    ],
)
def test_a_method_is_found_by_each_runners_naming_with_what_its_class_sets_up(
    world: World, name: str
) -> None:
    found = one(world, name)
    assert (found.path, found.name) == ("tests/unit/test_total.py", "TestMore.test_limit")
    assert [helper.name for helper in found.helpers] == ["LIMIT", "setUp", "_make"]


@pytest.mark.parametrize(
    "name",
    ["web/test/cart.test.ts > cart > gone", "web/gone.test.ts > cart > adds", "web/test/cart.test.ts", "gone", "a > b",
     "gone.py::test_total", "web/test/cart.test.ts > cart"],
)  # fmt: skip
def test_what_no_code_declares_is_not_found(world: World, name: str) -> None:
    assert find_named_tests([name], world.source()) == ()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("web/test/cart.test.ts > cart > adds", "web/test/cart.test.ts"),
        ("/build/web/test/cart.test.ts > cart > adds", "web/test/cart.test.ts"),
        ("web/test/cart.test.ts", "web/test/cart.test.ts"),
        ("tests.unit.test_total.TestMore.test_limit", "tests/unit/test_total.py"),
        ("tests/unit/test_total.py::test_total[1 > 2]", "tests/unit/test_total.py"),
        ("cart > adds", ""),
    ],
)
def test_the_file_of_a_failing_test_is_known_by_each_runners_naming(
    world: World, name: str, file: str
) -> None:
    query = TaskQuery(test_names=(name,))
    assert files_of_tests(query, world.source()) == ((file,) if file else ())


def test_a_test_declared_in_a_shared_file_is_found_by_its_last_titles(make: Make) -> None:
    shared = "export const runCases = () => {\n  describe('cases', () => {\n    it('works', () => {});\n  });\n};\n"
    files = {
        "test/a.test.ts": "import {runCases} from './shared.test';\ndescribe('A', () => runCases());\n",
        "test/shared.test.ts": shared,
    }
    query = TaskQuery(
        test_names=("test/a.test.ts > A > cases > works",),
        frames=(StackFrame(path="test/shared.test.ts", line=3),),
    )
    found = find_tests(query, make(files).source())
    assert [(code.path, code.text) for code in found] == [
        ("test/shared.test.ts", "    it('works', () => {});\n")
    ]


@pytest.mark.parametrize(
    "name",
    ["tests/test_refund.py", "unittest.loader._FailedTest.tests.test_refund", "/w/tests/test_refund.py"],
)
def test_of_a_file_that_cannot_be_loaded_the_tests_of_what_is_missing_are_found(
    make: Make, name: str
) -> None:
    files = {"shop/__init__.py": "def total(rates):\n    return 0\n", "tests/test_refund.py": NEW_NAMES}
    found = find_named_tests([name], make(files).source())
    assert [code.name for code in found] == ["test_refund", "CardTest.test_card"]
    assert [helper.name for helper in found[0].helpers] == ["paid"]


def test_of_many_tests_in_a_file_that_cannot_be_loaded_the_first_are_found(make: Make) -> None:
    tests = "".join(f"def test_{number}():\n    refund({number})\n\n\n" for number in range(40))
    files = {"shop/__init__.py": "", "tests/test_refund.py": f"from shop import refund\n\n\n{tests}"}
    found = find_named_tests(["tests/test_refund.py"], make(files).source())
    assert [code.name for code in found] == [f"test_{number}" for number in range(12)]


def test_of_many_helpers_the_nearest_are_shown_and_what_they_use_of_others(make: Make) -> None:
    pages = "".join(f"def page_{n}():\n    return {n}\n\n\n" for n in range(20))
    routes = ", ".join(f"page_{n}" for n in range(20))
    fixture = "@pytest.fixture\ndef server():\n    return Served(app)\n"
    text = f"import pytest\n\n\ndef app():\n    return [{routes}]\n\n\n{pages}class Served:\n    pass\n\n\n{fixture}"
    files = {
        "tests/conftest.py": text,
        "tests/test_get.py": "def test_get(server):\n    assert server\n",
        "web/get.test.ts": many_constants(20),
    }
    world = make(files)
    assert [helper.name for helper in one(world, "tests/test_get.py::test_get").helpers] == [
        "app",
        "Served",
        "server",
    ]
    used = one(world, "web/get.test.ts > adds").helpers
    assert [helper.name for helper in used] == [f"LIMIT_{n}" for n in range(MAX_HELPERS)]


def many_constants(count: int) -> str:
    """A test that uses so many constants, declared in their order."""
    lines = "".join(f"const LIMIT_{n} = {n};\n" for n in range(count))
    return f"{lines}it('adds', () => {{ use({', '.join(f'LIMIT_{n}' for n in range(count))}); }});\n"


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
    assert missing_imports(text, make(FILES_OF_MISSING_IMPORTS).source()) == missing


def test_other_languages_are_not_read(make: Make) -> None:
    text = FileText(path="a.ts", lines=("import {b} from './b'",), content_hash="")
    assert missing_imports(text, make(FILES_OF_MISSING_IMPORTS).source()) == frozenset()
