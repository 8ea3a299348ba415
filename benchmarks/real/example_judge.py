"""Runs the documented examples of definitions of one package, with any text of their file; started once, asked by lines.

    python example_judge.py      (in the folder from which the package is imported)

Reads a JSON object a line: `module`, `text` (of its file), `name` (qualified), `document` (whose docstring holds the examples: a
text of the file), `trace` (whether lines are wanted). Writes one: `results` [[source, want, got, lines], ...] in order, `got`
being "" where it is as documented, and `setup`; or `error`. Each request runs in a child of its own, with bounds on time
and memory. Used for code that a model wrote, so in a sandbox (`seeded.py`).
"""

import ast
import contextlib
import doctest
import importlib
import io
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SECONDS = 6
MEMORY = 3 << 30
FILE = "<judged>"


class Runner(doctest.DocTestRunner):
    """Keeps what each example gave."""

    def __init__(self, spans: tuple[int, int], *, traced: bool) -> None:
        super().__init__(verbose=False, optionflags=FLAGS)
        self.results: list[list[Any]] = []
        self.spans = spans
        self.traced = traced
        self.lines: set[int] = set()

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.lines.add(frame.f_lineno)
        return self._line

    def _call(self, frame: FrameType, _event: str, _: object) -> Any:
        code = frame.f_code
        inside = code.co_filename == FILE and self.spans[0] <= code.co_firstlineno <= self.spans[1]
        return self._line if inside else None

    def report_start(self, *_: object) -> None:
        """Note which lines run from now on."""
        self.lines = set()
        if self.traced:
            sys.settrace(self._call)

    def _keep(self, example: doctest.Example, got: str) -> None:
        sys.settrace(None)
        self.results.append([example.source, example.want, got, sorted(self.lines)])

    def report_success(self, out: object, test: object, example: doctest.Example, got: str) -> None:  # noqa: ARG002 - the base class's signature
        """As documented."""
        self._keep(example, "")

    def report_failure(self, out: object, test: object, example: doctest.Example, got: str) -> None:  # noqa: ARG002 - the base class's signature
        """Another value."""
        self._keep(example, got.strip() or "(nothing)")

    def report_unexpected_exception(self, *told: Any) -> None:
        """An error in place of a value."""
        _, _, example, error = told
        self._keep(example, f"raises {error[0].__name__}: {str(error[1])[:120]}")


def definition(text: str, name: str) -> Any:
    """The node of the qualified name."""
    found: Any = None
    scope: list[Any] = list(ast.parse(text).body)
    for part in name.split("."):
        found = next(node for node in scope if getattr(node, "name", "") == part)
        scope = found.body
    return found


def load(module: ModuleType, text: str) -> None:
    """The module, and what its package took from it, are as this text defines them."""
    old = dict(vars(module))
    exec(compile(text, FILE, "exec"), vars(module))
    new = vars(module)
    changed = {id(value): new[key] for key, value in old.items() if new.get(key) is not value}
    top = module.__name__.split(".")[0]
    for name, other in list(sys.modules.items()):
        if other is not module and (name == top or name.startswith(f"{top}.")):
            for key, value in list(vars(other).items()):
                if id(value) in changed:
                    setattr(other, key, changed[id(value)])


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """The results of all examples."""
    module = importlib.import_module(asked["module"])
    load(module, asked["text"])
    node = definition(asked["text"], asked["name"])
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    document = ast.get_docstring(definition(asked["document"], asked["name"])) or ""
    examples = doctest.DocTestParser().get_examples(document)
    names = {**vars(sys.modules[module.__name__.split(".")[0]]), **vars(module)}
    runner = Runner((first, node.end_lineno), traced=asked["trace"])
    test = doctest.DocTest(examples, names, asked["name"], None, 0, "")
    runner.run(test, out=io.StringIO().write, clear_globs=False)
    return {"results": runner.results}


def in_child(asked: dict[str, Any]) -> str:
    """The answer to a request, made in a child that may hang or die."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        answer: dict[str, Any] = {"error": "died"}
        try:
            os.close(reader)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            with contextlib.redirect_stdout(io.StringIO()):
                answer = run(asked)
        except BaseException as error:  # noqa: BLE001 - whatever a model wrote
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        with contextlib.suppress(BaseException), os.fdopen(writer, "w") as out:
            out.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text or json.dumps({"error": "died or took too long"})


def main() -> None:
    """Answer until nobody asks any more."""
    warnings.filterwarnings("ignore")
    sys.setrecursionlimit(3000)
    sys.path.insert(0, str(Path.cwd()))
    for line in sys.stdin:
        asked = json.loads(line)
        with contextlib.suppress(BaseException):
            importlib.import_module(asked["module"])
        print(in_child(asked), flush=True)


if __name__ == "__main__":
    main()
