"""The tables of `config.toml` that steer a run: how it plans, edits and recovers, and how and in which sandbox it runs the
repository's commands.
"""

from pathlib import Path
from typing import ClassVar, Literal, get_args

from pydantic import Field, field_validator

from clean_room_agent.config import ConfigSlice

Rule = Literal[
    "refine",
    "reduce_scope",
    "endless",
    "redraw",
    "widen",
    "replan",
    "diagnose",
    "change_strategy",
    "retry",
    "escalate",
    "replan_last",
    "needs_human",
]
"""A rule of the recovery table that can be switched off; `stop` and `skip` cannot."""
Category = Literal[
    "format",
    "truncated",
    "endless",
    "untouched",
    "patch",
    "syntax",
    "import",
    "name",
    "logic",
    "timeout",
    "infrastructure",
    "wrong_tech_stack",
    "schema_mismatch",
    "api_contract_wrong",
]
"""`endless`: the answer and its repair repeated themselves or copied the prompt's example, and were stopped.
`untouched`: the only fault was that a target of the step was left unchanged. The last three are never read from an
error; only a diagnosis names them.
"""
Accept = Literal["all-pass", "no-new-failures", "untested"]
FolderMode = Literal["copy", "link"]
FolderModeInside = Literal["mount", "copy"]
SandboxMode = Literal["auto", "bwrap", "none"]
DEFAULT_PROTECTED = (
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "*.pem",
    "*.key",
    "id_rsa*",
    "id_ed25519*",
)


class SolveConfig(ConfigSlice):
    """[solve]: how hard a step is tried."""

    max_attempts: int = Field(ge=1, description="attempts at one step before it is given up")
    max_refinement_loops: int = Field(
        ge=0, description="how often a step may ask retrieval for what its context lacked"
    )
    samples: int = Field(
        default=1,
        ge=1,
        description="answers that an attempt draws from its prompt, until one turns all goal tests green and loses nothing; "
        "else the best of them counts",
    )
    scaffold: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="whether a step that creates a file of code, or names several new symbols, begins with imports, signatures and "
        'docstrings, which are proven to parse and to import before the bodies are written. "auto": once an answer was cut off',
    )
    scaffold_symbols: int = Field(
        default=3,
        ge=1,
        description="from so many new symbols on, a step that creates no file begins like that, too",
    )


class OrchestratorConfig(ConfigSlice):
    """[orchestrator]: limits of a plan and of a whole run; reaching one ends the run as partial."""

    max_parts: int = Field(default=10, ge=1, description="parts of a plan")
    max_steps_per_part: int = Field(default=15, ge=1, description="steps of a part")
    max_adjustment_rounds: int = Field(
        default=1, ge=0, description="times that what remains of a part may be revised after one step"
    )
    planning: Literal["one-call", "decomposed"] = Field(
        default="one-call",
        description="one-call: the model writes a plan in one answer; decomposed: small questions, put together by the program",
    )
    adjusting: Literal["one-call", "decomposed"] = Field(
        default="one-call", description="the same for what remains of a part after a step"
    )
    max_change_points: int = Field(
        default=8,
        ge=1,
        le=12,
        description="decomposed: places that a task or a part changes; each two of them may be a question",
    )
    max_failure_signals: int = Field(
        default=3,
        ge=1,
        description="decomposed: failures of a step that are examined; each with each step may be a question",
    )
    plan_fallback: bool = Field(
        default=True,
        description="if there is no valid plan: the task as one part, a part as one step, over the files in scope",
    )
    max_calls: int = Field(default=400, ge=1, description="model calls of a run")
    max_tokens: int = Field(default=4_000_000, ge=1, description="prompt and answer tokens of a run")
    max_minutes: float = Field(default=240.0, gt=0, description="minutes of a run")
    max_untracked_bytes: int = Field(
        default=2_000_000, ge=0, description="an untracked file larger than this stays out of the snapshot"
    )


