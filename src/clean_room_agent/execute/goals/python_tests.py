"""Tests in Python: what is run to see what calls give, and the tests that say what they should give."""

import ast
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from clean_room_agent.execute.goals.confirming import Looked, NewTest, Placed, WantedValue
from clean_room_agent.execute.goals.expressions import (
    python_module,
    python_tree,
    standard_imports,
)

PROBE = "test_cra_looks_at_calls"
SEEN_FILE = "goal-values.json"
MAX_NAME = 60
WRAPPERS = frozenset({"list", "tuple", "sorted", "dict", "set", "str", "repr", "len", "next", "sum"})
"""Calls that are not what a test is about."""

MOST_SECONDS = 20.0
"""Of a call, where the system can interrupt it: calls with other values than those of a report may never end."""
LOOKING = """\
    import json, os, itertools, signal

    class Late(BaseException):
        pass

    seconds = [MOST_SECONDS]  # the first that does not end leaves less to the others

    def in_time(make):
        def stop(number, frame):
            raise Late
        try:
            before = signal.signal(signal.SIGALRM, stop)
        except (AttributeError, ValueError):  # not here, or not in this thread
            return make()
        timer = signal.setitimer(signal.ITIMER_REAL, seconds[0])
        try:
            return make()
        except Late:
            seconds[0] /= 20
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, before)

    def value_of(make):
        value = make()
        if hasattr(value, "__next__") or type(value).__name__ in ("map", "zip", "filter", "dict_keys", "dict_values", "dict_items"):
            return list(itertools.islice(value, 2000)), True
        return value, False

    def kinds(error):
        return [kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException, Exception)]

    def like(value, other):
        found = []
        def holds(name, test):
            try:
                if test() is True:
                    found.append(name)
            except Exception:
                pass
        plain = (bool, int, float, str, bytes, list, tuple)
        holds("equal", lambda: bool(value == other) and isinstance(value, bool) == isinstance(other, bool)
              and (not isinstance(other, plain) or isinstance(value, type(other)) or repr(value) == repr(other)))
        if isinstance(value, str) and isinstance(other, str) and other:
            holds("suffix", lambda: value.endswith(other))
            holds("prefix", lambda: value.startswith(other))
        elif isinstance(value, (list, tuple)):
            holds("last", lambda: bool(value[-1] == other))
            holds("first", lambda: bool(value[0] == other))
            if isinstance(other, (list, tuple)) and other:
                holds("tail", lambda: bool(value[-len(other):] == other))
                holds("head", lambda: bool(value[:len(other)] == other))
        if isinstance(other, str) and not isinstance(value, str):
            holds("text", lambda: str(value) == other or repr(value) == other)
        return found

    def look(make, stated):
        seen = {}
        try:
            value, seen["iterated"] = in_time(lambda: value_of(make))
        except Late:
            return {"late": True}
        except ImportError as error:
            seen.update(raised=kinds(error), message=str(error), importing=True)
            return seen
        except Exception as error:
            seen.update(raised=kinds(error), message=str(error)[:500])
            seen["matches"] = [["raises"] if kind == "error" and made in seen["raised"] else [] for kind, made in stated]
            return seen
        seen["shown"] = repr(value)[:5000]
        seen["text"] = value[:5000] if isinstance(value, str) else None
        seen["matches"] = []
        for kind, made in stated:
            if kind == "error":
                seen["matches"].append([])
            elif kind == "literal":
                try:
                    other = made()
                    same = bool(other == made())
                except Exception:
                    other, same = object(), True
                seen["matches"].append(like(value, other) if same else ["incomparable"])
            else:
                text = value if isinstance(value, str) else str(value)
                found = ["equal"] if made in (text, repr(value)) else []
                if isinstance(value, str) and made:
                    found += ["suffix"] * value.endswith(made) + ["prefix"] * value.startswith(made)
                seen["matches"].append(found)
        return seen
"""


