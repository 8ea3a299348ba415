"""What names in Python refer to, and how sure that is."""

import json

import pytest
from testing.references.reference_world import ReferenceWorld

LIBRARY = """
from .base import Base

class Thing(Base):
    kind: int = 1
    def run(self) -> "Thing": return self.hello()
    @classmethod
    def make(cls): return cls()
    @property
    def friend(self) -> "Friend": ...

class Friend:
    def __init__(self, thing: Thing = None):
        self.thing = thing
    def greet(self): ...

def helper() -> Thing: ...
value = Thing()
"""
BASE = "class Base:\n    def hello(self): return self\n    def only_here(self): ...\n"
FILES = {
    "pkg/__init__.py": "from .things import Thing as Renamed, helper\nfrom .shown import *\n",
    "pkg/base.py": BASE,
    "pkg/things.py": LIBRARY,
    "pkg/shown.py": "__all__ = ['shown']\ndef shown(): ...\ndef hidden(): ...\n",
}


EXAMPLE = {
    "shop/items.py": "class Item:\n    def price(self): ...\n",
    "shop/cart.py": "from .items import Item\n\nclass Cart:\n    def first(self) -> Item: ...\n",
    "app.py": "from shop.cart import Cart\n\ndef total(cart: Cart):\n    return cart.first().price()\n",
}


def test_the_worked_example_holds() -> None:
    world = ReferenceWorld(EXAMPLE)
    assert world.names["shop/items.py"].interface == '[{"Item":[0,"c"],"Item.price":[1,"f"]},{},[],null]'
    assert world.names["shop/cart.py"].interface == (
        '[{"Cart":[0,"c"],"Cart.first":[1,"f","Item:"]},{"Item":[[".items","Item"]]},[],null]'
    )
    _, _, ((caller, tokens),) = json.loads(world.names["app.py"].uses)
    assert (caller, set(tokens.split())) == (
        0,
        {"Cart", "Cart:|.first(", "Cart:.first()|.price("},
    )
    assert world.references("app.py") == [
        "total -> shop/cart.py:Cart name 0.95",
        "total -> shop/cart.py:Cart.first call 0.85",
        "total -> shop/items.py:Item.price call 0.85",
    ]
    assert world.resolve("app.py").lookups == {
        "shop/cart.py": {"Cart", "Cart.first", "Item"},
        "shop/items.py": {"Item", "Item.price"},
        "": {"?items"},
    }


def test_two_of_one_name_are_no_reference_of_an_unknown_value() -> None:
    alone = {"app.py": "def total(cart):\n    return cart.price()\n", "item.py": EXAMPLE["shop/items.py"]}
    assert ReferenceWorld(alone).references("app.py") == ["total -> item.py:Item.price call 0.5"]
    assert ReferenceWorld(alone | {"other.py": "def price(): ...\n"}).references("app.py") == []


def references(source: str, *, caller: str = "use") -> list[str]:
    """What the caller refers to in a file beside the package."""
    said = ReferenceWorld(FILES | {"app.py": source}).references("app.py")
    return [
        one.removeprefix(f"{caller} -> ").replace("pkg/", "")
        for one in said
        if one.startswith(f"{caller} -> ")
    ]


