"""Reads one parsed JavaScript or TypeScript file: its interface for other files, and the names that it uses.

A worked example, from text to reference:

    // lib/index.ts             // lib/shop.ts                         // app.ts
    export * from './shop'      export class Cart {                    import { Cart as C } from './lib'
                                  items = new Items()                  export function use(cart: C, other) {
                                }                                        const { items } = cart
                                export class Items { add() {} }          items.add(other.add())
                                                                       }

*Reading* `app.ts`; no other file is looked at. `bindings` fills the scopes: in `use`, `cart` is bound to the type's node
`C`, `other` to something unknown, `items` to the member `items` of the node `cart`. `languages.uses` takes each name in a symbol
that declares nothing, with what follows it: `C`, `cart`, `items.add(`, `other.add(`. What its first name means decides
on the token. `C` is bound in no scope and imported, so it stands as it is. `cart` alone is a local, which says nothing.
`items` is a local as well, but comes to `C:.items`, "of an object of C, the member items": the token is
`C:.items|.add(`; what stands before the bar is evaluated, what stands behind it is a reference, called at its end.
Nothing is known of `other`, and `add` is too common a name to be looked for in the whole repository: no token.

    uses       [[0, "C C:.items|.add("]]                              0 is the place of `use`
    interface  [{"use": [0, "f"]}, {"C": [["./lib", "Cart"]]}, [], {"use": ["", "use"]}]
               definitions, imports, stars, exports

*Resolving* (`references.resolve`): `C` is an import, so the export `Cart` of `lib/index.ts` is asked for. That has none
of its own and passes on `./shop`, whose export `Cart` is its class: `use -> lib/shop.ts:Cart name 0.95`. `C:` is an
object of it (.85), `.items` its field, which holds `Items:` as the interface of `lib/shop.ts` says; so `.add` is
`Items.add`: `use -> lib/shop.ts:Items.add call 0.85`. What was asked on the way is stored as look-ups: `^Cart` and `*`
of `lib/index.ts`; `^Cart`, `Cart`, `Cart.items`, `Cart.items.add`, `Items` and `Items.add` of `lib/shop.ts`. An edit that
changes none of these leaves the references of `app.ts` as they are.
"""

import re
from collections.abc import Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.bindings import ScriptBindings
from clean_room_agent.languages.ecmascript.expressions import BETWEEN, STEPS, WORD
from clean_room_agent.languages.ecmascript.scopes import base_nodes
from clean_room_agent.languages.interface import FileNames, write_interface, write_uses
from clean_room_agent.languages.latin1 import as_bytes, real_name
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.uses import BASE, DECORATOR, Uses

COMMON_QUERY = """
[(identifier) (shorthand_property_identifier) (this) (super)] @use.name
[(function_declaration) (generator_function_declaration) (function_expression) (generator_function)
 (arrow_function) (method_definition) (class_declaration) (class)] @use.scope
[(function_declaration name: (_) @use.own) (generator_function_declaration name: (_) @use.own)
 (function_expression name: (_) @use.own) (class_declaration name: (_) @use.own) (class name: (_) @use.own)]
(formal_parameters (_) @use.parameter)
(arrow_function parameter: (identifier) @use.pattern)
(catch_clause parameter: (_) @use.pattern)
(for_in_statement kind: _ left: (_) @use.pattern)
(variable_declarator) @use.declarator
(assignment_expression) @use.assign
(return_statement (_) @use.return)
(member_expression object: [(call_expression) (new_expression) (parenthesized_expression)
  (subscript_expression)]) @use.chain
(class_heritage) @use.bases
(import_statement) @use.import
(export_statement) @use.export
(export_statement value: (_) @use.default)
"""
JSX_QUERY = """
(jsx_opening_element name: (_) @use.element)
(jsx_self_closing_element name: (_) @use.element)
(jsx_closing_element name: (_) @use.own)
"""
TYPES_QUERY = """
(type_identifier) @use.name
[(abstract_class_declaration) (interface_declaration) (type_alias_declaration) (internal_module) (module)
 (function_signature) (method_signature) (abstract_method_signature) (function_type) (call_signature)
 (construct_signature) (constructor_type)] @use.scope
[(abstract_class_declaration name: (_) @use.own) (interface_declaration name: (_) @use.own)
 (type_alias_declaration name: (_) @use.own) (enum_declaration name: (_) @use.own)
 (function_signature name: (_) @use.own) (internal_module name: (_) @use.own)]
(type_parameter) @use.type_parameter
(infer_type (type_identifier) @use.pattern)
(mapped_type_clause name: (type_identifier) @use.pattern)
(interface_declaration body: (interface_body (property_signature) @use.property))
(type_alias_declaration value: (object_type (property_signature) @use.property))
(type_alias_declaration value: (intersection_type (object_type (property_signature) @use.property)))
(extends_type_clause) @use.bases
"""
CALLED = r"(\s*+!?\s*+(?:\?\.)?(?:<[^<>()=;]*+>)?\(|`)?+"
ELEMENT = "/"
"""Marks the name of a JSX element: its component is called."""
COMMON_NAMES = (
    "add addEventListener all allSettled any append appendChild apply assign async at before bind blur body call "
    "catch charAt charCodeAt children classList clear click clone close closest concat constructor contains content "
    "copyWithin count create createElement data default defineProperty delete description destroy disconnect "
    "dispatchEvent display done each emit end endsWith entries error every exec exit exports fetch fill filter "
    "finally find findIndex findLast first flags flat flatMap focus forEach freeze from fromEntries get "
    "getAttribute getTime global has hash hasOwnProperty head headers hide href id includes indexOf info init "
    "innerHTML insert insertBefore is isArray item join json key keys kind label last lastIndexOf length listen "
    "load local localeCompare lookup map match matchAll max message method min name next nodeType normalize now "
    "number observe off on once open options order parent parentNode parse path pop port position prepend "
    "preventDefault process prototype push put query querySelector race raw read ready reason reduce reduceRight "
    "reject remove removeAttribute removeChild removeEventListener repeat replace replaceAll replaceWith request "
    "reset resolve response result return reverse root run search select send set setAttribute shift show size "
    "slice some sort source splice split start startsWith state status stop stringify style sub substring tagName "
    "target test text textContent then throw toFixed toJSON toLowerCase toString toUpperCase trace trim trimEnd "
    "trimStart type unshift update url use value valueOf values version wait warn with write"
)
COMMON_MEMBERS = frozenset(COMMON_NAMES.split())
"""Members of built-in objects and of the DOM: a unique definition of such a name says nothing of what a use on an unknown object means."""