def probe_code(calls: Sequence[Looked]) -> str:
    """A function that writes what the calls give, one JSON object each, to `SEEN_FILE` among the tests' reports."""
    lines = [LOOKING.replace("MOST_SECONDS", repr(MOST_SECONDS)), "    seen = []"]
    for number, one in enumerate(calls):
        stated = ", ".join(
            f"({kind!r}, lambda: ({text}\n))" if kind == "literal" else f"({kind!r}, {text!r})"
            for kind, text in one.stated
        )
        of_values = [
            each for kind, text in one.stated if kind == "literal" for each in imports_of_value(text)
        ]
        unread = f"[(kind, None if kind == 'literal' else text) for kind, text in {list(one.stated)!r}]"
        lines += [
            f"    def case_{number}():",
            textwrap.indent("\n".join((*one.imports, *one.setup, f"return ({one.call}\n)")), "        "),
            f"    def stated_{number}():",
            *(f"        {statement}" for statement in (*of_values, *one.imports)),
            f"        return [{stated}]",
            "    try:",
            f"        values_{number} = stated_{number}()",
            "    except Exception:",
            f"        values_{number} = {unread}",
            f"    seen.append(look(case_{number}, values_{number}))",
        ]
    lines.append(f"    with open(os.path.join(os.environ['CRA_TEST_REPORTS'], {SEEN_FILE!r}), 'w') as file:")
    lines.append("        json.dump(seen, file)")
    return "\n".join(lines) + "\n"


def with_probe(text: str, calls: Sequence[Looked], *, unittest: bool) -> tuple[str, str]:
    """The test file with the probe added, and the probe's name as `Class::function` or `function`."""
    if unittest:
        body = textwrap.indent(f"def {PROBE}(self):\n{probe_code(calls)}", "    ")
        added = f"import unittest as _cra_unittest\n\n\nclass CraLooks(_cra_unittest.TestCase):\n{body}"
        return _append_code(text, added), f"CraLooks::{PROBE}"
    return _append_code(text, f"def {PROBE}():\n{probe_code(calls)}"), PROBE


def read_seen(data: bytes) -> list[Mapping[str, object]]:
    """What the probe wrote; empty if that cannot be read."""
    try:
        seen = json.loads(data)
    except (ValueError, RecursionError):
        return []
    return [one for one in seen if isinstance(one, dict)] if isinstance(seen, list) else []


def test_code(test: NewTest, *, method: bool) -> tuple[str, tuple[str, ...]]:
    """The text of the test as a function or as a method of a TestCase, and the imports that it needs besides its own."""
    needed = list(test.imports)
    lines = [*(test.imports if test.inside else ()), *test.setup]
    lines += [test.statement] if test.statement else _assertion_lines(test, method=method, needed=needed)
    head = f"def {test.name}({'self' if method else ''}):"
    if test.inside:
        needed = [one for one in needed if one not in test.imports]
    return f"{head}\n{textwrap.indent(chr(10).join(lines), '    ')}\n", tuple(needed)


def _assertion_lines(test: NewTest, *, method: bool, needed: list[str]) -> list[str]:
    """The lines that say what the call has to give; `needed` gets the imports that they need."""
    call, wanted = test.call, test.wanted
    if wanted.relation == "no_error":
        return [call]
    if wanted.relation == "raises":
        if not method:
            needed.append("import pytest")
        return [f"with {'self.assertRaises' if method else 'pytest.raises'}({wanted.text}):", f"    {call}"]
    needed.extend(imports_of_value(wanted.text))
    shown = _part_of(f"list({call})" if test.iterated else call, wanted)
    if wanted.relation in {"suffix", "prefix"}:
        return [f"self.assertTrue({shown})" if method else f"assert {shown}"]
    return [_comparison_line(shown, wanted.text, method=method, needed=needed)]


def _part_of(call: str, wanted: WantedValue) -> str:
    """What of the call's value is compared."""
    simple = isinstance(python_tree(call), ast.Call | ast.Subscript | ast.Attribute | ast.Name)
    inner, length = call if simple else f"({call})", _literal_length(wanted.text)
    return {
        "last": f"{inner}[-1]",
        "first": f"{inner}[0]",
        "tail": f"{inner}[-{length}:]",
        "head": f"{inner}[:{length}]",
        "suffix": f"{inner}.endswith({wanted.text})",
        "prefix": f"{inner}.startswith({wanted.text})",
    }.get(wanted.relation, call)


