"""Goal tests from the words of a task: calls in them are run at the base, and what they should give becomes a test."""

import ast
import itertools
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.goals import GoalSource, GoalTest, NamedDefinition, gives
from clean_room_agent.execute.goal_prompts import (
    GOAL_TEST,
    Expectation,
    GoalInputs,
    stands_in,
)
from clean_room_agent.execute.goals.confirming import (
    Conclusion,
    Looked,
    NewTest,
    Observation,
    WantedValue,
    conclude,
)
from clean_room_agent.execute.goals.expressions import (
    Expressions,
    PythonExpressions,
    ScriptExpressions,
    free_names_of,
    python_tree,
)
from clean_room_agent.execute.goals.python_tests import (
    bound_elsewhere,
    imports_of_value,
    names_at_top,
    names_bound,
    test_name,
)
from clean_room_agent.execute.goals.report import (
    Claim,
    StatedValue,
    documented_claims,
    names_in,
    passed_in,
    read_report,
    script_claims,
)
from clean_room_agent.execute.goals.resolving import (
    SCRIPTS,
    Known,
    lookups,
    resolve,
    without_imports,
)
from clean_room_agent.execute.goals.script_tests import assert_import, needs_assert, title
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.orchestrator.goal_runs import Checked, GoalRuns, Home
from clean_room_agent.orchestrator.run import Run, names_file
from clean_room_agent.paths import is_test_file

MAX_WORDS = 20_000
"""Characters of a task that are read."""
MAX_CASES = 32
MAX_TESTS = 8
MAX_EXAMPLES = 24
MAX_DEFINITIONS = 6
"""Shown to a model."""
DRAWS = 3
MAX_CHOICES = 6
WARM = Sampling(temperature=0.8, seed=1, top_k=40, top_p=0.95)
GOALS = "goals"
ADDED = re.compile(r"\b(?:add|implement|write|create|new|provide|introduce|missing)\b", re.IGNORECASE)
"""In the words of a task that asks for something new."""
PYTHON, SCRIPT = PythonExpressions(), ScriptExpressions()


class Case(Struct, frozen=True, kw_only=True):
    """A call that a task is about."""

    claim: Claim
    home: Home
    imports: tuple[str, ...]
    missing: bool = False
    """Whether what it calls is still to be added."""

    @property
    def looked(self) -> Looked:
        """How it is looked at."""
        stated = tuple((value.kind, value.text) for value in self.claim.values)
        return Looked(
            call=self.claim.call,
            setup=self.claim.setup,
            imports=self.imports,
            stated=stated,
            missing=self.missing,
        )


class Seen(Struct, frozen=True, kw_only=True):
    """A call, and what it gave."""

    case: Case
    observation: Observation
    conclusion: Conclusion