@pytest.mark.parametrize(
    ("imported", "used", "found"),
    [
        ("from pkg.things import Thing", "Thing()", "things.py:Thing call 0.95"),
        ("from pkg import Renamed", "Renamed", "things.py:Thing name 0.95"),
        ("from pkg import Renamed as R", "R()", "things.py:Thing call 0.95"),
        ("from pkg import shown", "shown()", "shown.py:shown call 0.95"),
        ("from pkg import *", "shown()", "shown.py:shown call 0.95"),
        ("from pkg import *", "Renamed()", "things.py:Thing call 0.95"),
        ("import pkg", "pkg.helper()", "things.py:helper call 0.95"),
        ("import pkg.things", "pkg.things.helper()", "things.py:helper call 0.95"),
        ("import pkg.things as t", "t.helper", "things.py:helper attribute 0.95"),
        ("from pkg import things", "things.value", "things.py:value attribute 0.95"),
        ("if TYPE_CHECKING:\n    from pkg import helper", "helper()", "things.py:helper call 0.95"),
        (
            "try:\n    from nowhere import x\nexcept ImportError:\n    from pkg import shown as x",
            "x()",
            "shown.py:shown call 0.95",
        ),
    ],
)
def test_imported_names(imported: str, used: str, found: str) -> None:
    assert references(f"{imported}\ndef use():\n    {used}\n") == [found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("t = Thing()\n    t.run()", "Thing.run call 0.85"),
        ("Thing().run()", "Thing.run call 0.85"),
        ("Thing.make().run()", "Thing.run call 0.8"),
        ("helper().run()", "Thing.run call 0.85"),
        ("helper().run().run().only_here()", "base.py:Base.only_here call 0.85"),
        ("helper(1, (2)).friend.greet()", "Friend.greet call 0.85"),
        ("things.value.hello()", "base.py:Base.hello call 0.85"),
        ("Thing.hello", "base.py:Base.hello attribute 0.9"),
        ("Friend().thing.kind", "Thing.kind attribute 0.85"),
        ("t: Thing = helper()\n    t.kind = t.kind + 1", "Thing.kind attribute 0.85"),
        ("with Thing() as t:\n        t.greet()", "Friend.greet call 0.5"),
        ("if (t := Thing()):\n        t.run()", "Thing.run call 0.85"),
        ("t = None\n    if 1:\n        t = Thing()\n    t.run()", "Thing.run call 0.85"),
        ("t = Thing()\n    t = [1]\n    t.run()", "Thing.run call 0.7"),
        ("t = Thing().hello().run()", "Thing.run call 0.85"),
        ("print(f'{helper().kind}')", "Thing.kind attribute 0.85"),
    ],
)
def test_types_that_are_inferred(body: str, found: str) -> None:
    source = f"from pkg.things import Friend, Thing, helper\nfrom pkg import things\ndef use():\n    {body}\n"
    assert found in [one.removeprefix("things.py:") for one in references(source)]


@pytest.mark.parametrize(
    "annotation", ["Thing", "'Thing'", "Optional[Thing]", "Thing | None", "'Thing | None'"]
)
def test_annotated_parameters(annotation: str) -> None:
    found = references(f"from pkg.things import Thing\ndef use(t: {annotation} = None):\n    t.run()\n")
    assert found == ["things.py:Thing name 0.95", "things.py:Thing.run call 0.85"]


CLASSES = """
from pkg.things import Thing, Friend

class Sub(Thing):
    field: Friend = Friend()
    other = field
    def __init__(self):
        super().__init__()
        super(Sub, self).hello()
        self.made = Friend()
    def go(self):
        self.made.greet()
        self.field.greet()
        self.run()
        self.go()
        def inner():
            self.go()
        return inner()
    @classmethod
    def build(cls):
        return cls().go()
    @staticmethod
    def still(self):
        self.build()
"""


@pytest.mark.parametrize(
    ("caller", "found"),
    [
        ("Sub", ["things.py:Thing inheritance 0.95"]),
        ("Sub.field", ["things.py:Friend call 0.95", "things.py:Friend name 0.95"]),
        ("Sub.other", ["Sub.field name 1"]),
        ("Sub.__init__", ["Sub name 1", "base.py:Base.hello call 0.9", "things.py:Friend call 0.95"]),
        (
            "Sub.go",
            [
                "Sub.field attribute 0.9",
                "Sub.go call 0.9",
                "Sub.go.inner call 1",
                "things.py:Friend.greet call 0.85",
                "things.py:Thing.run call 0.9",
            ],
        ),
        ("Sub.go.inner", ["Sub.go call 0.9"]),
        ("Sub.build", ["Sub.go call 0.85"]),
        ("Sub.still", ["Sub.build call 0.5"]),
    ],
)
def test_classes(caller: str, found: list[str]) -> None:
    assert references(CLASSES, caller=caller) == found


