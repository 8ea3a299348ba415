import time

import pytest

from clean_room_agent.languages.outline import Span
from clean_room_agent.syntax import outline_of

SCRIPT = b"""import {it} from 'vitest';
const LONG = 'x';
export function helper(a) { const inner = 2; return LONG + a + inner; }
describe('cart', () => {
  let shop, {b: other} = {};
  const make = () => { const hidden = 1; return helper(hidden); };
  beforeEach(() => { shop = make(); });
  it.each([1, 2])('adds %d', (n) => { expect(shop.add(n)).toBe(n); });
  it.each`a | b
  ${1} | ${2}`('has $a ${other} it\\'s', () => {});
  describe.skip(Foo, function () {
    test('deep', async (t) => {
      await t.test('sub', () => {});
    });
    itAsync('x' + LONG + 'y', done);
  });
});
iterate('no test', () => {});
test.todo('no body');
"""
PYTHON = b"""import pytest
X = [1, 2]
a, b = 1, 2
@pytest.fixture(autouse=True)
def auto(): pass
@pytest.fixture(name="shop")
def _shop(tmp_path): return X
class TestA:
    N = 3
    def setup_method(self): self.z = 1
    @pytest.mark.parametrize("x", X)
    @pytest.mark.usefixtures("shop")
    def test_a(self, other):
        inner = helper(key=1).b
        assert inner == self._c()
    def _c(self): pass
"""


def test_tests_suites_and_hooks_of_javascript_are_calls_with_titles_and_nesting() -> None:
    outline = outline_of(SCRIPT, "a.test.ts")
    assert outline is not None
    assert [(call.kind, call.titles, call.span.start_line, call.span.end_line) for call in outline.calls] == [
        ("suite", (("cart",),), 4, 17),
        ("hook", (("cart",),), 7, 7),
        ("test", (("cart",), ("adds ", "")), 8, 8),
        ("test", (("cart",), ("has ", " ", " it's")), 9, 10),
        ("suite", (("cart",), ("", "")), 11, 16),
        ("test", (("cart",), ("", ""), ("deep",)), 12, 14),
        ("test", (("cart",), ("", ""), ("deep",), ("sub",)), 13, 13),
        ("test", (("cart",), ("", ""), ("x", "y")), 15, 15),
    ]
    assert outline.calls[1].scope == Span(start_line=4, end_line=17)


def test_declarations_of_a_file_and_of_its_suites_are_known() -> None:
    outline = outline_of(SCRIPT, "a.test.ts")
    assert outline is not None
    assert [(entry.name, entry.span.start_line, entry.scope.start_line) for entry in outline.declared] == [
        ("LONG", 2, 1),
        ("helper", 3, 1),
        ("shop", 5, 4),
        ("other", 5, 4),
        ("make", 6, 4),
    ]
    assert outline.names_in(Span(start_line=8, end_line=8)) == {"it", "n", "expect", "shop"}


def test_the_cases_of_a_loop_are_declared_at_its_head() -> None:
    source = b"""const x = require('x');
for (const one of cases) {
  it(one, () => {});
}
cases.forEach(({a: two}: Case, three) => {
  it(two, () => {});
});
run(cases, (four) => {});
"""
    outline = outline_of(source, "a.test.ts")
    assert outline is not None
    assert [(entry.name, entry.span, entry.scope) for entry in outline.declared] == [
        ("one", Span(start_line=2, end_line=2), Span(start_line=2, end_line=4)),
        ("two", Span(start_line=5, end_line=5), Span(start_line=5, end_line=7)),
        ("three", Span(start_line=5, end_line=5), Span(start_line=5, end_line=7)),
    ]
    assert [call.titles for call in outline.calls] == [(("", ""),), (("", ""),)]


def test_fixtures_members_and_names_of_python_are_known() -> None:
    outline = outline_of(PYTHON, "test_a.py")
    assert outline is not None
    assert outline.calls == ()
    assert [(entry.name, entry.span.start_line, entry.fixture, entry.automatic) for entry in outline.declared] == [
        ("X", 2, False, False),
        ("a", 3, False, False),
        ("b", 3, False, False),
        ("auto", 4, True, True),
        ("shop", 6, True, False),
        ("TestA", 8, False, False),
        ("N", 9, False, False),
        ("setup_method", 10, False, True),
        ("test_a", 11, False, False),
        ("_c", 16, False, False),
    ]  # fmt: skip
    used = outline.names_in(Span(start_line=11, end_line=15))
    assert {"X", "shop", "other", "helper", "_c"} <= used
    assert used.isdisjoint({"key", "b", "parametrize"})


def test_an_attribute_is_a_used_name_only_of_self_and_cls() -> None:
    outline = outline_of(
        b"def test_a(self):\n    self.own + cls . other + one.self.not_own + myself.no\n    'self.text'\n    f(named=given)\n",
        "test_a.py",
    )
    assert outline is not None
    used = outline.names_in(Span(start_line=2, end_line=4))
    assert used == {"self", "own", "cls", "other", "one", "myself", "f", "given"}


def test_what_cannot_be_parsed_has_no_outline() -> None:
    assert outline_of(b"x", "a.rs") is None
    assert outline_of(b"it('a', () => {", "a.test.js") is not None


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.test.ts", b"it('a', () => { f(x) });\n" * 3_000),
        ("a.test.ts", b"describe('a', () => {" * 300 + b"});" * 300),
        ("a.test.ts", b"const a = [" + b"x, " * 20_000 + b"];\n"),
        ("test_a.py", b"usefixtures('a')\nself.x\n" * 3_000),
    ],
)
def test_an_outline_takes_linear_time(path: str, source: bytes) -> None:
    started = time.monotonic()
    outline_of(source, path)
    assert time.monotonic() - started < 15
