"""Tests in JavaScript and TypeScript: what is run to see what calls give, and the tests that say what they should give.

They are written in the style of the file that they are added to: with `expect` of vitest and jest, chai's `expect`, or
Node's `assert`; as `it` or `test`; with `import` or `require`.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.execute.goals.confirming import Looked, NewTest, Placed, WantedValue

PROBE = "cra looks at calls"
SEEN_FILE = "goal-values.json"
ASSERT = re.compile(r"(?<![\w$.:/'\"])assert(?![\w$/'\"])")
"""The name, which is no part of a module's."""
IMPORT = re.compile(
    r"^(?:import\b(?P<bound>[^'\"]*?)(?:\bfrom\s*)?['\"](?P<esm>[^'\"]+)['\"];?|(?:const|let|var)\s+(?P<names>[^=]+?)\s*=\s*"
    r"(?:await\s+import|require)\(\s*['\"](?P<cjs>[^'\"]+)['\"]\s*\)[^\n]*)$",
    re.MULTILINE,
)
LOOKING = """\
  const cra_load = async (name) => (typeof require === 'function' ? require(name) : import(name))
  const { writeFileSync: cra_writeFileSync } = await cra_load('node:fs')
  const { inspect: cra_inspect, isDeepStrictEqual: cra_isDeepStrictEqual } = await cra_load('node:util')
  const cra_shown = (value) => cra_inspect(value, { depth: 20, breakLength: Infinity, maxArrayLength: 2000, maxStringLength: 5000 })
  const cra_kinds = (error) => {
    const found = error && error.name ? [String(error.name)] : ['Error']
    for (let kind = error && Object.getPrototypeOf(error); kind && kind.constructor && kind.constructor !== Object; kind = Object.getPrototypeOf(kind)) found.push(kind.constructor.name)
    return [...new Set(found)]
  }
  const cra_like = (value, other) => {
    const found = []
    if (cra_isDeepStrictEqual(value, other)) found.push('equal')
    if (typeof value === 'string' && typeof other === 'string' && other) {
      if (value.endsWith(other)) found.push('suffix')
      if (value.startsWith(other)) found.push('prefix')
    } else if (Array.isArray(value)) {
      if (value.length && cra_isDeepStrictEqual(value[value.length - 1], other)) found.push('last')
      if (value.length && cra_isDeepStrictEqual(value[0], other)) found.push('first')
      if (Array.isArray(other) && other.length) {
        if (cra_isDeepStrictEqual(value.slice(-other.length), other)) found.push('tail')
        if (cra_isDeepStrictEqual(value.slice(0, other.length), other)) found.push('head')
      }
    } else if (typeof other === 'string' && (String(value) === other || cra_shown(value) === other)) found.push('text')
    return found
  }
  const cra_look = async (make, stated) => {
    const cra_seen = {}
    let value
    try {
      value = make()
      if (value && typeof value.then === 'function') { cra_seen.awaited = true; value = await value }
      if (value && typeof value.next === 'function' && typeof value[Symbol.iterator] === 'function') { cra_seen.iterated = true; value = [...value] }
    } catch (error) {
      cra_seen.raised = cra_kinds(error)
      cra_seen.message = String((error && error.message) || error).slice(0, 500)
      cra_seen.importing = error instanceof ReferenceError || (error instanceof TypeError && /is not (a function|a constructor)$/.test(cra_seen.message))
      cra_seen.matches = stated.map(([kind, made]) => (kind === 'error' && cra_seen.raised.includes(made) ? ['raises'] : []))
      return cra_seen
    }
    cra_seen.shown = cra_shown(value).slice(0, 5000)
    cra_seen.text = typeof value === 'string' ? value : null
    cra_seen.matches = stated.map(([kind, made]) => {
      if (kind === 'error') return []
      if (kind === 'literal') { try { return cra_like(value, made()) } catch { return [] } }
      const found = made === String(value) || made === cra_shown(value) ? ['equal'] : []
      if (typeof value === 'string' && made && value.endsWith(made)) found.push('suffix')
      if (typeof value === 'string' && made && value.startsWith(made)) found.push('prefix')
      return found
    })
    return cra_seen
  }
  const cra_seen = []
"""


class Style(Struct, frozen=True, kw_only=True):
    """How the tests of a file are written."""

    test: str
    """The function that declares one: `test`, `it`."""
    asserts: str
    """expect, chai, or the name by which Node's `assert` is bound."""
    end: str
    """";" where statements end with one, else ""."""
    imports: bool
    """Whether it has `import` and not `require`."""


