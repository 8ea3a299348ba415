"""The example of the reader's docstring, and sources that nobody writes by hand."""

import time

import pytest
from testing.references.reference_world import ReferenceWorld
from tree_sitter import Query, QueryCursor

from clean_room_agent import syntax
from clean_room_agent.languages.ecmascript import references
from clean_room_agent.languages.nesting import nest
from clean_room_agent.languages.registry import BY_GRAMMAR

FILES = {
    "lib/index.ts": "export * from './shop'\n",
    "lib/shop.ts": "export class Cart {\n  items = new Items()\n}\nexport class Items { add() {} }\n",
    "app.ts": (
        "import { Cart as C } from './lib'\nexport function use(cart: C, other) {\n  const { items } = cart\n"
        "  items.add(other.add())\n}\n"
    ),
}


def test_the_worked_example_holds() -> None:
    world = ReferenceWorld(FILES)
    names = world.names["app.ts"]
    assert names.uses == '[{},[],[[0,"C C:.items|.add("]]]'
    assert names.interface == '[{"use":[0,"f"]},{"C":[["./lib","Cart"]]},[],{"use":["","use"]}]'
    assert world.references("app.ts") == [
        "use -> lib/shop.ts:Cart name 0.95",
        "use -> lib/shop.ts:Items.add call 0.85",
    ]
    lookups = world.resolve("app.ts").lookups
    assert lookups["lib/index.ts"] == {"^Cart", "*"}
    assert lookups["lib/shop.ts"] == {"^Cart", "Cart", "Cart.items", "Cart.items.add", "Items", "Items.add"}


def test_the_order_of_captures_makes_no_difference() -> None:
    # tree-sitter gives them in an order that depends on where nodes stand in memory.
    source = (
        b"export class A {\n  one = 1\n  constructor(private b: B, public c: C) { this.d = b.d(); this.e = c }\n}\n"
        b"export interface K { f: A; g: B }\nfunction h(a, { i, j: [k] }) { if (a) return i; return k.l() }\n"
        b"exports.m = h\nexports.n = A\n"
    )
    root = syntax.parse(source, "typescript").root_node
    language = BY_GRAMMAR["typescript"]
    captures = QueryCursor(Query(syntax.language("typescript"), language.query("typescript"))).captures(root)
    nested = nest(language.read(root, captures, source, "typescript").definitions)
    in_order = {name: sorted(nodes, key=lambda node: node.start_byte) for name, nodes in captures.items()}
    backwards = {name: nodes[::-1] for name, nodes in in_order.items()}
    assert references.read_names(backwards, source, nested) == references.read_names(in_order, source, nested)


@pytest.mark.parametrize(
    "source",
    [
        "class A { m = " + "() => " * 3000 + "this.m() }",
        "function f(" + "[" * 3000 + "a" + "]" * 3000 + ") { a() }",
        "const x = () => " + "(" * 3000 + "this.m()" + ")" * 3000,
        "const x = () => f" + ".a()" * 3000,
        "type A = " + "(" * 2000 + "B" + ")" * 2000 + "\nfunction f(a: A) { a.b() }",
        "// .prototype.\nconst x = '" + "a" * 200_000 + "'\nfunction f() { x() }",
        "function f() { return a" + " < b" * 20_000 + " }",
        "".join(f"function f{n}() {{ f{n + 1}() }}\n" for n in range(2000)),
        "const a = () => { " + "".join(f"const v{n + 1} = v{n};" for n in range(2000)) + " v2000.m() }",
    ],
)
def test_deep_and_long_sources_are_read_in_little_time(source: str) -> None:
    began = time.process_time()
    world = ReferenceWorld({"a.ts": source})
    world.resolve("a.ts")
    assert time.process_time() - began < 10
