"""Retrieval over an index that the indexer made."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import COMMIT, git, init_repository
from tests.retrieval.world import World, context_request, make_world

from clean_room_agent.db.connection import connect_file
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.retrieval.failing_tests import find_named_tests
from clean_room_agent.workspace import Workspace

EXPRESS = """\
'use strict';

var http = require('http');
var app = exports = module.exports = {};

/**
 * Register a middleware.
 */
app.use = function use(fn) {
  this.stack.push(fn);
  return this;
};

app.listen = function listen() {
  var server = http.createServer(this);
  return server.listen.apply(server, arguments);
};
"""
MODEL = '''\
class Account:
    """Money of one person."""

    def deposit(self, amount):
        """Put money in."""
        self.balance += amount
'''


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(
        tmp_path, {"lib/application.js": EXPRESS, "bank/account.py": MODEL, "README.md": "Bank.\n"}
    )
    root = made.root
    init_repository(root)
    git(root, "add", "lib", "bank", "README.md")
    git(root, *COMMIT, "-m", "Begin")
    index(root)
    made.index.close()
    made.index = connect_file("curated", Workspace(repo=root).curated)
    yield made
    made.close()


def test_a_context_is_made_from_what_the_indexer_wrote(world: World) -> None:
    package = (
        world.retriever().retrieve(context_request(task="`deposit` must refuse negative amounts")).package
    )
    assert world.source().find_symbols("Account.deposit")
    query = world.session.for_pass(package.pass_id).get_state("task_query")
    assert isinstance(query, dict)
    assert query["symbols"] == ["deposit"]
    scope = {row.subject.path: row for row in world.decisions(package.pass_id) if row.stage == "scope"}
    assert scope["bank/account.py"].included


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("lib/large.js", "app.handle = function handle(req) {"),
        ("lib/large.ts", "export function handle(req: Request): void {"),
    ],
)
def test_a_large_function_of_a_script_is_shown_by_whole_statements(
    world: World, path: str, head: str
) -> None:
    body = "".join(
        f"  if (req.method === 'M{number}') {{\n    // one of many\n    this.count += {number};\n    return;\n  }}\n"
        for number in range(300)
    )
    text = f"{head}\n{body}}}{';' if path.endswith('js') else ''}\n"
    (world.root / path).write_text(text)
    update_paths(world.index, world.root, (path,))
    request = context_request(task="handle counts M7 twice", files=(path,), symbols=("handle",))
    package = world.retriever().retrieve(request).package
    assert package.primary()
    lines = text.split("\n")
    for item in package.primary():
        assert item.text == "".join(f"{line}\n" for line in lines[item.start_line - 1 : item.end_line])
        assert item.end_line - item.start_line > 20
        statements = item.text.removeprefix(f"{head}\n").removesuffix("};\n").removesuffix("\n}\n")
        assert statements.startswith("  if (req.method")
        assert statements.rstrip().endswith("}")
    assert package.budget.used_tokens <= 6144


def test_what_uses_a_changed_function_is_shown_by_its_line(world: World) -> None:
    text = (
        "from bank.account import Account\n\n\ndef close(sums):\n"
        "    account = Account()\n    for one in sums:\n        account.deposit(one)\n    return account\n"
    )
    (world.root / "bank/till.py").write_text(text)
    update_paths(world.index, world.root, ("bank/till.py",))
    package = (
        world.retriever()
        .retrieve(
            context_request(
                task="Refuse a sum below zero", files=("bank/account.py",), symbols=("Account.deposit",)
            )
        )
        .package
    )
    callers = [item.text for item in package.items if item.section == "callers"]
    assert callers == ["bank/till.py:5: account = Account()\n"]


def test_tests_that_a_call_declares_are_listed_if_they_name_what_is_changed(world: World) -> None:
    texts = {
        "web/money.ts": "export function half(cents: number) {\n  return cents / 2;\n}\n",
        "web/index.ts": 'export * from "./money";\n',
        "web/testing/client.ts": (
            'import { half } from "../money";\n\nexport function testClient() {\n  return half(2);\n}\n'
        ),
        "web/money.test.ts": (
            'import { half, whole } from ".";\n\n'
            'describe("halves", () => {\n'
            '  it("are even", () => {\n    expect(half(4)).toBe(2);\n  });\n'
            '  it("has\\nnothing to do with it", () => {\n    expect(whole(4)).toBe(4);\n  });\n'
            '  it.each([1, 3])("of %i are odd", (n) => {\n    expect(half(n) % 1).toBe(0.5);\n  });\n});\n'
        ),
    }
    for path, text in texts.items():
        (world.root / path).parent.mkdir(exist_ok=True, parents=True)
        (world.root / path).write_text(text)
    update_paths(world.index, world.root, tuple(texts))
    request = context_request(task="Round halves up", files=("web/money.ts",), symbols=("half",))
    package = world.retriever().retrieve(request).package
    shown = {item.text for item in package.items if item.section == "callers"}
    assert "web/testing/client.ts:4: return half(2);\n" in shown
    green = [item.text for item in package.items if item.section == "green"]
    assert green == [
        "web/money.test.ts:4: halves > are even\n",
        "web/money.test.ts:10: halves > of ... are odd\n",
    ]


@pytest.mark.parametrize(
    "name", ["tests/test_cash.py::CashTest::test_deposit", "tests.test_cash.CashTest.test_deposit"]
)
def test_a_test_that_a_class_inherits_is_found(world: World, name: str) -> None:
    texts = {
        "tests/shared.py": "class Base:\n    def test_deposit(self):\n        assert self.make()\n\n\nclass Shared(Base):\n    pass\n",
        "tests/test_cash.py": "from tests.shared import Shared\n\n\nclass CashTest(Shared):\n    def make(self):\n        return 1\n",
    }
    for path, text in texts.items():
        (world.root / path).parent.mkdir(exist_ok=True)
        (world.root / path).write_text(text)
    update_paths(world.index, world.root, tuple(texts))
    (found,) = find_named_tests([name], world.source())
    assert (found.path, found.name, found.start_line) == ("tests/shared.py", "Base.test_deposit", 2)


def test_what_a_changed_function_uses_is_shown_by_its_signature(world: World) -> None:
    texts = {
        "bank/limits.py": (
            '"""Limits."""\n\nMOST = 100\n\n\ndef check(amount: int) -> None:\n'
            '    """Refuse what is too much."""\n    if amount > MOST:\n        raise ValueError(amount)\n'
        ),
        "bank/safe.py": (
            "from bank.limits import MOST, check\n\n\ndef put(amount: int) -> int:\n"
            "    check(amount)\n    return MOST - amount\n" + "\n\nNOTHING = 0\n" * 60
        ),
    }
    for path, text in texts.items():
        (world.root / path).write_text(text)
    update_paths(world.index, world.root, tuple(texts))
    package = (
        world.retriever()
        .retrieve(context_request(task="Put less in", files=("bank/safe.py",), symbols=("put",)))
        .package
    )
    uses = [(item.symbol, item.text) for item in package.items if item.section == "uses"]
    assert uses == [
        ("MOST", "MOST = 100\n"),
        ("check", 'def check(amount: int) -> None:\n    """Refuse what is too much."""\n'),
    ]