def style_of(text: str, framework: str) -> Style:
    """The style of a file of tests; of one without a text, what its framework (node, mocha, jest, vitest) is used with."""
    calls = re.findall(r"^[ \t]*(?:await )?(test|it)\(", text, re.MULTILINE)
    name = max(("test", "it"), key=calls.count) if calls else "it" if framework == "mocha" else "test"
    bound = re.search(
        r"(?:import|const|let|var)\s+(?:\*\s+as\s+)?(\w+)\s*(?:from|=\s*require\()\s*['\"](?:node:)?assert(?:/strict)?['\"]",
        text,
    )
    if re.search(r"\bexpect\(", text):
        asserts = "chai" if re.search(r"\)\.to\.|['\"]chai['\"]", text) else "expect"
    elif bound is not None:
        asserts = bound[1]
    else:
        asserts = "expect" if framework in {"jest", "vitest"} else "assert"
    lines = [line.rstrip() for line in text.splitlines() if line.rstrip().endswith((")", ");"))]
    ended = sum(line.endswith(";") for line in lines)
    requires = bool(re.search(r"\brequire\(", text)) and not re.search(r"^import\b", text, re.MULTILINE)
    return Style(
        test=name,
        asserts=asserts,
        end=";" if 2 * ended > len(lines) or not lines else "",
        imports=not requires,
    )


def with_probe(text: str, calls: Sequence[Looked], style: Style) -> str:
    """The file of tests with the probe added, whose title is `PROBE`."""
    lines = [f"{style.test}({PROBE!r}, async () => {{", LOOKING.rstrip("\n")]
    for one in calls:
        setup = "".join(f"{statement}\n;" for statement in one.setup)
        stated = ", ".join(
            f"[{json.dumps(kind)}, () => ({source}\n)]"
            if kind == "literal"
            else f"[{json.dumps(kind)}, {json.dumps(source)}]"
            for kind, source in one.stated
        )
        lines.append(f"  cra_seen.push(await cra_look(() => {{ {setup}return ({one.call}\n) }}, [{stated}]))")
    lines.append(
        f"  cra_writeFileSync(process.env.CRA_TEST_REPORTS + '/{SEEN_FILE}', JSON.stringify(cra_seen))"
    )
    lines.append("})")
    imports = [each for one in calls for each in one.imports]
    return _append_code(with_imports(text, imports), "\n".join(lines) + "\n")


def place(text: str, tests: Sequence[NewTest], style: Style) -> Placed:
    """The file with the tests added at its end, each at the top level."""
    codes = [test_code(one, style) for one in tests]
    needed = [each for one in tests for each in one.imports]
    if style.asserts == "assert" and needs_assert("assert", text):
        needed.insert(0, assert_import(style))
    placed = with_imports(text, needed)
    for code in codes:
        placed = _append_code(placed, code)
    return Placed(text=placed, names=tuple(one.name for one in tests), codes=tuple(codes))


def needs_assert(code: str, text: str) -> bool:
    """Whether the code uses `assert`, and the file of tests does not have it."""
    return bool(ASSERT.search(code)) and not ASSERT.search(text)


def assert_import(style: Style) -> str:
    """The statement that imports Node's `assert`."""
    return _import_statement("assert", "node:assert/strict", style, default=True)


def test_code(test: NewTest, style: Style) -> str:
    """The text of the test."""
    call, wanted, end = test.call, test.wanted, style.end
    awaited = "await " if test.awaited else ""
    value = f"[...{call}]" if test.iterated else f"{awaited}{call}"
    lines = [f"{one.rstrip(';')}{end}" for one in test.setup]
    lines.append(test.statement or f"{_assertion_statement(value, call, wanted, test, style)}{end}")
    head = f"{style.test}({_quote_string(test.name)}, {'async ' if test.awaited else ''}() => {{"
    body = "\n".join(f"  {line}" for line in "\n".join(lines).splitlines())
    return f"{head}\n{body}\n}}){end}\n"


def _assertion_statement(value: str, call: str, wanted: WantedValue, test: NewTest, style: Style) -> str:
    text = wanted.text
    if wanted.relation == "no_error":
        return value
    if wanted.relation == "raises":
        if test.awaited:
            return {
                "expect": f"await expect({call}).rejects.toThrow({text})",
                "chai": f"await {call}.then(() => {{ throw new Error('did not reject') }}, (error) => expect(error).to.be.an.instanceOf({text}))",
            }.get(style.asserts, f"await {style.asserts}.rejects(() => {call}, {text})")
        return {
            "expect": f"expect(() => {call}).toThrow({text})",
            "chai": f"expect(() => {call}).to.throw({text})",
        }.get(style.asserts, f"{style.asserts}.throws(() => {call}, {text})")
    seen = f"({value})" if value.startswith(("await ", "new ")) else value
    compared = {
        "equal": value,
        "last": f"{seen}.at(-1)",
        "first": f"{seen}[0]",
        "tail": f"{seen}.slice(-{text}.length)",
        "head": f"{seen}.slice(0, {text}.length)",
        "suffix": f"{seen}.endsWith({text})",
        "prefix": f"{seen}.startsWith({text})",
    }[wanted.relation]
    if wanted.relation in {"suffix", "prefix"}:
        text = "true"
    plain = re.fullmatch(r"-?[\d.]+|null|undefined|true|false|(?:'[^']*'|\"[^\"]*\")", text) is not None
    if style.asserts == "expect":
        return f"expect({compared}).{'toBe' if plain else 'toEqual'}({text})"
    if style.asserts == "chai":
        return f"expect({compared}).to.{'equal' if plain else 'deep.equal'}({text})"
    return f"{style.asserts}.{'strictEqual' if plain else 'deepStrictEqual'}({compared}, {text})"