def test_super_with_a_dotted_class_over_several_lines() -> None:
    source = """
from pkg.things import Thing

class Outer:
    class Sub(Thing):
        def go(self):
            super(
                Outer.Sub, self
            ).run()
"""
    assert references(source, caller="Outer.Sub.go") == [
        "Outer name 1", "Outer.Sub attribute 1", "things.py:Thing.run call 0.9"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "name = 1\n    name()",
        "for name in x:\n        name()",
        "for a, (name, *b) in x:\n        name()",
        "[name() for name in x]",
        "with x as name:\n        name()",
        "with x as (a, name):\n        name()",
        "try:\n        pass\n    except E as name:\n        name()",
        "(name := 1) and name()",
        "lambda name=1: name()",
        "a, name = x\n    name()",
        "[a, name] = x\n    name()",
        "name += 1",
        "import name\n    name()",
        "from nowhere import other as name\n    name()",
        "match x:\n        case [name]:\n            name()",
        "match x:\n        case Some(at=name):\n            name()",
        "match x:\n        case {'a': 1, **name}:\n            name()",
        "def inner(name):\n        name()",
        "x(name=1)",
        "'name()'  # name()",
        "x.name",
        "x[0].name = 1",
        "x().name = x.name = 1",
    ],
)
def test_a_local_name_is_no_reference(body: str) -> None:
    assert not references(f"name = 1\ndef use(x):\n    {body}\n")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("global name\n    name = name()", "call"),
        ("x[name]", "name"),
        ("x(name=name)", "name"),
        ("x(\n        name=1,\n        other=name)", "name"),
        ("print(f'{name!r:>10}')", "name"),
        ("return name if x else x", "name"),
        ("def inner(): ...\n    name", "name"),
        ("x.name = name", "name"),
    ],
)
def test_a_module_name_is_one(body: str, kind: str) -> None:
    assert references(f"name = 1\ndef use(x):\n    {body}\n") == [f"name {kind} 1"]


@pytest.mark.parametrize("signature", ["(self) -> Self", "(self: T) -> T", "(self)"])
def test_a_method_that_gives_its_object_back(signature: str) -> None:
    source = (
        f"class A:\n    def __enter__{signature}: return self\n"
        "class B(A):\n    def run(self): ...\ndef use():\n    with B() as b:\n        b.run()\n"
    )
    assert [one.partition(" call")[0] for one in references(source)] == ["B", "B.run"]


def test_decorators_and_signatures_belong_to_the_function() -> None:
    source = "def deco(x): ...\nlimit = 1\nclass A: ...\n@deco(limit)\ndef use(a: A = limit) -> 'A': ...\n"
    assert references(source) == ["A name 1", "deco decorator 1", "limit name 1"]


def test_a_method_sees_no_name_of_its_class_but_its_decorator_does() -> None:
    source = "class C:\n    def deco(f): ...\n    @deco\n    def use(self):\n        deco()\n"
    assert references(source, caller="C.use") == ["C.deco decorator 1"]


def test_never_a_guess_among_several() -> None:
    source = "class A:\n    def same(self): ...\nclass B:\n    def same(self): ...\ndef use(x):\n    x.same()\n    x.only_here()\n"
    assert references(source) == ["base.py:Base.only_here call 0.5"]


def test_a_name_of_a_built_in_type_is_no_guess() -> None:
    assert not references("class A:\n    def append(self): ...\ndef use(x):\n    x.append(1)\n")


def test_what_comes_from_outside_is_not_guessed_at() -> None:
    assert not references("import os\nfrom sys import path\ndef use():\n    os.greet()\n    path.greet()\n")


def test_the_last_definition_that_is_no_overload_is_meant() -> None:
    source = "@overload\ndef f(a: int): ...\ndef f(a): ...\ndef use():\n    f()\n"
    world = ReferenceWorld({"app.py": source})
    assert world.resolve("app.py").references == ((2, "app.py", 1, "call", 1.0),)


def test_recursion_counts_once() -> None:
    assert references("def use():\n    use()\n    return use\n") == ["use call 1"]


def test_cycles_of_bases_imports_and_types_end() -> None:
    files = {
        "a.py": "from b import B, name\nclass A(B):\n    def f(self): self.g()\nx = y\ny = x\ndef use():\n    name()\n    x.f()\n",
        "b.py": "from a import A, name\nclass B(A):\n    def g(self): return self.g()\n",
    }
    world = ReferenceWorld(files)
    assert "A.f -> b.py:B.g call 0.9" in world.references("a.py")


