"""The tables of `config.toml` that steer a run: how it plans, edits and recovers, and how and in which sandbox it runs the
repository's commands.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from clean_room_agent.config import ConfigSlice, NonEmpty
from clean_room_agent.errors import ConfigError

Rule = Literal["refine", "reduce_scope", "replan", "diagnose", "retry", "escalate"]
"""A rule of the recovery table that can be switched off; `stop`, `skip` and `needs_human` cannot."""
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
Accept = Literal["goals", "all-pass", "no-new-failures", "untested", "green"]
Form = Literal["masked", "function", "lines"]
"""What is asked for about one place: gaps in it, all of it, or its wrong lines."""
FolderMode = Literal["copy", "link"]
FolderModeInside = Literal["mount", "copy"]
SandboxMode = Literal["auto", "bwrap", "none"]
DEFAULT_PROTECTED = (
    *(".env", ".env.*", ".envrc", ".netrc", ".npmrc", ".pypirc"),
    *("*.pem", "*.key", "id_rsa*", "id_ed25519*"),
)


class SolveConfig(ConfigSlice, frozen=True, kw_only=True):
    """[solve]: how hard a step is tried."""

    max_attempts: Annotated[int, Meta(ge=1, description="attempts at one step before it is given up")]
    max_refinement_loops: Annotated[
        int, Meta(ge=0, description="how often a step may ask retrieval for what its context lacked")
    ]
    route: Annotated[
        Literal["auto", "planned"],
        Meta(
            description="auto: where a goal test executes code, short answers for that are tried before anything is planned, and a "
            "model is asked for a goal test where there is none; planned: neither"
        ),
    ] = "auto"
    direct_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="answer tokens that this may take before the run plans; what is read counts a tenth",
        ),
    ] = 3_000
    forms: Annotated[
        tuple[Form, ...],
        Meta(
            description="what is asked for about such code, in this order: masked: the text of gaps in it, of a model that fills "
            "gaps; function: a definition, whole; lines: its wrong lines, behind function only of long definitions"
        ),
    ] = ("masked", "function", "lines")
    draws: Annotated[
        int,
        Meta(
            ge=1,
            description="answers of the last two forms about one definition; all but the first are drawn",
        ),
    ] = 8
    draw_temperature: Annotated[float, Meta(gt=0, le=2, description="of those that are drawn")] = 0.7
    answer_length: Annotated[
        float, Meta(ge=1, le=8, description="how many times as long as usual they may be")
    ] = 1.0
    gaps: Annotated[
        Literal["in-turn", "side-by-side"],
        Meta(
            description="how the gaps of one definition, and drawn answers about it, are asked for: in-turn, a server reads once "
            "what their prompts begin with; "
            "side-by-side, it answers several at a time"
        ),
    ] = "in-turn"
    samples: Annotated[
        int,
        Meta(
            ge=1,
            description="answers that an attempt draws from its prompt, until one turns all goal tests green and loses nothing; "
            "else the best of them counts",
        ),
    ] = 1


class OrchestratorConfig(ConfigSlice, frozen=True, kw_only=True):
    """[orchestrator]: limits of a plan and of a whole run; reaching one ends the run as partial."""

    max_parts: Annotated[int, Meta(ge=1, description="parts of a plan")] = 10
    max_steps_per_part: Annotated[int, Meta(ge=1, description="steps of a part")] = 15
    max_adjustment_rounds: Annotated[
        int, Meta(ge=0, description="times that what remains of a part may be revised after one step")
    ] = 1
    planning: Annotated[
        Literal["one-call", "decomposed", "none"],
        Meta(
            description="one-call: the model writes a plan in one answer; decomposed: small questions, put together by the program; "
            "none: no model is asked for one; the function that the task names is tried first, else the task is one step over the files in scope"
        ),
    ] = "one-call"
    adjusting: Annotated[
        Literal["one-call", "decomposed"],
        Meta(description="the same for what remains of a part after a step"),
    ] = "one-call"
    max_change_points: Annotated[
        int,
        Meta(
            ge=1,
            le=12,
            description="decomposed: places that a task or a part changes; each two of them may be a question",
        ),
    ] = 8
    max_failure_signals: Annotated[
        int,
        Meta(
            ge=1,
            description="decomposed: failures of a step that are examined; each with each step may be a question",
        ),
    ] = 3
    plan_fallback: Annotated[
        bool,
        Meta(
            description="if there is no valid plan: the task as one part, a part as one step, over the files in scope"
        ),
    ] = True
    max_calls: Annotated[int, Meta(ge=1, description="model calls of a run")] = 400
    max_tokens: Annotated[int, Meta(ge=1, description="prompt and answer tokens of a run")] = 4_000_000
    max_minutes: Annotated[float, Meta(gt=0, description="minutes of a run")] = 240.0
    max_untracked_bytes: Annotated[
        int, Meta(ge=0, description="an untracked file larger than this stays out of the snapshot")
    ] = 2_000_000


class RecoveryConfig(ConfigSlice, frozen=True, kw_only=True):
    """[recovery]: what is done about a step that does not work; planning/pipeline.md has the table."""

    rules: Annotated[
        tuple[Rule, ...], Meta(description="the rows that may decide; one that is left out never does")
    ] = get_args(Rule)
    redraw: Annotated[
        int,
        Meta(
            ge=0,
            description="answers drawn from the unchanged prompt after a first attempt that was tested and failed, before one is "
            "shown what failed; the round counts as one attempt",
        ),
    ] = 0
    likeness: Annotated[
        float, Meta(gt=0, le=1, description="from this share on, two normalised errors count as the same")
    ] = 0.8
    min_message: Annotated[int, Meta(ge=1, description="characters; shorter errors are not compared")] = 30
    replans_per_part: Annotated[int, Meta(ge=0, description="times a part is planned again")] = 1
    replans_per_run: Annotated[int, Meta(ge=0, description="times parts of a run are planned again")] = 5
    fatal_categories: Annotated[
        tuple[Category, ...],
        Meta(description="kinds of failure after which the part is planned again at once"),
    ] = ("wrong_tech_stack", "schema_mismatch", "api_contract_wrong")
    doctor: Annotated[
        Literal["stronger", "always", "never"],
        Meta(
            description='which model to ask why a step fails if the rules do not know: "stronger": only '
            '[models.escalation] reasoning; "always": the reasoning model first'
        ),
    ] = "stronger"
    diagnoses_per_step: Annotated[int, Meta(ge=0, description="times a model is asked why a step fails")] = 2
    diagnoses_per_run: Annotated[int, Meta(ge=0, description="likewise, in a run")] = 10
    strong_diagnoses_per_run: Annotated[int, Meta(ge=0, description="of these, by the stronger model")] = 5
    infrastructure_per_run: Annotated[
        int, Meta(ge=0, description="times a test command that gives no result is tried again")
    ] = 3
    high_risk: Annotated[
        tuple[Category, ...],
        Meta(description="kinds of failure for which the stronger model is asked at once"),
    ] = ("import", "name", "logic", "patch")
    strong_after: Annotated[int, Meta(ge=1, description="attempts after which it is asked")] = 4
    strong_from: Annotated[
        float, Meta(gt=0, le=1, description="share of a run's budget from which it is asked")
    ] = 0.8
    doubt: Annotated[float, Meta(ge=0, le=1, description="below this confidence, it is asked next")] = 0.7
    no_progress: Annotated[
        int, Meta(ge=2, description="attempts in a row that change nothing, before another strategy")
    ] = 2
    nearly_spent: Annotated[
        float,
        Meta(
            gt=0, le=1, description="share of a run's budget from which a step of several files is cut down"
        ),
    ] = 0.9
    escalation_attempts: Annotated[
        int, Meta(ge=1, description="attempts of each stronger model in [models.escalation]")
    ] = 1


class TestingConfig(ConfigSlice, frozen=True, kw_only=True):
    """[testing]: the repository's own commands, run in the worktree by the shell."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    test_command: Annotated[
        NonEmpty, Meta(description="runs all tests; judges the state at the start and the result")
    ]
    step_test_command: Annotated[
        NonEmpty | None, Meta(description="a quicker command that judges each attempt at a step")
    ] = None
    lint_command: Annotated[NonEmpty | None, Meta(description="for information only")] = None
    type_check_command: Annotated[NonEmpty | None, Meta(description="for information only")] = None
    format_command: Annotated[
        NonEmpty | None,
        Meta(
            description="formats the files that a result changes, named after it; its change is a commit of its own"
        ),
    ] = None
    timeout: Annotated[
        float, Meta(gt=0, description="seconds for each of these commands; after that it is killed")
    ] = 120.0
    parallel: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            description="candidates of an attempt (see [solve] samples) that are drawn and tested at a time, each in a worktree of "
            "its own; at most as many as this machine has cores",
        ),
    ] = 1
    output_bound: Annotated[
        int,
        Meta(
            ge=2_000,
            description="bytes kept of each of a command's two streams; of longer ones, the beginning and the end",
        ),
    ] = 1_000_000
    accept: Annotated[
        Accept,
        Meta(
            description='which tests of a result may fail: with "goals" those that failed before and are no goal of the task, if it '
            'has goal tests, else none; with "all-pass" none; with "no-new-failures" those that failed before. "untested": as '
            '"goals", and there may be no test at all. "green": as "goals", and an unproven result ends with exit code 0, too, where '
            "no test can show that the task is done"
        ),
    ] = "goals"