def title(call: str, wanted: WantedValue, taken: str) -> str:
    """The title of a test, which stands nowhere in the text `taken`."""
    verb = "throws" if wanted.relation == "raises" else "gives"
    told = f"{call} {verb} {wanted.text}" if wanted.text else call
    short = re.sub(r"[^\w \[\](){}.,:=>+*/'\"-]+", " ", told)
    name = " ".join(short.split())[:100].strip()
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name} ({number})", number + 1
    return unique


def import_of(one: NamedDefinition, home: str, text: str, source: str, style: Style) -> str:
    """The statement by which the file at `home` imports the definition, as `source`, the text of its file, exports it; "" if
    it does not.
    """
    name = re.escape(one.name)
    default = re.search(
        rf"^export default (?:async )?(?:function\*? |class )?{name}\b|^module\.exports\s*=\s*{name}\s*;?$",
        source,
        re.MULTILINE,
    )
    named = re.search(
        rf"^export (?:async )?(?:function\*?|class|const|let|var)\s+{name}\b|^export\s*\{{[^}}]*\b{name}\b(?!\s+as)[^}}]*\}}"
        rf"|(?:module\.)?exports\.{name}\s*=|^module\.exports\s*=\s*\{{[^}}]*\b{name}\b",
        source,
        re.MULTILINE,
    )
    if default is None and named is None:
        return ""
    return _import_statement(one.name, _module_specifier(one.path, home, text), style, default=named is None)


def _import_statement(name: str, module: str, style: Style, *, default: bool) -> str:
    bound = name if default else f"{{ {name} }}"
    if style.imports:
        return f"import {bound} from '{module}'{style.end}"
    return f"const {bound} = require('{module}'){style.end}"


def _module_specifier(path: str, home: str, text: str) -> str:
    """The module as the file names it already, or else relative, with an ending where its other relative imports have one."""
    folder = posixpath.dirname(home)
    relative = posixpath.relpath(path, folder or ".")
    relative = relative if relative.startswith(".") else f"./{relative}"
    bare = re.sub(r"(?:/index)?\.[cm]?[jt]sx?\Z", "", relative)
    used = [found["esm"] or found["cjs"] for found in IMPORT.finditer(text)]
    for one in used:
        if re.sub(r"(?:/index)?\.[cm]?[jt]sx?\Z", "", one) == bare:
            return one
    local = [one for one in used if one.startswith(".")]
    ended = any(re.search(r"\.[cm]?[jt]sx?\Z", one) for one in local)
    if ended or (not local and path.endswith((".js", ".mjs", ".cjs"))):
        return re.sub(r"\.ts\Z", ".js", relative) if any(one.endswith(".js") for one in local) else relative
    return bare


def with_imports(text: str, statements: Iterable[str]) -> str:
    """The text with those of the import statements whose names it does not bind yet, after its last import."""
    missing = [one for one in dict.fromkeys(statements) if one and not _binds_all_names(text, one)]
    if not missing:
        return text
    ends = [found.end() for found in IMPORT.finditer(text)]
    at = max(ends) if ends else 0
    if not ends:
        directive = re.match(r"(?:#![^\n]*\n)?(?:['\"]use strict['\"];?\n)?", text)
        at = directive.end() if directive else 0
        return text[:at] + "\n".join(missing) + "\n" + ("\n" if text[at:].strip() else "") + text[at:]
    return text[:at] + "\n" + "\n".join(missing) + text[at:]


def _binds_all_names(text: str, statement: str) -> bool:
    found = IMPORT.search(statement)
    assert found is not None, "it is made here"
    names = re.findall(r"[A-Za-z_$][\w$]*", found["bound"] or found["names"])
    bound = " ".join((one["bound"] or one["names"] or "") for one in IMPORT.finditer(text))
    return all(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", bound) for name in names)


def _quote_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _append_code(text: str, code: str) -> str:
    head = text.rstrip("\n")
    return f"{head}\n\n{code}" if head else code
