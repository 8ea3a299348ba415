"""What names in JavaScript and TypeScript refer to, and how sure that is."""

import pytest
from testing.references.reference_world import ReferenceWorld

THINGS = """
import { Base } from './base'
export class Thing extends Base {
  kind: Friend = new Friend()
  private #secret = () => 1
  constructor(readonly owner: Friend, plain?: string) { super(); this.late = new Friend() }
  run(): Thing { return this.hello() }
  static make() { return new Thing() }
  get friend(): Friend | undefined { return undefined }
  open() { return this.#secret() }
}
export class Friend { greet() {} }
export interface Shape extends Base { inner: Friend; area(): Thing }
export type Alias = Shape | null
export type Both = Shape & { extra: Thing }
export enum Level { Low }
export function helper(): Promise<Thing> { return null }
export const table = { helper, own() { return this.other() }, other: () => 1, friend: new Friend(), renamed: Thing }
export const value = new Thing()
"""
FILES = {
    "lib/index.ts": (
        "export * from './things'\nexport { Thing as Renamed } from './things'\nexport * as all from './things'\n"
        "export { default as View, default } from './view'\nimport { value } from './things'\nexport { value as given }\n"
    ),
    "lib/base.ts": "export class Base { hello() { return this } onlyHere() {} }\n",
    "lib/things.ts": THINGS,
    "lib/view.tsx": "export default function Panel() { return <div/> }\n",
}


def references(source: str, *, caller: str = "use", path: str = "app.tsx") -> list[str]:
    """What the caller refers to in a file beside the library."""
    said = ReferenceWorld(FILES | {path: source}).references(path)
    return [
        one.removeprefix(f"{caller} -> ").replace("lib/", "")
        for one in said
        if one.startswith(f"{caller} -> ")
    ]


@pytest.mark.parametrize(
    ("imported", "used", "found"),
    [
        ("import { Thing } from './lib/things'", "new Thing()", "things.ts:Thing call 0.95"),
        ("import { Thing as T } from './lib'", "T", "things.ts:Thing name 0.95"),
        ("import { Renamed } from './lib'", "new Renamed()", "things.ts:Thing call 0.95"),
        ("import { given } from './lib'", "given", "things.ts:value name 0.95"),
        ("import type { Shape } from './lib'", "let x: Shape", "things.ts:Shape name 0.95"),
        ("import { type Shape } from './lib'", "let x: Array<Shape>", "things.ts:Shape name 0.95"),
        ("import View from './lib'", "View()", "view.tsx:Panel call 0.95"),
        ("import View from './lib/view'", "<View a={1}></View>", "view.tsx:Panel call 0.95"),
        ("import View, { helper } from './lib'", "helper()", "things.ts:helper call 0.95"),
        ("import * as lib from './lib'", "lib.helper()", "things.ts:helper call 0.95"),
        ("import * as lib from './lib'", "<lib.View/>", "view.tsx:Panel call 0.95"),
        ("import * as lib from './lib'", "let x: lib.Shape", "things.ts:Shape attribute 0.95"),
        ("import { all } from './lib'", "all.helper()", "things.ts:helper call 0.95"),
        ("import lib = require('./lib')", "lib.helper()", "things.ts:helper call 0.95"),
        ("import { Level } from './lib'", "Level.Low", "things.ts:Level name 0.95"),
        ("import {\n  helper, // why\n} from './lib'", "helper?.()", "things.ts:helper call 0.95"),
        ("import { helper } from './lib'", "({ helper })", "things.ts:helper name 0.95"),
    ],
)
def test_imported_names(imported: str, used: str, found: str) -> None:
    assert references(f"{imported}\nfunction use() {{ {used} }}\n") == [found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("const t = new Thing(); t.run()", "Thing.run call 0.85"),
        ("new Thing().run()", "Thing.run call 0.85"),
        ("Thing.make().run()", "Thing.run call 0.8"),
        ("(await helper()).run()", "Thing.run call 0.85"),
        ("const t = await helper(); t.run().run().onlyHere()", "base.ts:Base.onlyHere call 0.85"),
        ("value.friend?.greet()", "Friend.greet call 0.85"),
        ("value.owner!.greet()", "Friend.greet call 0.85"),
        ("value.late.greet()", "Friend.greet call 0.85"),
        ("const { kind } = value; kind.greet()", "Friend.greet call 0.85"),
        ("const { greet } = value.kind; greet()", "Friend.greet call 0.85"),
        ("const s = x as Shape; s.area().run()", "Thing.run call 0.85"),
        ("let s: Alias; s.area()", "Shape.area call 0.85"),
        ("let s: Both; s.area().run(); s.extra.run()", "Thing.run call 0.85"),
        ("const f = (s: Readonly<Shape>) => s.inner.greet()", "Friend.greet call 0.85"),
        ("table.own()", "table.own call 0.95"),
        ("table.helper()", "helper call 0.95"),
        ("table.friend.greet()", "Friend.greet call 0.85"),
        ("new table.renamed().run()", "Thing.run call 0.85"),
        ("let t; t = new Thing(); t.run()", "Thing.run call 0.85"),
        ("const t = a ? null : new Thing(); t.run()", "Thing.run call 0.85"),
        ("let t = new Thing(); t = other[0]; t.run()", "Thing.run call 0.7"),
        ("`${value.run()}`", "Thing.run call 0.85"),
        ("value\n  .run()", "Thing.run call 0.85"),
        ("items.map(t => t.onlyHere())", "base.ts:Base.onlyHere call 0.5"),
    ],
)
def test_types_that_are_inferred(body: str, found: str) -> None:
    names = "Thing, helper, value, table, type Shape, type Alias, type Both"
    source = f"import {{ {names} }} from './lib/things'\nasync function use(x) {{ {body} }}\n"
    said = ReferenceWorld(FILES | {"app.tsx": source}).references("app.tsx")
    assert found in [one.partition(" -> ")[2].removeprefix("lib/").removeprefix("things.ts:") for one in said]