def _comparison_line(shown: str, value: str, *, method: bool, needed: list[str]) -> str:
    is_float = isinstance(_literal_value(value), float)
    if method:
        single = value in {"None", "True", "False"}
        name = "assertIs" if single else "assertAlmostEqual" if is_float else "assertEqual"
        return f"self.{name}({shown}, {value})"
    if is_float:
        needed.append("import pytest")
        return f"assert {_left_operand(shown)} == pytest.approx({value})"
    return f"assert {_left_operand(shown)} {'is' if value in {'None', 'True', 'False'} else '=='} {value}"


def _left_operand(call: str) -> str:
    """The call as the left side of a comparison."""
    tree = python_tree(call)
    return (
        f"({call})"
        if isinstance(tree, ast.Compare | ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
        else call
    )


def _literal_value(text: str) -> object:
    """The value of a literal; None if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _literal_length(text: str) -> int:
    value = _literal_value(text)
    return len(value) if isinstance(value, list | tuple | str) else 1


def imports_of_value(text: str) -> list[str]:
    """The import statements that a value needs, which names nothing but what the standard library has."""
    tree = python_tree(text)
    return list(standard_imports(tree).values()) if tree is not None else []


def test_name(call: str, wanted: WantedValue, taken: Iterable[str]) -> str:
    """A name of a test that says which call it makes, and is none of those `taken`."""
    tree = python_tree(call)
    called, arguments = "", call[call.find("(") + 1 :]
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call):
            func = node.func
            called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            arguments = ", ".join(map(ast.unparse, (*node.args, *node.keywords)))
            if called not in WRAPPERS:
                break
    words = re.findall(r"[A-Za-z0-9]+", arguments)[:6]
    ending = re.findall(r"[A-Za-z0-9]+", wanted.text)[:2] if wanted.relation == "raises" else []
    name = (
        "_".join(filter(None, ["test", called.strip("_"), *words, *(["raises", *ending] if ending else [])]))
        .lower()[:MAX_NAME]
        .rstrip("_")
    )
    known = set(taken)
    unique, number = name, 2
    while unique in known:
        unique, number = f"{name}_{number}", number + 1
    return unique


def place(text: str, tests: Sequence[NewTest], *, unittest: bool) -> Placed | None:
    """The test file with the tests added in its own style; None if it cannot be parsed.

    With `unittest`, they are methods of the TestCase that names most of what they call, or of a new one.
    """
    tree = python_module(text)
    if tree is None:
        return None
    home = _test_case(tree, text, tests) if unittest else None
    codes: list[str] = []
    needed: list[str] = []
    for one in tests:
        code, imports = test_code(one, method=unittest)
        codes.append(code)
        needed.extend(imports)
    if unittest and home is None:
        needed.append("import unittest")
    if home is not None:
        names = tuple(f"{home.name}::{one.name}" for one in tests)
        end = home.end_lineno or home.lineno
        indent = " " * (home.body[0].col_offset or 4)
        lines = text.splitlines(keepends=True)
        added = "".join("\n" + textwrap.indent(code, indent) for code in codes)
        before = "".join(lines[:end])
        placed = before + ("" if before.endswith("\n") else "\n") + added + "".join(lines[end:])
    elif unittest:
        called = re.sub(r"\W", "", tests[0].name.removeprefix("test_").title().replace("_", ""))[:30]
        class_name = f"{called}Test"
        body = "\n".join(textwrap.indent(code, "    ") for code in codes)
        names = tuple(f"{class_name}::{one.name}" for one in tests)
        placed = _append_code(text, f"class {class_name}(unittest.TestCase):\n{body}")
    else:
        names = tuple(one.name for one in tests)
        placed = text
        for code in codes:
            placed = _append_code(placed, code)
    return Placed(text=with_imports(placed, needed), names=names, codes=tuple(codes))


def _test_case(tree: ast.Module, text: str, tests: Sequence[NewTest]) -> ast.ClassDef | None:
    """The class that the tests are put into: the last of those with most mentions of what they call."""
    words = {name for one in tests for name in re.findall(r"[A-Za-z_]\w+(?=\()", one.call)}
    cases = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and _is_test_case(node) and not node.decorator_list
    ]

    def mentions(node: ast.ClassDef) -> int:
        source = ast.get_source_segment(text, node) or ""
        return sum(len(re.findall(rf"\b{re.escape(word)}\b", source)) for word in words)

    return max(reversed(cases), key=mentions, default=None)


def is_unittest_style(text: str) -> bool:
    """Whether the tests of the file are methods of TestCase classes, and none is a function or in another class."""
    tree = python_module(text)
    if tree is None:
        return False
    cases = any(isinstance(node, ast.ClassDef) and _is_test_case(node) for node in tree.body)
    functions = any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for node in tree.body
    )
    return cases and not functions


def _is_test_case(node: ast.ClassDef) -> bool:
    return any("TestCase" in ast.unparse(base) for base in node.bases)


def names_bound(text: str) -> frozenset[str]:
    """The names that the file's top level binds, and those of all its functions."""
    tree = python_module(text)
    if tree is None:
        return frozenset()
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, definitions)}
    return frozenset(names | _top_level_bindings(tree).keys())