class EvidenceConfig(ConfigSlice, frozen=True, kw_only=True):
    """[evidence]: the goal tests, which show that a task is done."""

    keep: Annotated[
        bool,
        Meta(
            description="whether the branch begins with a commit of the goal tests that were added; the record has them in any case"
        ),
    ] = True


class WorktreeConfig(ConfigSlice, frozen=True, kw_only=True):
    """[worktree]: where a task's own copy of the tree is, and what tests need in it besides the tracked files."""

    root: Annotated[
        Path | None,
        Meta(description="folder for worktrees, outside the repository; by default in the user's cache"),
    ] = None
    link: Annotated[
        tuple[str, ...], Meta(description="ignored folders that tests need, brought into the worktree")
    ] = (".venv", "venv", "node_modules")
    in_sandbox: Annotated[
        FolderModeInside,
        Meta(description='"mount" those folders read-only, or "copy" them for tools that write there'),
    ] = "mount"
    without_sandbox: Annotated[
        FolderMode,
        Meta(description='"copy" those folders, or "link" to yours, which tests could then change'),
    ] = "copy"


class SandboxConfig(ConfigSlice, frozen=True, kw_only=True):
    """[sandbox]: how the repository's commands are isolated while they run model-written code."""

    mode: Annotated[
        SandboxMode,
        Meta(
            description='"bwrap": inside bubblewrap, or not at all; "none": with your privileges, as each run says; "auto": '
            "bubblewrap where it works, else none, as each run says"
        ),
    ] = "auto"
    read: Annotated[
        tuple[str, ...],
        Meta(description='more that the commands may read: absolute paths, or "~/" and what follows'),
    ] = ()
    environment: Annotated[
        tuple[str, ...], Meta(description="names of more environment variables that the commands are given")
    ] = ()
    memory_mb: Annotated[int, Meta(ge=0, description="held by all processes of a command; 0: no bound")] = (
        4096
    )
    processes: Annotated[int, Meta(ge=0, description="with threads, at a time; 0: no bound")] = 2048
    file_mb: Annotated[int, Meta(ge=0, description="of each file written; 0: no bound")] = 2048
    scratch_mb: Annotated[
        int, Meta(ge=1, description="in each of the temporary folders, which live in memory")
    ] = 512

    def __post_init__(self) -> None:
        for path in self.read:
            if not path.startswith(("/", "~/")) or ".." in Path(path).parts:
                raise ConfigError(
                    f"[sandbox] read: {path!r} is neither absolute nor begins with ~/",
                    hint="name the whole path, without `..`",
                )


class EditConfig(ConfigSlice, frozen=True, kw_only=True):
    """[edit]: what no edit may touch."""

    protected: Annotated[
        tuple[str, ...],
        Meta(
            description="glob patterns of files that are never edited; a pattern without a slash matches names in any folder"
        ),
    ] = DEFAULT_PROTECTED