CLASSES = """
import { Thing, type Shape } from './lib'
@mark
class Sub extends Thing implements Shape {
  field = new Thing()
  static all = 1
  #own() {}
  constructor() { super(null); this.go() }
  go() {
    this.field.run()
    this.#own()
    super.run()
    this.onlyHere()
    this.constructor.all
    const later = () => this.go()
    function plain() { this.go() }
    return this
  }
  static of() { return this.of().go() }
}
function mark() {}
"""


@pytest.mark.parametrize(
    ("caller", "found"),
    [
        ("Sub", ["things.ts:Shape inheritance 0.95", "things.ts:Thing inheritance 0.95", "mark decorator 1"]),
        ("Sub.field", ["things.ts:Thing call 0.95"]),
        ("Sub.constructor", ["Sub.go call 0.9", "things.ts:Thing.constructor call 0.9"]),
        (
            "Sub.go",
            [
                "Sub.#own call 0.9",
                "Sub.all attribute 0.9",
                "Sub.field attribute 0.9",
                "base.ts:Base.onlyHere call 0.9",
                "things.ts:Thing.run call 0.9",
            ],
        ),
        ("Sub.go.later", ["Sub.go call 0.9"]),
        ("Sub.go.plain", []),
        ("Sub.of", ["Sub.of call 1"]),
    ],
)
def test_this_super_and_bases(caller: str, found: list[str]) -> None:
    said = references(CLASSES, caller=caller)
    assert sorted(said) == sorted(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import { helper } from './lib'\nfunction use(helper) { helper() }", []),
        ("import { helper } from './lib'\nfunction use() { const helper = 1; return () => helper() }", []),
        ("import { helper } from './lib'\nfunction use() { return x => { const helper = x }; }", []),
        (
            "import { helper } from './lib'\nfunction use() { f(helper => helper()); helper() }",
            ["things.ts:helper call 0.95"],
        ),
        ("import { Thing } from './lib'\nfunction use<Thing>(x: Thing) {}", []),
        ("import { helper } from './lib'\nfunction use() { return { helper: 1 }.x }", []),
        ("import { helper } from './lib'\nfunction use() { label.helper; helper: for (;;) {} }", []),
        ("import { helper } from './lib'\nfunction use() { return <helper helper={1}>helper</helper> }", []),
        ("import { helper } from './lib'\nfunction use() { return 'helper' + /helper/ }", []),
        ("import { helper } from 'elsewhere'\nfunction use() { helper() }", []),
        ("function use() { window.onlyHere(); JSON.helper() }", []),
        ("function use() { return inner(); function inner() {} }", ["use.inner call 1"]),
        ("function use() { use() }", ["use call 1"]),
        (
            "import { helper } from './lib'\nconst use = (f: (helper: string) => void) => helper()",
            ["things.ts:helper call 0.95"],
        ),
        (
            "namespace use { export function a() {} }\nfunction other() { use.a() }",
            [],
        ),
    ],
)
def test_scopes_decide_what_a_name_means(source: str, found: list[str]) -> None:
    assert references(source) == found


def test_functions_of_one_name_in_several_scopes_are_told_apart() -> None:
    source = (
        "it(() => { const one = () => 1; function first() { one() } })\n"
        "it(() => { const one = () => 2; function second() { one() } })\n"
    )
    found = ReferenceWorld({"a.test.ts": source}).resolve("a.test.ts").references
    assert [(caller, callee) for caller, _, callee, _, _ in found] == [(1, 0), (3, 2)]


