"""Who reads what is fuzzed: each target takes a text through the program's own doors, and checks what was promised."""

import json
import os
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import httpx
from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent import file_contents, safe_open
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.model_calls import CallIdentity
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.plans import MetaPlan, Part, PlanStep
from clean_room_agent.errors import ModelError
from clean_room_agent.execute.edits.apply import apply_edits, paths_named
from clean_room_agent.execute.edits.feedback import describe as feedback
from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.execute.edits.rules import is_control_path, path_fault
from clean_room_agent.execute.failure_signals import failure_signals
from clean_room_agent.execute.implement import AttemptSummary, StepInstruction, implement
from clean_room_agent.execute.plan import PlanLimits, Route, adjust, make_meta_plan, make_part_plan
from clean_room_agent.execute.plan_artifact import plan_from_artifact
from clean_room_agent.execute.plan_drafts import StepOutcome
from clean_room_agent.execute.plan_file import load_plan
from clean_room_agent.indexer.extract import extract
from clean_room_agent.indexer.imports.ecmascript import EcmaScriptModules
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import ChatRequest, ModelServer, Sampling
from clean_room_agent.llm.transports.ollama import OllamaTransport
from clean_room_agent.llm.transports.openai import OpenAiTransport
from clean_room_agent.llm.transports.replay import ReplayTransport, load_calls
from clean_room_agent.llm.transports.server_errors import read_refusal
from clean_room_agent.orchestrator.testing.failure_reports import SourceTree, describe, frames_of
from clean_room_agent.orchestrator.testing.javascript_output import (
    read_jest,
    read_mocha,
    read_node,
    read_vitest,
)
from clean_room_agent.orchestrator.testing.output import normalise, normalise_name, strip_escapes
from clean_room_agent.orchestrator.testing.python_reports import read_report, read_unittest
from clean_room_agent.paths import is_secret_name, matches_glob
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.faults import fuzz_seeds as seeds
from testing.faults.mutation import damaged

RECORDING = Path(__file__).parents[2] / "src/clean_room_agent/app/demo_assets/recording.jsonl"
LONGEST_ANSWER = 60_000
"""Characters: more than 16,000 tokens of code."""
SERVER = "http://127.0.0.1:11434"
CODER = ModelConfig(
    tag="coder:3b", role="coding", provider="x", window=4096, reserved=1024, temperature=0, max_tokens=None
)
IDENTITY = CallIdentity(pass_id="p", prompt="implement", item="", attempt=0)
REQUEST = ChatRequest(
    identity=IDENTITY, model=CODER, system="s", prompt="p", schema=None, wants_logprobs=True, max_tokens=9, sampling=Sampling()
)  # fmt: skip
IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
CONTROLLED = frozenset({".git", ".clean_room", ".hg", ".svn", ".jj", "git~1", "clean_~1"})
MODULES = (
    "package.json", "tsconfig.json", "src/x.ts", "src/a/index.ts", "lib/index.js", "packages/b/package.json", "packages/b/src/main.ts",
    "packages/b/tsconfig.json", "a.ts", "c/index.js", "pnpm-workspace.yaml", "gen/x.ts", "tsconfig.base.json",
)  # fmt: skip
SPECIFIERS = (
    "@app/a",
    "@app/a/x",
    "x",
    "./x",
    "../a",
    "#inner/y",
    "b",
    "b/src/main",
    "/a",
    "a?raw",
    "c",
    ".",
    "",
)


class Broken(Exception):
    """Something that is promised is not so; the message says what."""


class Target(Struct, frozen=True, kw_only=True):
    """A reader, with valid examples of what it reads."""

    name: str
    weight: int
    seeds: Sequence[str]
    words: Sequence[str]
    read: Callable[[str, random.Random], None]
    longest: int = 100_000
    """In characters."""