@pytest.mark.parametrize(
    "source",
    [
        "class C0: ...\n"
        + "".join(f"class C{n + 1}(C{n}): ...\n" for n in range(3000))
        + "def f(): C3000().x()\n",
        "def f(v0):\n" + "".join(f"    v{n + 1} = v{n}.a\n" for n in range(3000)) + "    v3000.b()\n",
        "def f(v0):\n" + "".join(f"    v{n} = v{n + 1}.a\n" for n in range(3000)) + "    v0.b()\n",
        "def f(x: " + "Optional[" * 3000 + "A" + "]" * 3000 + "): x.y\n",
        "def f(x): return " + "x.y(" * 3000 + ")" * 3000 + "\n",
        "def f(x): return x" + ".y()" * 3000 + "\n",
        "v0 = f()\n" + "".join(f"v{n + 1} = v{n}\n" for n in range(3000)) + "def f(): v3000.x()\n",
        "def f():\n    return " + "f'{" * 900 + "}'" * 900 + "\n",
        "def f():\n    return '" + "\\'" * 30000 + "\n",
    ],
    ids=[
        "bases",
        "locals",
        "turned locals",
        "annotation",
        "nested",
        "chain",
        "variables",
        "f-strings",
        "string",
    ],
)
def test_what_is_very_deep_or_long_is_read(source: str) -> None:
    world = ReferenceWorld({"a.py": f"def before(): return before()\n{source}"})
    assert "before -> before call 1" in world.references("a.py")


def test_a_long_way_of_imports_is_not_followed_to_its_end() -> None:
    files = {f"m{n}.py": f"from m{n + 1} import f\n" for n in range(300)}
    files |= {"m300.py": "def f(): ...\n", "far.py": "from m0 import f\ndef use(): f()\n"}
    world = ReferenceWorld(files | {"near.py": "from m290 import f\ndef use(): f()\n"})
    assert world.references("far.py") == []
    assert world.references("near.py") == ["use -> m300.py:f call 0.95"]


def test_names_that_are_not_ascii() -> None:
    source = "def größe(ä): return ä\nclass Übung:\n    # ü\n    def machen(self, wörter='ö'):\n        größe(self.machen())\n"
    assert references(source, caller="Übung.machen") == ["größe call 1", "Übung.machen call 0.9"]


@pytest.mark.parametrize(
    "targets", ["use, other", "other, use", "(use, other)", "[other, use]", "other = use"]
)
def test_what_is_assigned_to_is_not_used(targets: str) -> None:
    assert references(f"def f(): ...\n{targets} = f()\n") == ["f call 1"]


def test_uses_at_module_level_have_no_caller() -> None:
    world = ReferenceWorld({"app.py": "def f(): ...\nf()\nif f: pass\n"})
    assert world.references("app.py") == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pkg.things", [("pkg/things.py", "import")]),
        ("from pkg import Renamed", [("pkg/__init__.py", "import"), ("pkg/things.py", "import")]),
        ("from pkg import shown", [("pkg/__init__.py", "import"), ("pkg/shown.py", "import")]),
        ("from pkg import base", [("pkg/__init__.py", "import"), ("pkg/base.py", "import")]),
        ("if TYPE_CHECKING:\n    from pkg.base import Base", [("pkg/base.py", "type_ref")]),
        (
            "if TYPE_CHECKING:\n    from pkg.base import Base\ndef f():\n    import pkg.base",
            [("pkg/base.py", "import")],
        ),
        ("import os, app", []),
    ],
)
def test_dependencies(source: str, found: list[tuple[str, str]]) -> None:
    world = ReferenceWorld(FILES | {"app.py": source})
    assert list(world.resolve("app.py").dependencies) == found


def test_a_module_that_others_ask_for_is_looked_up_by_its_words() -> None:
    files = {
        "app.py": "from pkg import one\ndef use(): one()\n",
        "pkg/__init__.py": "from .missing.deep import one\n",
    }
    assert ReferenceWorld(files).resolve("app.py").lookups[""] >= {"?missing", "?deep"}


def test_what_is_passed_on_from_outside_is_no_guess() -> None:
    files = {
        "testing.py": "from unittest import mock\nif mock:\n    from unittest import case\nelse:\n    from other import case\n",
        "state.py": "class State:\n    def patching(self): ...\n    def casing(self): ...\n",
        "use.py": "from testing import mock, case\ndef use():\n    mock.patching()\n    case.casing()\n",
    }
    assert ReferenceWorld(files).references("use.py") == []