def query(grammar: str) -> str:
    """The query that captures what `read_names` needs, for a grammar of JavaScript or TypeScript."""
    types = "" if grammar == "javascript" else TYPES_QUERY
    return COMMON_QUERY + types + ("" if grammar == "typescript" else JSX_QUERY)


def read_names(captures: Mapping[str, Sequence[Node]], source: bytes, nested: Nested) -> FileNames:
    """Turn captured nodes into the file's interface and uses."""
    text = source.decode("latin-1")
    binds = ScriptBindings(captures, nested if source.isascii() else as_bytes(nested), text)
    reachable, inner = binds.definitions()
    uses = ScriptUses(captures, binds).read(frozenset([*reachable, *binds.imports]))
    interface = write_interface(reachable, binds.imports, list(dict.fromkeys(binds.stars)), binds.exports)
    return FileNames(real_name(interface), real_name(write_uses(inner, (), uses)))


class ScriptUses(Uses):
    """Names in JavaScript and TypeScript."""

    chain = re.compile(rf"({WORD})({STEPS}){CALLED}")
    following = re.compile(rf"({STEPS}){CALLED}")
    between = BETWEEN
    member_field = "property"
    common = COMMON_MEMBERS

    def marks(self) -> dict[int, str]:
        """Of decorators, of JSX elements, and of what classes extend and implement."""
        captures = self._captures
        marks = {node.start_byte: ELEMENT for node in captures.get("use.element", ())}
        marks |= {node.start_byte + 1: DECORATOR for node in captures.get("decorator", ())}
        for node in captures.get("use.bases", ()):
            if node.parent is not None:
                marks |= {base.start_byte: BASE for base in base_nodes(node.parent)}
        return marks

    def parts(self, chain: re.Match[str]) -> tuple[str, str, str]:
        """`super(…)` is a call of the constructor, and members of `exports` are names of the module."""
        head, steps, call = super().parts(chain)
        if head == "super":
            return head, steps or ".constructor", call
        name, dot, rest = BETWEEN.sub("", steps)[1:].partition(".")
        is_own = head == "exports" and name and self.is_module_name(name)
        return (name, dot + rest, call) if is_own else (head, steps, call)

    def is_receiver(self, name: str) -> bool:
        """See `Uses.is_receiver`."""
        return name == "this"

    def add_marked(self, mark: str, prefix: str, steps: str, place: int) -> None:
        """An element stands for a call of its component; `<div>` is the browser's."""
        if mark != ELEMENT:
            super().add_marked(mark, prefix, steps, place)
        elif (steps or not prefix[0].islower()) and (steps or prefix[-1] != "|"):
            self.add(place, prefix, f"{steps}(")