def make_targets(folder: Path) -> tuple[Target, ...]:
    """All of them. `folder` holds the files that must exist to be read."""
    calls = RECORDING.read_text(encoding="utf-8").split("\n")
    answers = [call.answer.response for call in load_calls("\n".join(calls), source="")]
    examples = [prompt.example for prompt in PROMPTS]
    recordings = ["\n".join((calls[0], call)) for call in sorted(calls[1:-1], key=len)[:6]]
    sources = (seeds.PYTHON, seeds.TYPESCRIPT, seeds.MARKDOWN, seeds.MIXED, seeds.PYPROJECT)
    configs = (seeds.TSCONFIG, json.dumps(seeds.PACKAGE), seeds.PNPM)
    return (
        Target(name="answers", weight=25, seeds=(*examples, *answers), words=(*seeds.JSON_WORDS, *seeds.EDIT_WORDS), longest=LONGEST_ANSWER, read=_answers),
        Target(name="edits", weight=9, seeds=(*seeds.EDITS, *answers[-3:]), words=seeds.EDIT_WORDS, longest=LONGEST_ANSWER, read=_edits),
        Target(name="paths", weight=30, seeds=seeds.PATHS, words=seeds.PATH_WORDS, read=partial(_paths, folder)),
        Target(name="globs", weight=5, seeds=seeds.GLOBS, words=seeds.PATH_WORDS, read=_globs),
        Target(name="plans", weight=16, seeds=seeds.PLANS, words=seeds.JSON_WORDS, read=_plans),
        Target(name="planning", weight=1, seeds=seeds.PLANNED, words=seeds.JSON_WORDS, longest=LONGEST_ANSWER, read=_planning),
        Target(name="configuration", weight=18, seeds=(seeds.CONFIG, *seeds.CONFIG.split("\n\n")), words=seeds.CONFIG_WORDS, read=partial(_configuration, folder)),
        Target(name="reports", weight=4, seeds=(seeds.JUNIT,), words=seeds.JUNIT_WORDS, read=partial(_reports, folder)),
        Target(name="test output", weight=4, seeds=seeds.OUTPUTS, words=seeds.OUTPUT_WORDS, read=_output),
        Target(name="import settings", weight=4, seeds=configs, words=(*seeds.JSON_WORDS, *seeds.PATH_WORDS), read=_import_settings),
        Target(name="ollama", weight=3, seeds=seeds.OLLAMA, words=seeds.SERVER_WORDS, read=partial(_server, OllamaTransport)),
        Target(name="openai", weight=3, seeds=seeds.OPENAI, words=seeds.SERVER_WORDS, read=partial(_server, OpenAiTransport)),
        Target(name="refusals", weight=4, seeds=seeds.OPENAI, words=seeds.SERVER_WORDS, read=_refusals),
        Target(name="recordings", weight=2, seeds=recordings, words=seeds.JSON_WORDS, read=_recordings),
        Target(name="text files", weight=10, seeds=sources, words=("# -*- coding: latin-1 -*-\n", "# coding: utf-7\n", "# coding: idna\n"), read=_text_files),
        Target(name="source files", weight=1, seeds=sources[:2], words=("def ", "class ", "(", ")", "import ", "from . import *\n", "@", "=>", "`"), read=partial(_source_files, folder)),
    )  # fmt: skip


def _answers(text: str, rng: random.Random) -> None:
    tokens = tuple(
        TokenChoice(token=word, top=((word, rng.choice((0.0, -0.1, -50.0, 3.0, float("-inf")))),))
        for word in text.split(" ", 3)[:3]
        if rng.random() < 0.5
    )
    for prompt in rng.sample(PROMPTS, 3):
        prompt.parse(text, tokens)


def _edits(text: str, rng: random.Random) -> None:
    edits = parse_edits(text)
    if not isinstance(edits, tuple):
        return
    try:
        again = parse_edits(render_edits(edits))
    except ValueError:
        pass
    else:
        plain = tuple(replace(edit, answer_line=0) for edit in edits)
        if not isinstance(again, tuple) or tuple(replace(edit, answer_line=0) for edit in again) != plain:
            raise Broken("edits that were written do not read back")
    _applied(edits, rng)


def _applied(edits: tuple[PatchEdit, ...], rng: random.Random) -> None:
    package = rng.choice(seeds.PACKAGES)
    named = set(paths_named(edits))
    files = {path: text for path, text in seeds.SOURCES.items() if path in named}
    before = dict(files)
    applied = apply_edits(edits, files, package, seeds.RULES)
    feedback(applied.result)
    if files != before:
        raise Broken("the texts that were given have changed")
    if not applied.result.success and (applied.texts or applied.result.files_modified):
        raise Broken("some edits of a refused answer were applied")
    allowed = {target.path for target in seeds.TARGETS} | {item.path for item in package.primary()}
    for path, text in applied.texts.items():
        if path not in allowed or path == "tests/test_a.py" or _reaches_control(path):
            raise Broken(f"{path!r} was edited")
        if text is None and path != "old.py":
            raise Broken("a file was deleted that the plan does not delete")
        if text is not None:
            _encoded(files.get(path, ""), text)
            if all(edit.kind == "insert" for edit in edits if edit.file_path == path):
                _kept(files[path], text)