class RecoveryConfig(ConfigSlice):
    """[recovery]: what is done about a step that does not work; planning/pipeline.md has the table."""

    rules: tuple[Rule, ...] = Field(
        default=get_args(Rule), description="the rows that may decide; one that is left out never does"
    )
    redraw: int = Field(
        default=0,
        ge=0,
        description="answers drawn from the unchanged prompt after a first attempt that was tested and failed, before one is "
        "shown what failed; the round counts as one attempt",
    )
    likeness: float = Field(
        default=0.8, gt=0, le=1, description="from this share on, two normalised errors count as the same"
    )
    min_message: int = Field(default=30, ge=1, description="characters; shorter errors are not compared")
    replans_per_part: int = Field(default=1, ge=0, description="times a part is planned again")
    replans_per_run: int = Field(default=5, ge=0, description="times parts of a run are planned again")
    fatal_categories: tuple[Category, ...] = Field(
        default=("wrong_tech_stack", "schema_mismatch", "api_contract_wrong"),
        description="kinds of failure after which the part is planned again at once",
    )
    doctor: Literal["stronger", "always", "never"] = Field(
        default="stronger",
        description='which model to ask why a step fails if the rules do not know: "stronger": only '
        '[models.escalation] reasoning; "always": the reasoning model first',
    )
    diagnoses_per_step: int = Field(default=2, ge=0, description="times a model is asked why a step fails")
    diagnoses_per_run: int = Field(default=10, ge=0, description="likewise, in a run")
    strong_diagnoses_per_run: int = Field(default=5, ge=0, description="of these, by the stronger model")
    infrastructure_per_run: int = Field(
        default=3, ge=0, description="times a test command that gives no result is tried again"
    )
    high_risk: tuple[Category, ...] = Field(
        default=("import", "name", "logic", "patch"),
        description="kinds of failure for which the stronger model is asked at once",
    )
    strong_after: int = Field(default=4, ge=1, description="attempts after which it is asked")
    strong_from: float = Field(
        default=0.8, gt=0, le=1, description="share of a run's budget from which it is asked"
    )
    doubt: float = Field(default=0.7, ge=0, le=1, description="below this confidence, it is asked next")
    no_progress: int = Field(
        default=2, ge=2, description="attempts in a row that change nothing, before another strategy"
    )
    nearly_spent: float = Field(
        default=0.9,
        gt=0,
        le=1,
        description="share of a run's budget from which a step of several files is cut down",
    )
    escalation_attempts: int = Field(
        default=1, ge=1, description="attempts of each stronger model in [models.escalation]"
    )


class TestingConfig(ConfigSlice):
    """[testing]: the repository's own commands, run in the worktree by the shell."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    test_command: str = Field(
        min_length=1, description="runs all tests; judges the state at the start and the result"
    )
    step_test_command: str | None = Field(
        default=None, min_length=1, description="a quicker command that judges each attempt at a step"
    )
    lint_command: str | None = Field(default=None, min_length=1, description="for information only")
    type_check_command: str | None = Field(default=None, min_length=1, description="for information only")
    timeout: float = Field(
        default=120.0, gt=0, description="seconds for each of these commands; after that it is killed"
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=16,
        description="candidates of an attempt (see [solve] samples) that are drawn and tested at a time, each in a worktree of "
        "its own; at most as many as this machine has cores",
    )
    output_bound: int = Field(
        default=1_000_000,
        ge=2_000,
        description="bytes kept of each of a command's two streams; of longer ones, the beginning and the end",
    )
    accept: Accept = Field(
        default="all-pass",
        description='when a result is complete: "all-pass", "no-new-failures" where the tests were red before, or "untested" '
        "where there are none",
    )


class WorktreeConfig(ConfigSlice):
    """[worktree]: where a task's own copy of the tree is, and what tests need in it besides the tracked files."""

    root: Path | None = Field(
        default=None,
        description="folder for worktrees, outside the repository; by default in the user's cache",
    )
    link: tuple[str, ...] = Field(
        default=(".venv", "venv", "node_modules"),
        description="ignored folders that tests need, brought into the worktree",
    )
    in_sandbox: FolderModeInside = Field(
        default="mount",
        description='"mount" those folders read-only, or "copy" them for tools that write there',
    )
    without_sandbox: FolderMode = Field(
        default="copy",
        description='"copy" those folders, or "link" to yours, which tests could then change',
    )


class SandboxConfig(ConfigSlice):
    """[sandbox]: how the repository's commands are isolated while they run model-written code."""

    mode: SandboxMode = Field(
        default="auto",
        description='"bwrap": inside bubblewrap, or not at all; "none": with your privileges, as each run says; "auto": '
        "bubblewrap where it works, else none, as each run says",
    )
    read: tuple[str, ...] = Field(
        default=(), description='more that the commands may read: absolute paths, or "~/" and what follows'
    )
    environment: tuple[str, ...] = Field(
        default=(), description="names of more environment variables that the commands are given"
    )
    memory_mb: int = Field(default=4096, ge=0, description="held by all processes of a command; 0: no bound")
    processes: int = Field(default=2048, ge=0, description="with threads, at a time; 0: no bound")
    file_mb: int = Field(default=2048, ge=0, description="of each file written; 0: no bound")
    scratch_mb: int = Field(
        default=512, ge=1, description="in each of the temporary folders, which live in memory"
    )

    @field_validator("read")
    @classmethod
    def _names_a_place(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith(("/", "~/")) or ".." in Path(path).parts:
                raise ValueError(f"{path!r} is neither absolute nor begins with ~/")
        return value


class EditConfig(ConfigSlice):
    """[edit]: what no edit may touch."""

    protected: tuple[str, ...] = Field(
        default=DEFAULT_PROTECTED,
        description="glob patterns of files that are never edited; a pattern without a slash matches names in any folder",
    )
