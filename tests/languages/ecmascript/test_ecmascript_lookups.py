"""Whoever resolves otherwise after an edit elsewhere had looked up what changed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testing.references.reference_world import ReferenceWorld, read_file

from clean_room_agent.indexer.references.evaluate import Evaluations
from clean_room_agent.indexer.references.resolve import Resolved, resolve_file
from clean_room_agent.languages.interface import changed_names

PATHS = ("a.ts", "b.tsx", "c.js", "d/index.ts")
NAMES = ("one", "two", "K", "rarely", "seldom")
STATEMENTS = (
    "export * from './{m}'",
    "export {{ {n} }} from './{m}'",
    "export {{ {n} as {o} }} from './{m}'",
    "export * as {o} from './{m}'",
    "import {{ {n} }} from './{m}'",
    "import {n}, {{ {o} }} from './{m}'",
    "import * as {o} from './{m}'",
    "export {{ {n} }}",
    "export default {n}",
    "const {n} = require('./{m}')",
    "const {{ {n} }} = require('./{m}')",
    "module.exports = {{ {n}, {o}() {{ this.{n}() }} }}",
    "exports.{n} = {o}",
    "export function {n}(): {o} {{ return new {o}().rarely() }}",
    "export class {n} extends {o} {{ rarely() {{ this.seldom(); {o}.{n}() }} }}",
    "export interface {n} {{ {o}: K; seldom(): {o} }}",
    "export type {n} = {o} | null",
    "export const {n} = {{ {o}, seldom: () => {n}.{o}() }}",
    "function f(x: {n}, y = {o}()) {{ x.{o}.rarely(); y.{n}(); {n}.{o}(); z.rarely(); <{n}/> }}",
    "const {n} = new {o}()",
)
statements = st.builds(
    lambda text, module, name, other: text.format(m=module, n=name, o=other),
    st.sampled_from(STATEMENTS),
    st.sampled_from(("a", "b", "c", "d")),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)
sources = st.lists(statements, max_size=5).map("\n".join)
worlds = st.fixed_dictionaries(dict.fromkeys(PATHS, sources))


def told(world: ReferenceWorld, path: str, place: int) -> tuple[str, str, int]:
    """A symbol by what it is called in its file."""
    names = world.nested[path].names
    return (path, names[place], names[:place].count(names[place])) if place >= 0 else (path, "", 0)


def meaning(world: ReferenceWorld, path: str, found: Resolved) -> object:
    """References and re-exports without places."""
    references = [
        (told(world, path, caller), told(world, where, callee), kind, confidence)
        for caller, where, callee, kind, confidence in found.references
    ]
    return sorted(references), [(name, told(world, where, place)) for name, where, place in found.reexports]


def holder(world: ReferenceWorld, name: str) -> tuple[str, str, int] | None:
    """The one callable of this name."""
    found = world.unique("a.ts", name)
    return None if found is None else told(world, *found)


@given(worlds, st.sampled_from(PATHS), sources)
def test_whoever_resolves_otherwise_had_looked_up_what_changed(
    files: dict[str, str], edited: str, text: str
) -> None:
    before, after = ReferenceWorld(files), ReferenceWorld(files | {edited: text})
    changed = changed_names(before.names[edited].interface, after.names[edited].interface)
    unsettled = {name for name in NAMES if holder(before, name) != holder(after, name)}
    for path in PATHS:
        old, new = before.resolve(path), after.resolve(path)
        if path != edited and meaning(before, path, old) != meaning(after, path, new):
            asked = old.lookups.get(edited, frozenset()) & changed
            assert asked or old.lookups.get("", frozenset()) & unsettled, (path, old, new, sorted(changed))


@given(worlds, st.permutations(PATHS))
def test_what_was_resolved_before_changes_nothing(files: dict[str, str], order: list[str]) -> None:
    world = ReferenceWorld(files)
    alone = {path: world.resolve(path) for path in PATHS}
    evaluations = Evaluations(world)
    for path in order:
        assert resolve_file(path, world.names[path], evaluations) == alone[path]


@settings(max_examples=30)
@given(worlds)
def test_references_are_sorted_and_each_is_there_once(files: dict[str, str]) -> None:
    world = ReferenceWorld(files)
    for path in PATHS:
        found = world.resolve(path)
        keys = [row[:4] for row in found.references]
        assert keys == sorted(set(keys))
        assert all(0.5 <= row[4] <= 1 for row in found.references)
        assert [row[0] for row in found.reexports] == sorted({row[0] for row in found.reexports})


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("export const a = 1", "const a = 1", {"^a", "^*"}),
        ("export const a = 1", "export const b = 1\nexport const a = 1", {"b", "^b", "^*"}),
        ("export { a } from './x'", "export { a } from './y'", {"^a"}),
        ("export { a } from './x'", "export { b as a } from './x'", {"^a"}),
        ("export * from './x'", "export * from './y'", {"*"}),
        ("import { a } from './x'", "import { a } from './y'", {"a"}),
        ("export class A { m() {} }", "export class A { m() { return 1 + 1 } }", set()),
        ("export class A { m() {} }", "export class A { m(): A {} }", {"A.m"}),
        ("export function f() { const g = () => 1 }", "export function f() { const h = () => 1 }", set()),
        ("exports.a = b", "exports.a = c", {"a"}),
    ],
)
def test_what_of_an_interface_changes(before: str, after: str, keys: set[str]) -> None:
    old, new = (read_file("m.ts", text)[1].interface for text in (before, after))
    assert changed_names(old, new) == keys


def test_a_barrel_tells_where_its_names_are_defined() -> None:
    files = {
        "index.ts": (
            "export * from './a'\nexport { Two as Second } from './sub'\nexport * as sub from './sub'\n"
            "import { two } from './sub'\nexport { two }\nexport const own = 1\nexport { gone } from './gone'\n"
        ),
        "a.ts": "export function one() {}\nexport default function main() {}\n",
        "sub/index.ts": "export * from './two'\n",
        "sub/two.ts": "export class Two {}\nexport const two = 2\n",
        "main.js": "module.exports = require('./lib')\n",
        "lib.js": "module.exports = start\nfunction start() {}\n",
    }
    world = ReferenceWorld(files)
    found = [
        (name, path, told(world, path, place)[1]) for name, path, place in world.resolve("index.ts").reexports
    ]
    assert found == [
        ("Second", "sub/two.ts", "Two"),
        ("one", "a.ts", "one"),
        ("sub", "sub/index.ts", ""),
        ("two", "sub/two.ts", "two"),
    ]
    assert [row[:2] for row in world.resolve("main.js").reexports] == [("default", "lib.js")]
    assert world.resolve("a.ts").reexports == ()