def test_a_method_of_an_object_in_a_callback_is_no_name_of_the_module() -> None:
    source = (
        "import { helper } from './lib'\nit(() => { mount({ helper() {} }) })\nfunction use() { helper() }\n"
    )
    assert references(source) == ["things.ts:helper call 0.95"]


def test_members_of_a_namespace_are_found() -> None:
    source = "namespace Deep { export function a() { b() }\n export function b() {} }\nfunction use() { Deep.a() }\n"
    said = ReferenceWorld({"a.ts": source}).references("a.ts")
    assert said == ["Deep.a -> Deep.b call 1", "use -> Deep name 1", "use -> Deep.a call 1"]


def test_a_star_gives_only_what_is_exported() -> None:
    files = {
        "index.ts": "export * from './a'\nexport * from './b'\n",
        "a.ts": "function helper() {}\nexport default 1\n",
        "b.ts": "export { helper } from './c'\n",
        "c.ts": "export const helper = () => 1\n",
        "app.ts": "import { helper } from '.'\nfunction use() { helper() }\n",
    }
    assert ReferenceWorld(files).references("app.ts") == ["use -> c.ts:helper call 0.95"]


def test_stars_in_a_circle_end() -> None:
    files = {
        "a.ts": "export * from './b'\n",
        "b.ts": "export * from './a'\nexport const last = () => 1\n",
        "app.ts": "import { last, none } from './a'\nfunction use() { last(); none() }\n",
    }
    assert ReferenceWorld(files).references("app.ts") == ["use -> b.ts:last call 0.95"]


COMMON = {
    "lib.js": (
        "var app = exports = module.exports = {}\napp.use = function use() { this.handle(); exports.late() }\n"
        "app.handle = function () {}\nexports.late = function () {}\n"
    ),
    "make.js": "module.exports = make\nmodule.exports.extra = function () {}\nfunction make() {}\n",
    "many.js": "function one() {}\nmodule.exports = { one, two: one, three() {} }\n",
    "router.js": (
        "function Router() { this.stack = new Stack() }\nRouter.prototype.go = function () { this.stack.push2() }\n"
        "class Stack { push2() {} }\nmodule.exports = Router\n"
    ),
    "index.js": "module.exports = require('./make')\n",
}


WHOLE_MODULES = ("lib.js:app name 0.95", "make.js:make name 0.95", "many.js:exports name 0.95")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("const lib = require('./lib')\nfunction use() { lib.use() }", ["lib.js:app.use call 0.95"]),
        ("const { use: go } = require('./lib')\nfunction use() { go() }", ["lib.js:app.use call 0.95"]),
        ("const make = require('.')\nfunction use() { make() }", ["make.js:make call 0.95"]),
        ("const make = require('./make')\nfunction use() { make.extra() }", ["make.js:extra call 0.95"]),
        ("const { one } = require('./many')\nfunction use() { one() }", ["many.js:one call 0.95"]),
        ("const many = require('./many')\nfunction use() { many.two() }", ["many.js:one call 0.95"]),
        (
            "const { three } = require('./many')\nfunction use() { three() }",
            ["many.js:exports.three call 0.95"],
        ),
        ("function use() { const { one } = require('./many'); one() }", ["many.js:one call 0.95"]),
        ("async function use() { const { one } = await import('./many'); one() }", ["many.js:one call 0.95"]),
        ("import make from './make'\nfunction use() { make() }", ["make.js:make call 0.95"]),
        (
            "const Router = require('./router')\nfunction use() { new Router().go() }",
            ["router.js:Router call 0.95", "router.js:Router.go call 0.85"],
        ),
        ("const path = require('path')\nfunction use() { path.join() }", ["path name 1"]),
    ],
)
def test_common_modules(source: str, found: list[str]) -> None:
    said = ReferenceWorld(COMMON | {"app.js": source}).references("app.js")
    assert [one.removeprefix("use -> ") for one in said if not one.endswith(WHOLE_MODULES)] == found


def test_what_functions_are_set_to_is_their_this() -> None:
    world = ReferenceWorld(COMMON)
    assert "app.use -> app.handle call 1" in world.references("lib.js")
    assert "Router.go -> Stack.push2 call 0.85" in world.references("router.js")


def test_names_that_are_not_ascii_are_found() -> None:
    source = "// é\nexport class Größe { maß() { return this.maß2() } maß2() {} }\n"
    said = ReferenceWorld({"a.ts": source}).references("a.ts")
    assert said == ["Größe.maß -> Größe.maß2 call 0.9"]
