"""`cra tonight`: plants faults in the user's own repositories, trains an adapter on them, and lets the gate decide.

```
<folder>/tonight.json   what was asked for, and the dataset once there is one
<folder>/data/          the dataset
<folder>/tonight.html   the page
```

Begun again, it continues: faults are in shards, a training has checkpoints, and the record knows the adapter of a dataset and
its evaluation.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.adapter_training import WORK, train_dataset, version_of, versions_in
from clean_room_agent.app.clock import clock_in, utc_now
from clean_room_agent.app.indexing import processors
from clean_room_agent.app.night_checks import Ready, require_ready, without_adapters
from clean_room_agent.app.open_adapters import OpenAdapters, open_adapters
from clean_room_agent.app.own_llama_server import own_llama_server
from clean_room_agent.app.planting import FaultUnit, make_fault_shard, plant
from clean_room_agent.app.prompts import BY_NAME, FILL
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.synthetic_data import making_of, record_dataset
from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import AdapterRow, EvaluationRow, list_adapters, list_evaluations
from clean_room_agent.errors import CommandError, CraError, UsageError
from clean_room_agent.execute.forms.worded import FUNCTION
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.git.repository import find_top
from clean_room_agent.json_values import from_json, to_json
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.report.page.night import NightData
from clean_room_agent.training import bootstrap, convert
from clean_room_agent.training.bootstrap import Mined
from clean_room_agent.training.commit_sources import Exclusions, Listed, open_sources
from clean_room_agent.training.dataset import DatasetEntry
from clean_room_agent.training.dataset_filters import FUNCTION_RULE, TEST_ROWS, split_functions
from clean_room_agent.training.deployment import require_gguf
from clean_room_agent.training.evaluation import material_of
from clean_room_agent.training.gate import MIN_EXAMPLES
from clean_room_agent.training.train import Machine
from clean_room_agent.training.train_plan import Hyperparameters
from clean_room_agent.training.training_time import READING, shortest_rows, tokens_a_second, tokens_of
from clean_room_agent.workspace import Workspace, private_folder

STATE, PAGE, DATA = "tonight.json", "tonight.html", "data"
ROWS_OF_FAULT, TOKENS_OF_ROW = 4, 250
"""What is usual, to say something before faults are planted."""
PER_FUNCTION = (2, 4, 8)
"""Faults in a function, at most: as few as give the faults that are wanted."""
SECONDS_OF_FAULT = 4.0
"""Besides its tests: a checkout, an index, the questions."""
TESTS_OF_FAULT = 2
"""Runs of all tests, in time."""
Progress = Callable[[int, int, str], None]


class Request(Struct, frozen=True, kw_only=True):
    """What was asked for; the same continues a night, and nothing else does."""

    repositories: tuple[tuple[str, str], ...]
    """Each with the commit that it had when the night began."""
    base: str
    faults: int
    """In each repository, at most."""
    hours: float
    """That the training may take."""
    device: str


class State(Struct, frozen=True, kw_only=True):
    """How far a night has come; the rest is in the record."""

    request: Request
    data: NightData | None = None


class Night(Struct, kw_only=True):
    """One night, begun or continued."""

    workspace: Workspace
    settings: Settings
    folder: Path
    state: State
    machine: Machine
    ready: Ready
    progress: Progress
    say: Callable[[str], None]
    mined: Mined | None = None

    @property
    def request(self) -> Request:
        """What was asked for."""
        return self.state.request

    @property
    def data(self) -> NightData:
        """The dataset, which has been made."""
        assert self.state.data is not None
        return self.state.data

    @property
    def speed(self) -> float:
        """Tokens a second of the training, on this machine's processors."""
        bfloat16 = self.machine.dtype == "bfloat16"
        return tokens_a_second(self.ready.parameters, processors(), bfloat16=bfloat16)

    def learn(self) -> None:
        """Run the repositories' tests, unless it is known what they run, and draw the faults.

        Raises:
            UsageError: there is nothing to plant one in.
        """
        sources = _requested_sources(self.request)
        making = making_of(self.settings, None, of_faults=True)
        for per_function in PER_FUNCTION:
            mined = plant(
                sources,
                self._bootstrap_folder,
                making,
                self.settings,
                self._progress_callback(" repositories' tests"),
                most=self.request.faults,
                per_function=per_function,
            )
            if mined.unread or mined.seen == self.request.faults * len(sources):
                break
        if not mined.units:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in mined.unread)
            raise UsageError(
                f"no fault can be planted: {reasons}",
                hint="its tests must pass where it is committed; `cra check --tests` runs them once",
            )
        self.mined = mined

    def outlook(self) -> list[str]:
        """What is to come, in lines, before it is begun."""
        assert self.mined is not None
        request = self.request
        units = [unit for unit in self.mined.units if isinstance(unit, FaultUnit)]
        work = sum(
            len(unit.faults) * (SECONDS_OF_FAULT + TESTS_OF_FAULT * unit.learned.seconds) for unit in units
        )
        data = work / processors()
        made = self.mined.seen * ROWS_OF_FAULT
        rows = made - min(TEST_ROWS, made // 2)
        training = self._training_seconds(rows * TOKENS_OF_ROW)
        repositories = counted(len({unit.repo for unit in units}), "repository", "repositories")
        planting = (
            f"{counted(self.mined.seen, 'fault')} in {repositories}, on {counted(processors(), 'processor')}"
        )
        lines = [
            f"1. data: {planting}: about {_format_duration(data)}, until {clock_in(data)}",
            f"2. training: a base of {self.ready.parameters / 1e9:.2g}B parameters, usually {rows:,} rows; "
            + (
                "on a GPU: how long is known after its first updates"
                if self.ready.gpu
                else f"about {_format_duration(training)}, until {clock_in(data + training)}; at most {request.hours:g} h"
            ),
            "3. gate: base and adapter answer what was held out"
            + (f"; {self.ready.program} is started for it" if self.ready.program else ""),
        ]
        return lines + [f"not used: {name}: {reason}" for name, reason in self.mined.unread]

    def make_data(self) -> None:
        """Plant the faults, as far as that is not done, and write the dataset.

        Raises:
            CraError: there is no row to train on, or none to test with.
        """
        assert self.mined is not None
        self._save_state(self.state)
        making = making_of(self.settings, None, of_faults=True)
        shards = self._bootstrap_folder / "shards"
        bootstrap.make_shards(
            partial(make_fault_shard, shards, making=making, settings=self.settings),
            bootstrap.missing_units(shards, self.mined.units, making),
            self._progress_callback(" units of faults"),
            jobs=processors(),
            engine="local",
        )
        prompt = FILL.name if self.ready.fills else FUNCTION.name
        made = bootstrap.assemble(shards, self.mined, making, partial(split_functions, stage=prompt))
        own = [entry for entry in made.entries if entry.row.origin.stage == prompt]
        test = [entry for entry in own if entry.split == "test"]
        chosen = self._trainable_rows([entry for entry in own if entry.split == "train"])
        unused = {
            f"{prompt}: would take more than {self.request.hours:g} hours to train on": len(own)
            - len(test)
            - len(chosen),
            f"asks something else than `{prompt}`, which is trained": len(made.entries) - len(own),
        }
        reasons = {**made.left_out, **{reason: count for reason, count in unused.items() if count}}
        if not chosen or not test:
            (self.folder / STATE).unlink()  # nothing in it is worth going on from
            why = ", ".join(f"{number} {reason}" for reason, number in reasons.items())
            raise CraError(
                f"{counted(len(chosen), 'row')} to train on and {len(test)} to test with are too few: {why}",
                hint="more --faults, or more repositories",
            )
        shutil.rmtree(self.folder / DATA, ignore_errors=True)  # written, and then the process died
        kept = replace(made, entries=(*chosen, *test), left_out=reasons)
        _, numbers = record_dataset(
            self.folder / DATA, "trl", kept, self.mined, making, self.settings, self.workspace, FUNCTION_RULE
        )
        with Record.open(self.workspace.repo, clock=utc_now) as record:
            version = version_of(self.workspace.adapters, prompt, versions_in(record, prompt), resume=False)
        data = NightData(
            dataset=numbers[prompt],
            prompt=prompt,
            version=version,
            planted=self.mined.seen,
            functions=len({entry.row.origin.group for entry in kept.entries}),
            rows=len(chosen),
            tokens=sum(tokens_of(entry.row) for entry in chosen),
            test_rows=len(test),
            left_out=reasons,
            not_read=self.mined.unread,
        )
        self._save_state(replace(self.state, data=data))

    def training_outlook(self) -> str:
        """What the training and the gate will take, in a line."""
        data = self.data
        seconds = self._training_seconds(data.tokens)
        asking = 2 * data.test_rows * TOKENS_OF_ROW / self.speed / READING
        few = data.test_rows < MIN_EXAMPLES
        missing = (
            f", of the {MIN_EXAMPLES} that a verdict needs (more --faults or repositories give more)"
            if few
            else ""
        )
        until = "" if self.ready.gpu else f": about {_format_duration(seconds)}, until {clock_in(seconds)}"
        return (
            f"training on {counted(data.rows, 'row')} of `{data.prompt}`, about {data.tokens:,} tokens, twice over{until}; "
            f"then {counted(data.test_rows, 'question')} to base and adapter, about {_format_duration(asking)}{missing}"
        )

    def train(self) -> None:
        """Train the adapter, from its last checkpoint if it was interrupted, unless it is in the record.

        Raises:
            CommandError: the trainer failed.
        """
        with Record.open(self.workspace.repo, clock=utc_now) as record:
            known = self._trained_adapter(record)
        work = private_folder(self.workspace.adapters) / f"{self.data.prompt}-v{self.data.version}{WORK}"
        if known is not None:
            shutil.rmtree(work, ignore_errors=True)
            return
        try:
            train_dataset(
                self.workspace,
                self.machine,
                self.data.dataset,
                Path(self.request.base),
                None,
                {},
                resume=(work / "job.json").exists(),
                progress=self.progress,
                version=self.data.version,
            )
        except CommandError as exc:
            exc.hint = (
                "the same command continues from its last checkpoint; with less memory, give a smaller base"
            )
            raise

    def evaluate(self) -> tuple[AdapterRow, EvaluationRow]:
        """The adapter with what the gate says of it, which is found out unless it is in the record.

        Raises:
            ModelError: the server.
        """
        with ExitStack() as stack:
            parts = stack.enter_context(open_adapters(self.workspace.repo))
            row = self._trained_adapter(parts.record)
            assert row is not None
            if not parts.record.write(list_evaluations, row.id):
                prompt, weights = BY_NAME[self.data.prompt], self.ready.weights
                material = material_of(self.folder / DATA, prompt)
                if self.ready.program:
                    self.say("starting a llama-server with the adapter")
                    parts = _served_apart(stack, parts, row, self.ready)
                served, server = parts.serve(row, weights, self._progress_callback(" bytes"), self.say)
                parts.evaluate(
                    row,
                    ((prompt, material),),
                    served,
                    server,
                    self._progress_callback(" questions"),
                    self.say,
                )
            return row, parts.record.write(list_evaluations, row.id)[-1]

    def _progress_callback(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(done, total, what)

    def _trainable_rows(self, rows: list[DatasetEntry]) -> list[DatasetEntry]:
        """The rows that can be trained on in the hours that there are."""
        if self.ready.gpu:
            return rows
        return shortest_rows(rows, self.request.hours * 3600 * self.speed / Hyperparameters().epochs)

    def _training_seconds(self, tokens: int) -> float:
        """Of a training on rows with so many tokens."""
        longest = self.request.hours * 3600
        return min(tokens * Hyperparameters().epochs / self.speed, longest)

    @property
    def _bootstrap_folder(self) -> Path:
        """Where `cra bootstrap` has its shards, too."""
        return self.workspace.folder / "bootstrap"

    def _trained_adapter(self, record: Record) -> AdapterRow | None:
        known = record.write(list_adapters)
        return next((row for row in known if row.dataset_id == self.data.dataset), None)

    def _save_state(self, state: State) -> None:
        self.state = state
        atomic_write(self.folder / STATE, to_json(state) + "\n")


def open_night(
    workspace: Workspace,
    settings: Settings,
    repositories: tuple[Path, ...],
    base: Path,
    *,
    faults: int,
    hours: float,
    machine: Machine,
    server: str,
    folder: Path | None,
    progress: Progress,
    say: Callable[[str], None],
) -> Night:
    """A night in the folder, by default the last one if it has not come to its end, else a new one; with all that can be
    checked before it begins.

    Raises:
        UsageError: something is missing, or another night is in the folder.
        ModelError: the server cannot be asked, or lacks a model.
    """
    settings = without_adapters(settings)
    ready = require_ready(workspace, settings, base, machine, server)
    paths = repositories or (workspace.repo,)
    tops = tuple(str(find_top(path.absolute())) for path in paths)
    sources, _ = open_sources(
        [Listed(source=top) for top in tops], workspace.folder, Exclusions(), lambda _text: None
    )
    request = Request(
        repositories=tuple(zip(tops, (source.head for source in sources), strict=True)),
        base=str(base.resolve()),
        faults=faults,
        hours=hours,
        device=machine.device,
    )
    place = private_folder(folder.absolute() if folder else _night_folder(workspace))
    state = State(request=request)
    if (place / STATE).exists():
        state = from_json((place / STATE).read_bytes(), State)
        if _without_commits(state.request) != _without_commits(request):
            raise UsageError(
                f"another night was begun in {place}",
                hint=f"continue it with the arguments that it had; or name another folder with -o, or remove {place}",
            )
    elif any(place.iterdir()):
        raise UsageError(f"{place} is not empty", hint="name another folder with -o, or remove it")
    return Night(
        workspace=workspace,
        settings=settings,
        folder=place,
        state=state,
        machine=machine,
        ready=ready,
        progress=progress,
        say=say,
    )


def _served_apart(stack: ExitStack, parts: OpenAdapters, row: AdapterRow, ready: Ready) -> OpenAdapters:
    """The registry with a server of our own that has the adapter, for as long as the stack."""
    assert ready.weights is not None
    gguf = require_gguf(row, convert.convert_adapter, ready.weights)
    models = parts.settings.models.for_role("coding")
    tokens = ModelRouter(models, parts.settings.budget).resolve("coding", row.stage_name).window
    model = ("-m", str(ready.weights), "--alias", row.base_model)
    window = ("-c", str(tokens), "--parallel", "1", "--jinja")
    adapter = ("--lora", str(gguf), "--lora-init-without-apply")
    address = stack.enter_context(
        own_llama_server(ready.program, (*model, *window, *adapter), models, row.model_tag)
    )
    table = {
        name: value
        for name, value in parts.settings.data["models"].items()
        if name not in {"servers", "api_key_env"}
    }
    table |= {"provider": "openai", "base_url": address}
    settings = Settings(source=parts.settings.source, data={**parts.settings.data, "models": table})
    return replace(parts, settings=settings)


def _night_folder(workspace: Workspace) -> Path:
    """The folder of the last night, if it has not come to its end; else a new one."""
    above = private_folder(workspace.folder / "tonight")
    number = max((int(path.name) for path in above.iterdir() if path.name.isdecimal()), default=0)
    ended = not number or (above / str(number) / PAGE).exists()
    return above / str(number + ended)


def _without_commits(request: Request) -> Request:
    return replace(request, repositories=tuple((path, "") for path, _ in request.repositories))


def _requested_sources(request: Request) -> tuple[Any, ...]:
    """The repositories at their commits, each with the test command of its own configuration."""
    listed = []
    for path, head in request.repositories:
        workspace = wiring.workspace_of(Path(path))
        settings = load_settings(workspace.config, Overrides(), optional=True)
        tests = settings.data.get("testing", {}).get("test_command", "")
        listed.append(Listed(source=path, revision=head, tests=tests))
    return open_sources(listed, Path("/nowhere"), Exclusions(), lambda _text: None)[0]


def _format_duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return counted(minutes, "minute") if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
