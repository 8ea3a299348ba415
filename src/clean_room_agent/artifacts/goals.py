"""What shows that a task is done: goal tests, what the user gave for them, and what was seen when they ran.

A goal test is red at the base and must be green at the end.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from msgspec import Struct

Trust = Literal["proof", "shown", "hint"]
"""What a goal test that turned green is worth: `proof` is the repository's or the user's own, `shown` was read from the task's
words and confirmed by running it, a `hint` was written by a model and decides nothing.
"""


class GoalSource(StrEnum):
    """Where a goal test comes from. Values are stored in records, so they must not change."""

    REPOSITORY = "repository"
    """A red test of the baseline that the task is about."""
    GIVEN = "given"
    """The user's `--test` or `--check`."""
    DOCUMENTED = "documented"
    """A failing example in the docstring of a definition that the task names."""
    STATED = "stated"
    """A call and its value that the task's words give."""
    WRITTEN = "written"
    """A test that a model wrote."""


TRUST: Mapping[GoalSource, Trust] = {
    GoalSource.REPOSITORY: "proof",
    GoalSource.GIVEN: "proof",
    GoalSource.DOCUMENTED: "proof",
    GoalSource.STATED: "shown",
    GoalSource.WRITTEN: "hint",
}


COMMAND_MARK = "sh:"
"""Begins a check that is a shell command."""


class GivenEvidence(Struct, frozen=True, kw_only=True):
    """What the user says about how the task is judged, and where it is."""

    tests: tuple[str, ...] = ()
    """`--test`: tests by their runner's names, which must fail now."""
    checks: tuple[str, ...] = ()
    """`--check`: statements, or commands after `sh:`, which must fail now."""
    files: tuple[str, ...] = ()
    """`--file`: relative paths; only these are changed."""


NOTHING_GIVEN = GivenEvidence()


class GoalTest(Struct, frozen=True, kw_only=True):
    """One goal test."""

    name: str
    """As its runner names it; of a command, `sh: ` and the command."""
    source: GoalSource
    path: str = ""
    """The file it stands in; "" for a command."""
    code: str = ""
    """Its text, where it was added to the file; "" for a test of the repository, and for a command."""
    command: str = ""
    """The shell command, where it is one."""
    call: str = ""
    """The call that it makes, as source text; "" if it is not a single one."""
    setup: str = ""
    """The statements before it that it needs, on one line; "" for none, and where they do not fit on one."""
    wanted: str = ""
    """What the call has to give, as source text: a value, or `raises KeyError`; "" if unknown."""
    got: str = ""
    """What it gave at the base: a value, or an error in one line."""

    @property
    def whole_call(self) -> str:
        """The call behind what it needs, on one line: `p = Path("a"); str(p)`."""
        return f"{self.setup}; {self.call}" if self.setup else self.call

    @property
    def trust(self) -> Trust:
        """What it is worth once it is green."""
        return TRUST[self.source]

    @property
    def comparison(self) -> str:
        """What it asserts, as `--check` takes it; "" if that is no comparison of a single call."""
        if not self.call or self.setup or not self.wanted or self.wanted.startswith("raises "):
            return ""
        return f"{self.call} {'==' if self.path.endswith('.py') else '==='} {self.wanted}"


class Goals(Struct, frozen=True, kw_only=True):
    """The goal tests of a run."""

    tests: tuple[GoalTest, ...] = ()
    """Most trusted first."""
    commit: str = ""
    """The base with the new ones added to its test files; "" if none was added."""
    notes: tuple[str, ...] = ()
    """What the user is told: that what the words say does not happen here, or what would help."""
    related: tuple[str, ...] = ()
    """Red tests of what the task names, which are no goals since it makes a call of its own. One that stays red says that the
    change may be half of it.
    """

    @property
    def deciding(self) -> tuple[GoalTest, ...]:
        """Those that say whether the task is done."""
        return tuple(test for test in self.tests if test.trust != "hint")

    @property
    def guiding(self) -> tuple[GoalTest, ...]:
        """Those that candidates are judged by: the ones that decide, or else the hints."""
        return self.deciding or (self.tests if self.commit else ())


def gives(value: str) -> str:
    """What a call does that gives the value; of an error, the value says `raises …` itself."""
    return value if value.startswith("raises ") else f"gives {value}"


class GoalOutcome(Struct, frozen=True, kw_only=True):
    """What a goal test gave before the change, and gives after it."""

    name: str
    source: GoalSource
    trust: Trust
    before: str = ""
    """What it gave at the base, in one line; "" if that is unknown."""
    after: str = ""
    """What it gives now; "" if it was not run."""
    green: bool
    """Whether it passes now, also with the tests as they were before the change."""
    check: str = ""
    """Of a hint: what it asserts, as `--check` takes it; "" if that is no comparison of a single call."""

    @property
    def shows(self) -> bool:
        """Whether it shows that the task is done."""
        return self.green and self.trust != "hint"

    @property
    def words(self) -> str:
        """What it gave before and gives now, in one line."""
        return f"{self.name}: {self.before or 'failed'} before, {self.after or 'not run'} now"


class ObservedCall(Struct, frozen=True, kw_only=True):
    """One call on the way to the failure. Values are shortened, and secrets in them are removed."""

    arguments: tuple[tuple[str, str], ...] = ()
    """(name, repr)."""
    result: str = ""
    """The returned value's repr, `yields ` and the last values of a generator, or `raises ` and the error; "" if it did not
    end.
    """
    values: tuple[tuple[str, str], ...] = ()
    """Local variables (name, repr) when it returned or failed, without arguments that are as they were passed."""


class TracedFunction(Struct, frozen=True, kw_only=True):
    """A function of the repository that ran under the goal tests."""

    path: str
    name: str
    """Qualified: names of the enclosing definitions and its own, joined by dots; "" for what stands outside of definitions."""
    first_line: int
    """1-based, of its `def`, or of its first decorator."""
    last_line: int = 0
    """1-based, of its end; 0 if unknown."""
    calls: int
    """0 for a definition of which only what stands inside (a lambda, a comprehension) ran. Above some hundreds, a lower bound."""
    lines: tuple[tuple[int, float], ...]
    """(line, suspiciousness from 0 to 1) of each line that ran, by line. All are 1.0 if no passing test is known."""
    observed: tuple[ObservedCall, ...] = ()
    """Its last calls, newest last; of those through which the error came, the innermost is last."""
    failed_at: int = 0
    """The line of it that the error came through, nearest to where it arose; 0 if none did."""

    @property
    def suspicion(self) -> float:
        """That of its most suspicious line."""
        return max((value for _, value in self.lines), default=0.0)


class GoalTrace(Struct, frozen=True, kw_only=True):
    """What ran when the goal tests failed."""

    functions: tuple[TracedFunction, ...] = ()
    """Nearest to the failure first."""
    problem: str = ""
    """Why there is no trace, or only a part; "" if it is whole."""


class NamedDefinition(Struct, frozen=True, kw_only=True):
    """A definition that the index has under a name which somebody uses."""

    name: str
    """Qualified: names of the enclosing definitions and its own, joined by dots."""
    path: str
    kind: str
    """function, class, method, variable."""
    first_line: int
    """1-based, of its `def`, or of its first decorator."""
    last_line: int
    signature: str = ""
    doc: str = ""
    """Its documentation, without quotes or comment marks."""
    test_files: tuple[str, ...] = ()
    """Files of tests that use it, or else its file; those with most of such tests first."""