def _kept(old: str, new: str) -> None:
    """All that stood in a text stands in it, in its order, after something was inserted."""
    rest = iter(new)
    if not all(letter in rest for letter in old if not letter.isspace()):
        raise Broken("an insert took something away")


def _encoded(old: str, new: str) -> None:
    """What the edit made of the text can be written in the file's own form, or that is refused."""
    for data in (old.encode(), b"\xef\xbb\xbf" + old.replace("\r\n", "\n").replace("\n", "\r\n").encode()):
        try:
            file_contents.decode(data).encode(new)
        except file_contents.NotTextError:
            continue


def _paths(folder: Path, path: str, rng: random.Random) -> None:
    fine = not path_fault(path) and not is_control_path(path)
    is_secret_name(path)
    if fine and _reaches_control(path):
        raise Broken("a path into a control folder is not refused")
    if fine and not os.path.normpath(folder / path).startswith(f"{folder}/"):
        raise Broken("a path that leads out is not refused")
    if rng.random() < 0.2:
        for look in (safe_open.read_bytes, safe_open.status):
            try:
                look(folder, path)
            except OSError:
                continue


def _reaches_control(path: str) -> bool:
    """Whether some file system takes the path for one of a control folder: said otherwise than the program says it."""
    for name in re.split(r"[/\\]", path):
        forms = (IGNORED_BY_HFS.sub("", name), name.split(":")[0].rstrip(" ."), name)
        for form in forms:
            folded = {unicodedata.normalize("NFD", form.lower()), form.casefold(), form.upper().lower()}
            if folded & CONTROLLED:
                return True
    return False


def _globs(pattern: str, rng: random.Random) -> None:
    for path in ("a/b/c.py", "a/" * 30 + "x.py", rng.choice(seeds.PATHS)):
        matches_glob(path, (pattern,))


def _plans(text: str, _rng: random.Random) -> None:
    plan = load_plan(text, "plan.json")
    if load_plan(plan.model_dump_json(), "plan.json") != plan:
        raise Broken("a plan that was written does not read back")
    if not isinstance(plan, MetaPlan):
        plan_from_artifact(plan)
        named = [file.path for file in plan.affected_files]
    else:
        named = [path for part in plan.parts for path in part.affected_files]
    if any(_reaches_control(path) for path in named):
        raise Broken("a plan names a control folder")


def _planning(text: str, rng: random.Random) -> None:
    models = model_client(ScriptedTransport(lambda _: text), MemorySink(), window=32_768)
    limits, package = PlanLimits(max_parts=3, max_steps=3, max_lines=200), seeds.PACKAGES[0]
    part, step = (
        Part(id="p1", description="x"),
        PlanStep(id="s1", description="x", target_files=seeds.TARGETS[:1]),
    )

    route: Route = rng.choice(("one-call", "decomposed"))
    match rng.randrange(4):
        case 0:
            make_meta_plan(models, package, pass_id="t:m", evidence=Evidence(), limits=limits, route=route)
        case 1:
            meta = MetaPlan(task_summary="x", parts=(part,))
            make_part_plan(
                models, package, part, meta, pass_id="t:p", paths=seeds.SOURCES, diff="", limits=limits, evidence=Evidence(),
                route=route
            )  # fmt: skip
        case 2:
            failures = failure_signals(AttemptOutcome.TESTS_FAILED, text[:500])
            outcomes = (StepOutcome(step=step, succeeded=False, detail=text[:500], failures=failures),)
            adjust(
                models, package, part, (step,), outcomes, task="x", pass_id="t:a", paths=seeds.SOURCES, diff=text[:500], limits=limits,
                route=route
            )  # fmt: skip
        case _:
            failed = AttemptSummary(outcome="refused", why="refused", edits=(), feedback=text[:2000])
            instruction = StepInstruction(task="x", part="x", step=step, failures=(failed,))
            implement(models, package, instruction, pass_id="t:i")


def _configuration(folder: Path, text: str, rng: random.Random) -> None:
    file = folder / "config.toml"
    file.write_bytes(damaged(rng, text))
    settings = load_settings(file, Overrides(context_window=rng.choice((None, None, 10, 100_000))))
    if "models" in settings.data:
        url = settings.models.base_url
        host = httpx.URL(url).host
        local = host in {"localhost", "::1"} or re.fullmatch(
            r"127(\.\d+){3}|.*\.localhost|::ffff:127(\.\d+){3}|::ffff:7f.*", host
        )
        if not settings.models.allow_remote and not local:
            raise Broken(f"{url!r} counts as this machine")


