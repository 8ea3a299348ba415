"""What `cra init` finds at a model server."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import Kind, OpenAiServer

from clean_room_agent.app import discovery
from clean_room_agent.app.discovery import (
    WantedServer,
    find_server,
    find_test_commands,
    find_window,
    ollama_url,
    suggest_models,
    with_scheme,
)
from clean_room_agent.errors import ModelError, ServerBusy
from clean_room_agent.llm.transport import ServedModel
from clean_room_agent.llm.transports import http

MODELS = {
    ("coder:3b", "thinker:4b"): ("coder:3b", "thinker:4b"),
    ("thinker:4b", "coder:3b"): ("coder:3b", "thinker:4b"),
    ("embed-text:1b", "general:7b"): ("general:7b", "general:7b"),
    ("coder:3b", "coder:7b"): ("coder:3b", "coder:3b"),
    ("embed-text:1b",): None,
    (): None,
}


@pytest.mark.parametrize("tags", MODELS)
def test_a_coder_is_suggested_for_code_and_another_for_the_rest(tags: tuple[str, ...]) -> None:
    models = tuple(ServedModel(tag=tag, digest="0", size_bytes=1) for tag in tags)
    assert suggest_models(models) == MODELS[tags]


def test_a_server_is_found_with_its_models() -> None:
    with OllamaServer([]) as server:
        found = find_server(WantedServer(base_url=server.base_url))
        assert [model.tag for model in found.models] == ["coder:3b", "thinker:4b"]
        assert found.version == f"version {server.version}"
        assert found.models_table == {"provider": "ollama", "base_url": server.base_url}


def test_where_nobody_answers_it_is_a_model_error() -> None:
    with OllamaServer([]) as server:
        url = server.base_url
    with pytest.raises(ModelError):
        find_server(WantedServer(base_url=url))


def test_the_window_is_no_larger_than_a_usual_one() -> None:
    with OllamaServer([]) as server:
        assert (
            find_window(find_server(WantedServer(base_url=server.base_url)), ("coder:3b", "thinker:4b"))
            == 32_768
        )


def test_a_model_that_the_server_does_not_describe_does_not_count() -> None:
    with OllamaServer([]) as server:
        assert find_window(find_server(WantedServer(base_url=server.base_url)), ("nobody:1b",)) == 32_768


SERVED: dict[Kind, tuple[dict[str, object], int | None]] = {
    "vllm": ({}, 4096),
    "llama-server": ({"grammar": True}, 4096),
    "lm-studio": ({}, 4096),
    "llama-cpp-python": ({"schema_dialect": "json_object", "streaming": False}, None),
}


@pytest.mark.parametrize("kind", SERVED)
def test_a_server_of_openais_api_is_found_with_what_it_needs_and_the_window_that_it_gives(kind: Kind) -> None:
    needs, window = SERVED[kind]
    with OpenAiServer([], kind=kind) as server:
        found = find_server(WantedServer(base_url=server.base_url))
        assert found.models_table == {"provider": "openai", "base_url": server.base_url} | needs
        assert find_window(found, ("coder:3b", "thinker:4b")) == window


def test_of_two_failures_the_one_of_the_named_protocol_is_told() -> None:
    with OllamaServer([]) as server, pytest.raises(ModelError, match="does not speak OpenAI's protocol"):
        find_server(WantedServer(base_url=server.base_url, provider="openai"))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8123", "http://127.0.0.1:8123"),
        ("0.0.0.0:8123", "http://127.0.0.1:8123"),
        (" 'http://localhost' ", "http://localhost:80"),
        ("https://box.lan/ollama", "https://box.lan:443"),
        ("[::]:11435", "http://[::1]:11435"),
        ("box:none", "http://box:none"),
    ],
)
def test_a_host_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_an_address_without_a_scheme_is_of_http() -> None:
    assert with_scheme("127.0.0.1:8080") == "http://127.0.0.1:8080"
    assert with_scheme("https://127.0.0.1") == "https://127.0.0.1"


def test_the_server_that_the_variable_names_comes_first() -> None:
    with OllamaServer([]) as server:
        host = server.base_url.removeprefix("http://")
        assert find_server(WantedServer(ollama_host=host)).base_url == server.base_url


def test_a_variable_that_names_another_machine_is_said_where_nobody_else_answers() -> None:
    with pytest.raises(ModelError, match=r"OLLAMA_HOST: .* is not this machine"):
        find_server(WantedServer(ollama_host="192.0.2.1", provider="ollama"))


def test_of_servers_that_fail_the_busy_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "INFO_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        places = (("ollama", "http://127.0.0.1:1"), ("openai", url))
        monkeypatch.setattr(discovery, "USUAL_PLACES", places)
        with pytest.raises(ServerBusy, match=f"{url} is busy: /v1/models was not answered within 0.2 s"):
            find_server(WantedServer())


BARE = "def test_a():\n    pass\n"
UNIT = "import unittest\n\n\nclass T(unittest.TestCase):\n    pass\n"
PYTEST = "python3 -m pytest -q"


def package(test: str = "node --test", **more: object) -> str:
    return json.dumps({"name": "a", "scripts": {"test": test}, **more})


MEMBER = {"packages/x/package.json": package()}
PRIVATE = json.dumps({"private": True, "workspaces": ["packages/*"]})
TESTS = {"tests/test_a.py": BARE}
REPOSITORIES: dict[str, tuple[Mapping[str, str], str | None]] = {
    "pytest by its table": ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, PYTEST),
    "pytest by its file": ({"pytest.ini": "[pytest]\n"}, PYTEST),
    "pytest by its hidden file": ({".pytest.ini": "[pytest]\n", "check/a.py": BARE}, PYTEST),
    "pytest by its TOML": ({"pytest.toml": "[pytest]\n", "check/test_a.py": BARE}, PYTEST),
    "pytest by setup.cfg": ({"setup.cfg": "[tool:pytest]\n"}, PYTEST),
    "pytest by tox.ini": ({"tox.ini": "[pytest]\ntestpaths = check\n", "check/test_a.py": BARE}, PYTEST),
    "pytest by a conftest": ({"tests/conftest.py": ""}, PYTEST),
    "pytest by an import": ({"tests/test_a.py": "import pytest\n"}, PYTEST),
    "pytest by bare functions": (TESTS, PYTEST),
    "pytest beside unittest": ({"tests/test_a.py": UNIT, "tests/test_b.py": "import pytest\n"}, PYTEST),
    "tests in folders of tests": ({"tests/unit/test_a.py": BARE}, PYTEST),
    "tests by their suffix": ({"tests/a_test.py": BARE}, PYTEST),
    "tests in a package": ({"src/p/tests/test_a.py": BARE}, PYTEST),
    "tests in one of several packages": ({"packages/a/tests/test_a.py": BARE}, PYTEST),
    "tests for unittest where it does not look": (
        {"tests/unit/test_a.py": UNIT, "tests/web/test_b.py": UNIT},
        PYTEST,
    ),
    "tests for unittest with a suffix": ({"tests/a_test.py": UNIT}, PYTEST),
    "unittest": ({"tests/__init__.py": "", "tests/test_a.py": UNIT}, "python3 -m unittest -v"),
    "unittest at the top": ({"test_a.py": UNIT}, "python3 -m unittest -v"),
    "unittest in a folder": ({"tests/test_a.py": UNIT}, "python3 -m unittest discover -v -s tests"),
    "Django": (
        {"manage.py": "", "polls/tests.py": "from django.test import TestCase\n"},
        "python3 manage.py test",
    ),
    "Django in a folder": (
        {"site/manage.py": "", "site/polls/tests.py": "from django.test import TestCase\n"},
        "cd site && python3 manage.py test",
    ),
    "nose2": ({**TESTS, "unittest.cfg": "[unittest]\n"}, "python3 -m nose2 -v"),
    "Django by pytest": ({"manage.py": "", "pytest.ini": "[pytest]\n", "polls/tests.py": ""}, PYTEST),
    "Python in a folder": (
        {"backend/pyproject.toml": "[tool.pytest]\n", "backend/uv.lock": "", "backend/tests/test_a.py": BARE},
        "cd backend && uv run pytest -q",
    ),
    "unittest in a folder with a project": (
        {"a b/setup.py": "", "a b/tests/test_a.py": UNIT},
        "cd 'a b' && python3 -m unittest discover -v -s tests",
    ),
    "a file of tests that pytest does not look for": (
        {"test.py": "import pytest\n", "app/tests.py": BARE},
        f"{PYTEST} -o python_files='test.py tests.py'",
    ),
    "such a file that is configured": (
        {"tests.py": "import pytest\n", "setup.cfg": "[tool:pytest]\npython_files = tests.py\n"},
        PYTEST,
    ),
    "an environment in the tree": (
        {"pytest.ini": "", ".venv/bin/python": "", "uv.lock": ""},
        ".venv/bin/python -m pytest -q",
    ),
    "uv": ({**TESTS, "uv.lock": ""}, "uv run pytest -q"),
    "uv for unittest": ({"test_a.py": UNIT, "uv.lock": ""}, "uv run python -m unittest -v"),
    "poetry": ({**TESTS, "poetry.lock": ""}, "poetry run pytest -q"),
    "poetry without a lock": ({**TESTS, "pyproject.toml": "[tool.poetry]\n"}, "poetry run pytest -q"),
    "pdm": ({**TESTS, "pdm.lock": ""}, "pdm run pytest -q"),
    "pipenv": ({**TESTS, "Pipfile": ""}, "pipenv run pytest -q"),
    "hatch": (
        {"pyproject.toml": '[tool.hatch.envs.default.scripts]\ntest = "pytest check"\n'},
        "hatch run test",
    ),
    "an environment of hatch": (
        {**TESTS, "hatch.toml": '[envs.dev.scripts]\ntest = "pytest"\n'},
        "hatch run dev:test",
    ),
    "hatch's own tests": ({"pyproject.toml": "[tool.hatch.envs.hatch-test]\n"}, "hatch test"),
    "nox": ({"noxfile.py": "import nox\n\n\n@nox.session\ndef tests(session):\n    pass\n"}, "nox -s tests"),
    "nox with other sessions": ({"noxfile.py": "import nox\n"}, "nox"),
    "tox": ({"tox.ini": "[tox]\n"}, "tox -q"),
    "tox in pyproject.toml": ({"pyproject.toml": "[tool.tox]\n"}, "tox -q"),
    "npm": ({"package.json": package()}, "npm test"),
    "npm with a mark at the beginning": ({"package.json": "\ufeff" + package()}, "npm test"),
    "pixi": ({**TESTS, "pixi.lock": ""}, "pixi run pytest -q"),
    "pixi without a lock": ({**TESTS, "pixi.toml": "[workspace]\n"}, "pixi run pytest -q"),
    "uv by its settings": ({**TESTS, "uv.toml": ""}, "uv run pytest -q"),
    "rye": ({**TESTS, "pyproject.toml": "[tool.rye]\n"}, "rye run pytest -q"),
    "a task of pixi": ({"pixi.toml": '[tasks]\ntest = "ctest"\n'}, "pixi run test"),
    "a task of pixi in pyproject.toml": (
        {"pyproject.toml": '[tool.pixi.tasks]\ncheck = "ctest"\n'},
        "pixi run check",
    ),
    "a script of pdm": ({"pyproject.toml": '[tool.pdm.scripts]\ntest = "x"\n'}, "pdm run test"),
    "a script of rye": ({"pyproject.toml": '[tool.rye.scripts]\ntest = "x"\n'}, "rye run test"),
    "a task of poe": ({"pyproject.toml": '[tool.poe.tasks]\ntest = "x"\n'}, "poe test"),
    "a task of taskipy": ({"pyproject.toml": '[tool.taskipy.tasks]\ntests = "x"\n'}, "task tests"),
    "a script of pipenv": ({"Pipfile": '[scripts]\ntest = "x"\n'}, "pipenv run test"),
    "a task of mise": ({"mise.toml": '[tasks.test]\nrun = "x"\n'}, "mise run test"),
    "invoke": ({"tasks.py": "from invoke import task\n\n\n@task\ndef test(c):\n    pass\n"}, "invoke test"),
    "invoke by a package": (
        {"tasks/__init__.py": "import invoke\n\n\n@invoke.task\ndef unit_test(c):\n    pass\n"},
        "invoke unit-test",
    ),
    "tasks that are none": ({"tasks.py": "def test(c):\n    pass\n"}, None),
    "a table after a mark": ({"pyproject.toml": "\ufeff[tool.pytest]\n"}, PYTEST),
    "npm's other script": (
        {"package.json": json.dumps({"scripts": {"test:unit": "jest"}})},
        "npm run test:unit",
    ),
    "pnpm": ({"package.json": package(), "pnpm-lock.yaml": ""}, "pnpm test"),
    "yarn": ({"package.json": package(), "yarn.lock": ""}, "yarn test"),
    "bun": ({"package.json": package(), "bun.lock": ""}, "bun run test"),
    "the named package manager": ({"package.json": package(packageManager="pnpm@9.1.0")}, "pnpm test"),
    "npm's workspaces": ({"package.json": PRIVATE, **MEMBER}, "npm test --workspaces --if-present"),
    "pnpm's workspaces": ({"package.json": "{}", "pnpm-workspace.yaml": "", **MEMBER}, "pnpm -r test"),
    "yarn's workspaces": ({"package.json": PRIVATE, "yarn.lock": "", **MEMBER}, "yarn workspaces run test"),
    "newer yarn's workspaces": (
        {"package.json": PRIVATE, "yarn.lock": "", ".yarnrc.yml": "", **MEMBER},
        "yarn workspaces foreach -A run test",
    ),
    "a package in a folder": ({"web/package.json": package()}, "npm --prefix web test"),
    "vitest without a script": (
        {"package.json": json.dumps({"devDependencies": {"vitest": "1"}})},
        "npx vitest run",
    ),
    "node's runner without a script": ({"a.test.js": "const t = require('node:test')\n"}, "node --test"),
    "bun's runner without a script": ({"a.test.ts": "import { test } from 'bun:test'\n"}, "bun test"),
    "vitest in what tests import": ({"package.json": "{}", "a.test.ts": "from 'vitest'"}, "npx vitest run"),
    "mocha by its settings": ({"package.json": "{}", ".mocharc.json": "{}"}, "npx mocha"),
    "bun by its settings": ({"bunfig.toml": "[test]\n", "a.test.ts": "test()"}, "bun test"),
    "deno without settings": ({"a_test.ts": "Deno.test('a', () => {})\n"}, "deno test"),
    "lerna": ({"package.json": "{}", "lerna.json": "{}", **MEMBER}, "npx lerna run test"),
    "nx": ({"package.json": "{}", "nx.json": "{}"}, "npx nx run-many -t test"),
    "a script that watches, and one that does not": (
        {"package.json": json.dumps({"scripts": {"test": "jest --watch", "test:ci": "jest"}})},
        "npm run test:ci",
    ),
    "a script that watches": (
        {
            "package.json": json.dumps(
                {"scripts": {"test": "ava --watch"}, "devDependencies": {"ava": "6", "tsx": "4"}}
            )
        },
        "npx ava",
    ),
    "a script that is told not to watch": ({"package.json": package("jest --watchAll=false")}, "npm test"),
    "npm's placeholder": ({"package.json": package('echo "Error: no test specified" && exit 1')}, None),
    "deno": ({"deno.json": '{"tasks":{"test":"deno test"}}'}, "deno task test"),
    "deno with comments": ({"deno.jsonc": "// mine\n{}", "a_test.ts": ""}, "deno test"),
    "go": ({"go.mod": "module a\n", "a_test.go": ""}, "go test ./..."),
    "cargo": ({"Cargo.toml": "[package]\n"}, "cargo test"),
    "cargo in a folder": ({"rust/Cargo.toml": "[package]\n"}, "cd rust && cargo test"),
    "a script in a folder": ({"ci/test.sh": ""}, None),
    "sbt": ({"build.sbt": ""}, "sbt test"),
    "dart": ({"pubspec.yaml": ""}, "dart test"),
    "gradle": ({"build.gradle": "", "gradlew": ""}, "./gradlew test"),
    "maven": ({"pom.xml": "<project/>"}, "mvn -q test"),
    "a script": ({"script/test": "#!/bin/sh\n"}, "script/test"),
    "make test-unit": ({"Makefile": "test-unit:\n\techo\n"}, "make test-unit"),
    "make test": ({"Makefile": "all:\n\ntest: all\n\tsh t.sh\n"}, "make test"),
    "make in small letters": ({"makefile": "test :\n\techo hi\n"}, "make test"),
    "make with several targets": ({"GNUmakefile": ".PHONY: test\nlint test:: x\n"}, "make test"),
    "make check": ({"Makefile": "check:\n\tsh t.sh\n"}, "make check"),
    "a Makefile without": ({"Makefile": "all:\ntest := 1\n.PHONY: test\n"}, None),
    "just": ({"justfile": "test filter='a':\n    pytest check\n"}, "just test"),
    "task by another name": ({"Taskfile.dist.yaml": "tasks:\n  'test': x\n"}, "task test"),
    "task with a name in two parts": (
        {"taskfile.yml": "tasks:\n  test:unit:\n    cmd: x\n"},
        "task test:unit",
    ),
    "task": ({"Taskfile.yml": "version: 3\ntasks:\n  test:\n    cmd: go test\n"}, "task test"),
    "a package.json that is none": ({"package.json": "[1"}, None),
    "nothing": ({"README": "hello"}, None),
    "a broken pyproject": ({"pyproject.toml": "[tool.pytest", "Makefile": "test:\n"}, "make test"),
}


def find(top: Path) -> str | None:
    paths = [
        path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_symlink() or not path.is_dir()
    ]
    return next(iter(find_test_commands(top, paths)), None)


def write(top: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", REPOSITORIES)
def test_the_test_command_is_the_one_that_the_files_tell_of(name: str, tmp_path: Path) -> None:
    files, expected = REPOSITORIES[name]
    write(tmp_path, files)
    assert find(tmp_path) == expected


def test_each_tool_of_a_repository_has_its_command(tmp_path: Path) -> None:
    files = {**TESTS, "package.json": package(), "Makefile": "test:\n", "tox.ini": "[tox]\n"}
    write(tmp_path, files)
    assert find_test_commands(tmp_path, tuple(files)) == (PYTEST, "npm test", "make test", "tox -q")


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "package.json", "Makefile"])
@pytest.mark.parametrize("goal", ["/proc/self/mem", "/dev/zero", "fifo"])
def test_links_and_devices_tell_nothing(name: str, goal: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if goal == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(goal)
    assert find(tmp_path) is None


def test_a_folder_of_tests_elsewhere_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"test_a.py": "import pytest\n"})
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "tests").symlink_to(tmp_path / "elsewhere")
    assert find(tmp_path / "repo") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "tool = 1\n"), ("pyproject.toml", "x = " + "9" * 5000), ("package.json", "[1]"), ("package.json", "[" * 99_999),
        ("package.json", '{"scripts": 1}'), ("package.json", '{"scripts": {"test": 1}}'),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_project_file_of_another_shape_tells_nothing(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert find(tmp_path) is None