def names_at_top(text: str) -> frozenset[str]:
    """The names that the file's top level binds."""
    tree = python_module(text)
    return frozenset() if tree is None else frozenset(_top_level_bindings(tree))


def _top_level_bindings(tree: ast.Module) -> dict[str, str]:
    """The names of the top level, each with the import statement that binds it, "" for anything else."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                found[bound] = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                found[alias.asname or alias.name] = f"from {module} import {alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = ""
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found[name.id] = ""
    return found


def _first_binding(statement: str) -> tuple[str, str] | None:
    """The first name that an import statement binds, and that import alone; None if it is no Python: a module's file may have any
    name.
    """
    tree = python_module(statement)
    return None if tree is None else next(iter(_top_level_bindings(tree).items()))


def bound_elsewhere(text: str, statement: str) -> bool:
    """Whether the name that the import statement binds is something else in the file."""
    tree, bound = python_module(text), _first_binding(statement)
    if tree is None or bound is None:
        return True
    bindings, (name, wanted) = _top_level_bindings(tree), bound
    known = bindings.get(name)
    if known is None or known == wanted:
        return False
    last = wanted.rpartition(" import ")[2]
    return not (known.startswith("from ") and known.rpartition(" import ")[2] == last)


def with_imports(text: str, statements: Iterable[str]) -> str:
    """The text with those of the import statements whose names it does not bind yet, after its last import."""
    tree = ast.parse(text)
    known = _top_level_bindings(tree)
    missing = [
        one
        for one in dict.fromkeys(statements)
        if (_first_binding(one) or ("",))[0] not in known and not _has_by_star(tree, one)
    ]
    if not missing:
        return text
    has_imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)
    line = 0  # the last one of the imports, or of the module's docstring
    for node in tree.body:
        is_docstring = (
            node is tree.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            line = node.end_lineno or line
        elif not isinstance(node, ast.Try | ast.If):
            break
    lines = text.splitlines(keepends=True)
    before, after = "".join(lines[:line]), "".join(lines[line:])
    if before and not before.endswith("\n"):
        before += "\n"
    apart = "\n" if before and not has_imports else ""
    spaced = "" if after.startswith("\n") or not after else "\n\n"
    return before + apart + "\n".join(missing) + "\n" + spaced + after


def _has_by_star(tree: ast.Module, statement: str) -> bool:
    """Whether the module uses the name that the statement imports, and imports all of where it comes from."""
    source, _, name = statement.partition(" import ")
    stars = (
        f"from {'.' * one.level}{one.module or ''}"
        for one in tree.body
        if isinstance(one, ast.ImportFrom) and one.names[0].name == "*"
    )
    uses = (one.id for one in ast.walk(tree) if isinstance(one, ast.Name))
    return source in stars and name in uses


MAIN = re.compile(r"^if __name__ ?== ?['\"]__main__['\"]", re.MULTILINE)


def _append_code(text: str, code: str) -> str:
    """The text with the code at its end, before the part that runs it as a script."""
    found = MAIN.search(text)
    head, tail = (text[: found.start()], text[found.start() :]) if found else (text, "")
    head = head.rstrip("\n")
    begun = f"{head}\n\n\n" if head else ""
    return begun + code.rstrip("\n") + "\n" + (f"\n\n{tail}" if tail else "")