def _reports(folder: Path, text: str, rng: random.Random) -> None:
    file = folder / "report.xml"
    file.write_bytes(damaged(rng, text))
    reading = read_report(file, lambda path: safe_open.is_file(folder, path))
    for failure in reading.failures:
        describe(failure, (folder,), _Tree(folder))


class _Tree(SourceTree):
    """Knows the files of the seeds by name."""

    def exists(self, path: str) -> bool:
        return path in seeds.SOURCES


def _output(text: str, _rng: random.Random) -> None:
    plain = strip_escapes(text)
    if "\x1b" in plain or "\x9b" in plain:
        raise Broken("a terminal escape is left")
    roots = (Path("/home/me/project"), Path("/home/me/w"))
    for reader in (read_unittest, read_jest, read_vitest, read_mocha, read_node):
        reading = reader(plain)
        if reading is None:
            continue
        for name in reading.report.outcomes:
            normalise_name(name, roots)
        for failure in reading.failures[:20]:
            describe(failure, roots, _Tree(roots[0]))
    frames_of(normalise(text, roots), lambda path: path in seeds.SOURCES)


def _import_settings(text: str, rng: random.Random) -> None:
    valid = {
        "package.json": seeds.PACKAGE,
        "tsconfig.json": seeds.TSCONFIG,
        "pnpm-workspace.yaml": seeds.PNPM,
    }
    changed = rng.choice(
        (*MODULES[:2], "pnpm-workspace.yaml", "packages/b/package.json", "tsconfig.base.json")
    )

    def read(path: str) -> str | None:
        return text if path == changed else str(valid.get(path, "{}"))

    modules = EcmaScriptModules(MODULES, read)
    for specifier in rng.sample(SPECIFIERS, 4):
        found = modules.find(rng.choice(("a.ts", "packages/b/src/main.ts", "src/a/index.ts")), specifier)
        if found is not None and found not in MODULES:
            raise Broken("an import leads to a file that there is not")
    modules.is_entry("src/a/index.ts")


def _server(kind: type[OllamaTransport] | type[OpenAiTransport], text: str, rng: random.Random) -> None:
    status = rng.choice((200, 200, 200, 400, 404, 500, 503))
    data = damaged(rng, text)
    told = rng.random() < 0.8

    def handle(sent: httpx.Request) -> httpx.Response:
        if told and sent.url.path == "/api/show":
            return httpx.Response(200, json={})
        return httpx.Response(status, content=data)

    transport = httpx.MockTransport(handle)
    config = models_config(SERVER, streaming=rng.random() < 0.7)
    with httpx.Client(base_url=SERVER, transport=transport) as client:
        server = cast("ModelServer", kind(config, client))
        server.send(REQUEST)
        asks: tuple[Callable[[], object], ...] = (
            server.version,
            server.list_models,
            lambda: server.show("coder:3b"),
            lambda: server.window("coder:3b"),
            lambda: server.count("coder:3b", "s", "p"),
        )
        for ask in rng.sample(asks, 2):
            try:
                ask()
            except ModelError:
                continue


def _refusals(text: str, _rng: random.Random) -> None:
    read_refusal(text)


def _recordings(text: str, _rng: random.Random) -> None:
    for call in load_calls(text, source="r"):
        ReplayTransport([call]).send(
            replace(
                REQUEST,
                identity=call.site.identity,
                system=call.request.system_prompt,
                prompt=call.request.prompt,
            )
        )


def _text_files(text: str, rng: random.Random) -> None:
    data = damaged(rng, text)
    try:
        file = file_contents.decode(data)
    except file_contents.NotTextError:
        return
    if file.encode(file.text) != data:
        raise Broken("a text file does not survive a round trip")
    lines = file.text.split("\n")
    at = rng.randrange(len(lines))
    head, tail = "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    try:
        changed = file.encode(
            "\n".join((*([head] if at else []), "new", *([tail] if at + 1 < len(lines) else [])))
        )
    except file_contents.NotTextError:
        return
    kept_head = file.encode(head + "\n") if at else b""
    if not changed.startswith(kept_head) or not data.startswith(kept_head):
        raise Broken("a byte before the edited line has changed")


def _source_files(folder: Path, text: str, rng: random.Random) -> None:
    name = rng.choice(("source.py", "source.ts", "source.tsx", "source.js"))
    (folder / name).write_bytes(damaged(rng, text))
    extract(folder, name, max_bytes=200_000)
