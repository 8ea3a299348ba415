"""The example of the reader's docstring."""

from tests.fakes.ecmascript_world import EcmaScriptWorld

FILES = {
    "lib/index.ts": "export * from './shop'\n",
    "lib/shop.ts": "export class Cart {\n  items = new Items()\n}\nexport class Items { add() {} }\n",
    "app.ts": (
        "import { Cart as C } from './lib'\nexport function use(cart: C, other) {\n  const { items } = cart\n"
        "  items.add(other.add())\n}\n"
    ),
}


def test_the_worked_example_holds() -> None:
    world = EcmaScriptWorld(FILES)
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