class Found(Struct, kw_only=True):
    """What came of a source of goal tests."""

    tests: list[GoalTest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    considered: list[str] = field(default_factory=list)
    """For the record: each call with what came of it."""
    texts: dict[str, str] = field(default_factory=dict)
    """The files with the tests that are kept, by path."""
    repeated: list[GoalTest] = field(default_factory=list)
    """Red tests that make a call of the task's words and want what these want of it, which so needs no other test."""


class StatedGoals:
    """Finds the goal tests of one task."""

    def __init__(self, run: Run, runs: GoalRuns, found: Found) -> None:
        self._run = run
        self._runs = runs
        self._found = found
        self._words = run.task.description[:MAX_WORDS]

    def read(self, mentioned: Sequence[NamedDefinition], red: Sequence[GoalTest] = ()) -> tuple[Seen, ...]:
        """Run the calls of the task's words and the examples in the documentation of what it mentions; add the tests of those
        whose wanted value is clear, unless one of the `red` tests says the same. Returns the former.
        """
        known, called = self._resolve_called_names(self._words)
        known, missing = self._with_missing(known, called)
        known = self._with_test_names(known)
        cases = self._runnable_cases(known, read_report(known.text, known.language, known.usable), missing)
        examples = self.examples(mentioned)
        looked = self.looked((*cases, *examples))
        seen = tuple(one for one in looked if one.case not in examples)
        for one in seen:
            gave = one.observation.problem or one.observation.described()
            self._found.considered.append(f"{one.case.claim.call}: {gave}")
        repeated = [[test for test in red if _is_said_by(one, test)] for one in seen]
        self._found.repeated += itertools.chain.from_iterable(repeated)
        self.add(
            [
                *((GoalSource.STATED, one) for one, same in zip(seen, repeated, strict=True) if not same),
                *((GoalSource.DOCUMENTED, one) for one in looked if one not in seen),
            ]
        )
        if not (self._found.repeated or any(one.source is GoalSource.STATED for one in self._found.tests)):
            self._found.notes += [
                f"this does not happen here: {one.case.claim.call} {gives(one.observation.described())}"
                for one in seen
                if one.conclusion.denied
            ]
        return seen

    def examples(
        self, definitions: Sequence[NamedDefinition], owners: Sequence[NamedDefinition] = ()
    ) -> list[Case]:
        """The examples in the documentation of these definitions; of methods, those whose classes are among `owners`."""
        cases: list[Case] = []
        known_names = {(one.path, one.name): one for one in (*definitions, *owners) if "." not in one.name}
        for one in definitions:
            python = one.path.endswith(".py")
            own = known_names.get((one.path, one.name.partition(".")[0]))
            if own is None or not (python or one.path.endswith(SCRIPTS)):
                continue
            known = Known(text="", names={own.name: own}, language=PYTHON if python else SCRIPT)
            claims = documented_claims(one.doc) if python else script_claims(one.doc)
            cases += self._runnable_cases(
                known, [claim for claim in claims if known.usable(claim.call, claim.setup)]
            )
        return cases[:MAX_EXAMPLES]

    def beside(self, calls: Sequence[str]) -> list[Case]:
        """These calls, of what the words name."""
        known, _ = self._resolve_called_names(self._words)
        known = self._with_test_names(known)
        return self._runnable_cases(known, [Claim(call=call) for call in calls if known.usable(call, ())])

    def ask(self, seen: Sequence[Seen], mentioned: Sequence[NamedDefinition]) -> None:
        """Ask a model for what the words do not say plainly, and add what holds of its answers."""
        unclear = [
            one
            for one in seen
            if not one.observation.problem and one.conclusion.wanted is None and not one.conclusion.denied
        ]
        asked = next((one for one in unclear if one.conclusion.confirmed), next(iter(unclear), None))
        about = mentioned or self._run.context.named_plainly(self._words)
        if any(one.conclusion.denied for one in seen) or not (asked or about):
            return
        if asked is not None:
            inputs = GoalInputs(
                task=self._words,
                call=asked.case.claim.call,
                gives=asked.observation.described(),
                choices=asked.conclusion.choices[:MAX_CHOICES],
            )
        else:
            inputs = GoalInputs(
                task=self._words, definitions=tuple(map(_describe_definition, about[:MAX_DEFINITIONS]))
            )
        answers = [self._draw_expectation(inputs, number) for number in range(DRAWS)]
        groups: dict[tuple[str, str], list[Expectation]] = {}
        for one in answers:
            if one is not None and (
                asked is None or _normalise_code(one.call) == _normalise_code(inputs.call)
            ):
                groups.setdefault((_normalise_code(one.call), _normalise_code(one.value)), []).append(one)
        for same in sorted(groups.values(), key=len, reverse=True):
            self._found.considered.append(f"written {len(same)} times: {same[0].call} == {same[0].value}")
            if len(same) > 1 and self._add_agreed_test(same[0], asked, unanimous=len(same) == DRAWS):
                return

    def add(self, seen: Sequence[tuple[GoalSource, Seen]]) -> bool:
        """Add the tests of those calls that should give something else, as far as they fail at the base as they should; whether
        any does.
        """
        added = False
        by_home: dict[str, list[tuple[GoalSource, Seen]]] = {}
        for source, one in [(source, one) for source, one in seen if one.conclusion.wanted][:MAX_TESTS]:
            by_home.setdefault(one.case.home.path, []).append((source, one))
        for same in by_home.values():
            home = self.home_now(same[0][1].case.home)
            taken = set(names_bound(home.text))
            tests: dict[str, NewTest] = {}
            for _, one in same:
                test = self._build_test(one, taken, home)
                taken.add(test.name)
                tests[test.name] = test
            observed = {name: one.observation for name, (_, one) in zip(tests, same, strict=True)}
            checked = self._runs.checked(home, tuple(tests.values()), observed)
            if checked is not None:
                added = True
                self.take(
                    {name: source for name, (source, _) in zip(tests, same, strict=True)}, checked, observed
                )
        return added

    def home_now(self, home: Home) -> Home:
        """The file with the tests that were added to it so far."""
        return replace(home, text=self._found.texts.get(home.path, home.text))

    def take(
        self, sources: Mapping[str, GoalSource], checked: Checked, observed: Mapping[str, Observation]
    ) -> None:
        """Keep the tests."""
        self._found.texts[checked.home.path] = checked.placed.text
        for test, name, code in zip(checked.tests, checked.names, checked.placed.codes, strict=True):
            self._found.tests.append(
                GoalTest(
                    name=name,
                    source=sources[test.name],
                    path=checked.home.path,
                    code=code,
                    call=test.call,
                    setup="; ".join(test.setup) if not any("\n" in one for one in test.setup) else "",
                    wanted=test.wanted.described() if not test.statement else "",
                    got=observed[test.name].described(),
                )
            )

    def statement(self, code: str) -> Case | str:
        """A statement of the user's as a case whose call is its text; or why it cannot be run."""
        called = tuple(dict.fromkeys((*names_in(code, PYTHON), *_dotted_names(code))))
        known = resolve(code, called, self._find_definitions(lookups(called), PYTHON), PYTHON)
        try:
            used = free_names_of(compile_statement(known.text))
        except SyntaxError as error:
            return f"it is no statement of Python, nor one of JavaScript about what the repository defines: {error.msg}"
        if not used & known.names.keys():
            return "it names nothing that the repository defines once"
        return self._runnable_cases(known, (Claim(call=known.text),))[0]

    def script_statement(self, code: str) -> Case | None:
        """A statement of the user's in JavaScript as a case: a comparison by its sides, another as a function that is called;
        None if it names nothing that a file of JavaScript or TypeScript defines once.
        """
        called = tuple(dict.fromkeys((*names_in(code, SCRIPT), *_dotted_names(code))))
        known = resolve(code, called, self._find_definitions(lookups(called), SCRIPT), SCRIPT)
        claim = Claim(call=as_function(known.text))
        if (sides := SCRIPT.comparison(known.text)) is not None:
            claim = Claim(call=sides[0], values=(StatedValue(text=sides[1], role="wanted"),))
        case = next(iter(self._runnable_cases(known, (claim,))), None)
        style = None if case is None else case.home.style
        if case is None or style is None or claim.values or not needs_assert(code, case.home.text):
            return case
        return replace(case, imports=(assert_import(style), *case.imports))

    def script_check(self, case: Case, home: Home, code: str, seen: Observation) -> NewTest:
        """The test of a statement in JavaScript, given what came of it."""
        values = case.claim.values
        wanted = WantedValue(text=values[0].text if values else "")
        call = case.claim.call if values else code
        return NewTest(
            name=title(call, wanted, home.text),
            call=call,
            wanted=wanted,
            imports=case.imports,
            iterated=seen.iterated,
            awaited=seen.awaited,
            statement="" if values else code,
        )

    # Parts

    def _runnable_cases(
        self, known: Known, claims: Sequence[Claim], missing: frozenset[str] = frozenset()
    ) -> list[Case]:
        """The calls that can be run, each with the file that a test of it stands in."""
        cases = []
        language = known.language
        for claim in claims[:MAX_CASES]:
            made = [value.text for value in claim.values if value.kind == "literal"]
            used = self._used_names(known, (*claim.setup, claim.call, *made))
            own = next((known.names[name] for name in _in_order(claim.call, used)), None)
            if own is None:
                continue
            home = self._runs.home(own, claim.call)
            setup = without_imports(claim.setup, known.names, language)
            errors = [
                value.text for value in claim.values if value.kind == "error" and value.role == "wanted"
            ]
            whole = replace(known, names=self._with_errors(known, errors))
            names = [name for name in (*used, *errors) if name in whole.names]
            imports = self._runs.imports(whole, names, (*setup, claim.call, *made, *errors), home, own)
            cases.append(
                Case(
                    claim=replace(claim, setup=setup),
                    home=home,
                    imports=imports,
                    missing=bool(used & missing),
                )
            )
        return cases

    def _used_names(self, known: Known, code: Sequence[str]) -> set[str]:
        """The known names that the code uses."""
        used: set[str] = set()
        for source in code:
            used |= known.language.effects(source)[1] | set(known.language.free_names(source) or ())
        return used & known.names.keys()

    def _resolve_called_names(self, text: str) -> tuple[Known, tuple[str, ...]]:
        """What the names that the text calls mean, in the language of most of them; and these names."""
        called = tuple(dict.fromkeys((*names_in(text, PYTHON), *names_in(text, SCRIPT))))
        python, script = (self._find_definitions(lookups(called), language) for language in (PYTHON, SCRIPT))
        language, found = (SCRIPT, script) if script and not python else (PYTHON, python)
        passed = [name for name in passed_in(text, language) if name not in called]
        found += self._find_definitions(passed, language)
        return resolve(text, called, found, language, passed), called

    def _find_definitions(self, names: Sequence[str], language: Expressions) -> list[NamedDefinition]:
        """The definitions with these names in files of the language; of tests only where nothing else has the name."""
        found = self._run.context.definitions(names) if names else ()
        own = [one for one in found if one.path.endswith(language.suffixes)]
        if language is not PYTHON:
            return own
        left = [name for name in names if name.isidentifier() and name not in {one.name for one in found}]
        return [*own, *filter(None, map(self._runs.helper, left))]

    def _with_missing(self, known: Known, called: Sequence[str]) -> tuple[Known, frozenset[str]]:
        """With the functions that the words call and that are to be added to the one file that they name."""
        tree = self._run.commits.tree(self._run.commits.base)
        files = [
            path
            for path in sorted(tree.paths)
            if path.endswith(".py") and not is_test_file(path) and names_file(self._words, path)
        ]
        if len(files) != 1 or known.language is not PYTHON:
            return known, frozenset()
        plain = [
            name for name in called if "." not in name and name not in known.names and name.isidentifier()
        ]
        asks = ADDED.search(self._words) is not None
        unknown = [
            name
            for name in plain
            if asks and not self._find_definitions((name,), PYTHON) and PYTHON.free_names(name)
        ]
        if not unknown:
            return known, frozenset()
        sibling = next(iter(known.names.values()), None)
        tests = sibling.test_files if sibling is not None and sibling.path == files[0] else ()
        made = {
            name: NamedDefinition(
                name=name, path=files[0], kind="function", first_line=1, last_line=1, test_files=tests
            )
            for name in unknown
        }
        return replace(known, names={**known.names, **made}), frozenset(made)

    def _with_test_names(self, known: Known) -> Known:
        """With what the file binds in which tests of all that is known would stand, if that is one file: a report may be copied
        from it.
        """
        homes = {home.path: home for home in map(self._runs.home, known.names.values())}
        if len(homes) != 1 or known.language is not PYTHON:
            return known
        (home,) = homes.values()
        return replace(known, in_tests=names_at_top(home.text))

    def _with_errors(self, known: Known, errors: Sequence[str]) -> Mapping[str, NamedDefinition]:
        """The names, with those of exceptions of the repository."""
        new = [name for name in errors if name not in known.names and known.language.free_names(name)]
        definitions = self._find_definitions(new, known.language)
        found = resolve(self._words, new, definitions, known.language).names
        return {**known.names, **found}

    def looked(self, cases: Sequence[Case]) -> tuple[Seen, ...]:
        """What each of the calls gives at the base."""
        seen: list[Seen] = []
        by_home: dict[str, list[Case]] = {}
        for case in cases:
            by_home.setdefault(case.home.path, []).append(case)
        for same in by_home.values():
            observations = self._runs.look(same[0].home, [case.looked for case in same])
            for case, observation in zip(same, observations, strict=True):
                conclusion = conclude(case.claim, observation)
                if conclusion.wanted is not None and case.missing and "ImportError" not in observation.raised:
                    conclusion = Conclusion()
                seen.append(Seen(case=case, observation=observation, conclusion=conclusion))
        return tuple(seen)

    def _build_test(self, one: Seen, taken: set[str], home: Home) -> NewTest:
        claim, style, wanted = one.case.claim, home.style, one.conclusion.wanted
        assert wanted is not None, "tests are written of what is concluded"
        imports = one.case.imports
        if style is None:
            imports = tuple(dict.fromkeys((*imports, *imports_of_value(wanted.text))))
        inside = style is None and (
            one.case.missing or any(bound_elsewhere(home.text, each) for each in imports if home.text)
        )
        name = test_name(claim.call, wanted, taken) if style is None else title(claim.call, wanted, home.text)
        return NewTest(
            name=name,
            call=claim.call,
            wanted=wanted,
            setup=claim.setup,
            imports=imports,
            inside=inside,
            iterated=one.observation.iterated,
            awaited=one.observation.awaited,
        )

    def _draw_expectation(self, inputs: GoalInputs, number: int) -> Expectation | None:
        """One answer, kept in the session; None if it cannot be read."""
        run = self._run
        pass_id = f"{run.task.task_id}:{GOALS}"
        entry = run.journal.entry(pass_id, f"draw_{number}", list[Expectation], (repr(inputs),))
        if entry.value is None:
            sampling = Sampling() if number == 0 else replace(WARM, seed=number + 1)
            reply = run.models.ask(
                GOAL_TEST,
                inputs,
                pass_id=pass_id,
                stage=GOALS,
                item=f"draw {number}",
                sampling=sampling,
                repair=False,
            )
            entry.keep([reply.value] if reply.value is not None else [])
        return entry.value[0] if entry.value else None

    def _add_agreed_test(self, said: Expectation, seen: Seen | None, *, unanimous: bool) -> bool:
        """Add the test of what several answers say alike, if it holds; whether it did.

        It counts as read from the words where these confirm what the call gives and have the value, or all answers agree on
        it; and where they have no call, but all values of this one. Otherwise it is a hint.
        """
        stated = said.value in self._words if said.raises else stands_in(said.value, self._words)
        if seen is None:
            told = stated and stands_in(_argument_tuple(said.call), self._words)
        else:
            told = seen.conclusion.confirmed and (stated or unanimous)
        source = GoalSource.STATED if told else GoalSource.WRITTEN
        language = PYTHON if PYTHON.is_value(said.value) else SCRIPT
        if not said.raises and not language.is_value(said.value):
            return False
        value = StatedValue(text=said.value, kind="error" if said.raises else "literal", role="wanted")
        if seen is None:
            known, _ = self._resolve_called_names(said.call)
            if not known.usable(known.text, ()):
                return False
            looked = self.looked(self._runnable_cases(known, (Claim(call=known.text, values=(value,)),)))
        else:
            case = replace(seen.case, claim=replace(seen.case.claim, values=(value,)))
            looked = self.looked([case])
        return self.add([(source, one) for one in looked])


def compile_statement(code: str) -> "ast.Module":
    """The tree of the code.

    Raises:
        SyntaxError: it is no Python.
    """
    try:
        return ast.parse(code)
    except ValueError as error:
        raise SyntaxError(str(error)) from error


def as_function(code: str) -> str:
    """The JavaScript as one expression."""
    awaits = re.search(r"(?<![.\w])await ", code) is not None
    return f"({'async ' if awaits else ''}() => {{ {code}\n}})()"


def _in_order(call: str, names: set[str]) -> list[str]:
    """The names by where the call has them, those that it does not have last."""
    return sorted(names, key=lambda name: (call.find(name) if name in call else len(call), name))


def _dotted_names(code: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"(?<![\w.'\"])[A-Za-z_]\w*(?:\.\w+)*", code)))


def _describe_definition(one: NamedDefinition) -> str:
    return f"{one.signature or one.name} in {one.path}"


def _is_said_by(one: Seen, test: GoalTest) -> bool:
    """Whether the test makes this very call, and wants the same of it."""
    wanted = one.conclusion.wanted
    if wanted is None or not test.call or one.case.claim.setup:
        return False
    said = (one.case.claim.call, wanted.described())
    return [*map(_normalise_code, said)] == [*map(_normalise_code, (test.call, test.wanted))]


def _normalise_code(code: str) -> str:
    tree = python_tree(code)
    return ast.unparse(tree) if tree is not None else code


def _argument_tuple(call: str) -> str:
    """The arguments of the call as one tuple."""
    tree = python_tree(call)
    constants = (
        [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Constant)] if tree else []
    )
    return f"({', '.join(constants)},)" if constants else "()"
