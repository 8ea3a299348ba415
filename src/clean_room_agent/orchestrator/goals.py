"""Collects what shows that a task is done, before anything is planned or changed; and takes the tests that were added for it
out of a result whose branch is not to have them:

snapshot --- goal tests --- step --- step     what was made and tested, kept under the run's refs
snapshot ------------------ step'--- step'    what is put on the branch
"""

import ast
import json
import re
import textwrap
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import (
    TRUST,
    GivenEvidence,
    Goals,
    GoalSource,
    GoalTest,
    NamedDefinition,
)
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.errors import UsageError
from clean_room_agent.execute.goals.asserted import Asserted, asserted, asserted_by_helper, script_asserted
from clean_room_agent.execute.goals.confirming import NewTest, Observation, WantedValue
from clean_room_agent.execute.goals.expressions import python_module
from clean_room_agent.execute.goals.python_tests import names_bound, test_name
from clean_room_agent.git.commits import FileChange
from clean_room_agent.json_values import to_plain
from clean_room_agent.languages.test_names import files_meant, is_of_file, split_pytest_id
from clean_room_agent.orchestrator.commits import RunCommits, Tree
from clean_room_agent.orchestrator.goal_runs import GoalRuns
from clean_room_agent.orchestrator.goal_verdict import given_and_wanted
from clean_room_agent.orchestrator.journal import as_text
from clean_room_agent.orchestrator.run import Run, names_file
from clean_room_agent.orchestrator.stated_goals import Case, Found, Seen, StatedGoals, compile_statement
from clean_room_agent.orchestrator.test_runs.results import TestRun

TRUTH = re.compile(r"(?:AssertionError: )?assert (?:not )?(?P<value>.+)")
EQUALITY = re.compile(r"(?:AssertionError: )?assert (?P<value>(?:(?! == ).)+) == (?:(?! == ).)+")
"""What pytest says of a value that is asserted to be true, or not to be, and of two that are not equal."""
MOST_VALUE = 200
"""Characters of such a value."""
FEW = 10
"""So many red tests may all be what a task is about that names nothing."""
MOST_TEST_LINES = 30
"""Of a test whose text a model is shown."""
SHELL = "sh:"
GOALS = "goals"
"""The key in the session."""
ENVIRONMENT = re.compile(
    r"No module named '(?P<module>[\w.]+)'|fixture '(?P<fixture>\w+)' not found"
    r"|cannot import name '(?P<name>\w+)'|Cannot find (?:module|package) '(?P<package>[^']+)'"
)
CHECK_HINT = "give `assert CALL == VALUE`, in JavaScript `CALL === VALUE`, or `sh:COMMAND`"
HELP = "nothing shows yet when the task is done; --check 'assert …' would"
IMPORT = re.compile(rb"\s*(?:import\b|from\s+\S+\s+import\b|(?:const|let|var)\b.*\brequire\()")
"""A line that later tests of the file may need, too."""


def collect_goals(run: Run, baseline: TestRun, given: GivenEvidence) -> Goals:
    """The goal tests of the run, whose tests at the base are `baseline`; recorded, and the same when the run is resumed.

    Tests that were added are in `Goals.commit`, on top of the base. The worktree may be at any commit afterwards.

    Raises:
        UsageError: what the user gave as evidence cannot be run, or does not fail now.
        ModelError: the server failed.
    """
    inputs = (run.task.description, as_text(given))
    entry = run.journal.entry(run.task.task_id, GOALS, Goals, inputs)
    if entry.value is None or (entry.value.commit and not run.commits.exists(entry.value.commit)):
        found = Found()
        goals = _gather_goals(run, baseline, given, found)
        detail = {"goals": to_plain(goals), "considered": found.considered}
        run.recorder.event(run.task.task_id, EventKind.GOAL_TESTS, json.dumps(detail, sort_keys=True))
        for note in goals.notes:
            run.recorder.note(note)
        entry.keep(goals)
    assert entry.value is not None
    return entry.value


def _gather_goals(run: Run, baseline: TestRun, given: GivenEvidence, found: Found) -> Goals:
    words = run.task.description
    found.tests += _given_tests(run, baseline, given.tests)
    commands = [check.removeprefix(SHELL).strip() for check in given.checks if check.startswith(SHELL)]
    found.tests += [_given_command(run, command) for command in commands]
    runs = GoalRuns(run, baseline)
    stated = StatedGoals(run, runs, found)
    for check in given.checks:
        if not check.startswith(SHELL):
            _add_check(stated, runs, check)
    mentioned = run.context.mentioned(words)
    known = {test.name for test in found.tests}
    related: tuple[str, ...] = ()
    red, named = related_red_tests(run, baseline, mentioned)
    red = [test for test in red if test.name not in known]
    # What is proof needs no more, and each look runs tests; red tests that the words do not name may have other reasons.
    if baseline.report.runner != "unknown" and not found.tests and not (red and named):
        seen = stated.read(() if red else mentioned, red)
        has_own = any(value.role == "wanted" for one in seen for value in one.case.claim.values)
        if found.tests or found.repeated or (red and has_own):
            same = _same_calls(run, red, found, seen)
            related = tuple(test.name for test in red if test not in same)
            red = same
        elif not red and run.limits.solve.route != "planned":
            stated.ask(seen, mentioned)
    found.tests += red
    if not found.tests:
        found.notes.append(HELP)
    tests = sorted(found.tests, key=lambda test: ("proof", "shown", "hint").index(TRUST[test.source]))
    commit = runs.keep(found.texts) if found.texts else ""
    return Goals(tests=tuple(tests), commit=commit, notes=tuple(dict.fromkeys(found.notes)), related=related)


def _given_tests(run: Run, baseline: TestRun, names: Sequence[str]) -> list[GoalTest]:
    """The user's tests.

    Raises:
        UsageError: one is unknown, or does not fail now.
    """
    tests = []
    for name in names:
        outcomes = baseline.report.outcomes
        full = [one for one in outcomes if one == name] or [one for one in outcomes if one.endswith(name)]
        if len(full) != 1:
            known = (
                "no test has that name"
                if not full
                else f"{counted(len(full), 'test ends', 'tests end')} like that"
            )
            raise UsageError(
                f"--test {name}: {known}", hint="name it as the test command does: it has to run there"
            )
        if full[0] not in baseline.red():
            raise UsageError(
                f"--test {name}: it does not fail now ({outcomes[full[0]]})",
                hint="give a test that fails until the task is done",
            )
        tests.append(goal_of_test(run, baseline, full[0], GoalSource.GIVEN))
    return tests


def _given_command(run: Run, command: str) -> GoalTest:
    """The user's command.

    Raises:
        UsageError: it does not fail now.
    """
    run.tests.checkout(run.commits.base)
    code, said = run.tests.run_apart(command)
    if code == 0:
        raise UsageError(
            f"--check sh:{command}: it does not fail now (exit 0): {said.strip()[-200:]}",
            hint="give a command that fails until the task is done",
        )
    line = said.strip().rpartition("\n")[2][:200]
    return GoalTest(
        name=f"sh: {command}", source=GoalSource.GIVEN, command=command, got=f"exit {code}: {line}"
    )


def _add_check(stated: StatedGoals, runs: GoalRuns, check: str) -> None:
    """Add the user's statement as a test.

    Raises:
        UsageError: it cannot be run, or does not fail now.
    """
    code = check.strip()
    try:
        (only,) = compile_statement(code).body
    except (SyntaxError, ValueError):
        only = None
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
        code = f"assert {code}"
    case = stated.statement(code)
    if isinstance(case, str):
        script = stated.script_statement(check.strip())
        if script is None:
            raise UsageError(
                f"--check {check!r}: {case}", hint="give `assert CALL == VALUE`, or `sh:COMMAND`"
            )
        case = script
    home = stated.home_now(case.home)
    observation = runs.statement(home, case.looked)
    if not observation.problem and _case_holds(case, observation):
        raise UsageError(
            f"--check {check!r}: it does not fail now", hint="give what fails until the task is done"
        )
    if home.style is not None:
        test = stated.script_check(case, home, check.strip(), observation)
    else:
        wanted, call = WantedValue(text=""), _left_side(case.claim.call)
        test = NewTest(
            name=test_name(call, wanted, names_bound(home.text)),
            call=call,
            wanted=wanted,
            imports=case.imports,
            statement=case.claim.call,
        )
    checked = None if observation.problem else runs.checked(home, [test], {test.name: observation})
    if checked is None:
        why = observation.problem or observation.described()
        raise UsageError(f"--check {check!r}: it cannot be run as a test: {why}", hint=CHECK_HINT)
    stated.take({test.name: GoalSource.GIVEN}, checked, {test.name: observation})


def _case_holds(case: Case, observation: Observation) -> bool:
    """Whether a statement raises nothing, or a call gives the value that it is compared with."""
    return not observation.raised and (not case.claim.values or "equal" in observation.matches[0])


def _left_side(code: str) -> str:
    """The first call in the statement."""
    nodes = list(ast.walk(ast.parse(code)))
    for node in nodes:
        if isinstance(node, ast.Compare):
            return ast.unparse(node.left)
    call = next((node for node in nodes if isinstance(node, ast.Call)), None)
    return ast.unparse(call) if call is not None else code.partition("\n")[0]


def _same_calls(run: Run, red: Sequence[GoalTest], found: Found, seen: Sequence[Seen]) -> list[GoalTest]:
    """Of the `red` tests those with a call of the goal tests that were `found`, or that these repeat, or that the words make; a note
    names the others.
    """
    claims = [one.case.claim for one in seen]
    of_own_names = {claim.call for claim in claims if claim.setup}
    known = {test.call for test in (*found.tests, *found.repeated)} | {claim.call for claim in claims}
    calls = known - of_own_names
    same = [
        test for test in red if any(call in f"{test.call}\n{_source_of(run, test.name)}" for call in calls)
    ]
    if others := [test.name for test in red if test not in same]:
        count = counted(len(others), "red test is", "red tests are")
        found.notes.append(
            f"{count} not counted as a goal, since the task names a call of its own: {', '.join(others[:FEW])}"
        )
    return same


def related_red_tests(
    run: Run, baseline: TestRun, mentioned: Sequence[NamedDefinition]
) -> tuple[list[GoalTest], bool]:
    """The red tests of the baseline that the task is about, and whether its words name them; else they are about what the
    words name, or import a file that these name; where they name nothing, all, if there are few. What fails because the
    environment lacks something is none.
    """
    words = run.task.description
    tree = run.commits.tree(run.commits.base)
    failures = {one.name: one for one in baseline.failing}
    red = [
        name
        for name in sorted(baseline.red())
        if not _lacks_environment(failures.get(name), words, tree.paths)
    ]
    named = [name for name in red if _names_test(words, name)]
    files = [path for path in sorted(tree.paths) if "." in path and names_file(words, path)]
    about = named or [name for name in red if _is_about(run, name, failures.get(name), mentioned, files)]
    if not about and not mentioned and not files and len(red) <= FEW:
        about = red
    return [goal_of_test(run, baseline, name, GoalSource.REPOSITORY) for name in about], bool(named)


def _names_test(words: str, name: str) -> bool:
    """Whether the words name the test: in full, its function, or its file."""
    if name in words:
        return True
    path, qualified = split_pytest_id(name)
    last = re.split(r"[.:]+| > ", qualified)[-1]
    if len(last) > len("test_") and re.search(rf"(?<![\w]){re.escape(last)}(?!\w)", words):
        return "_" in last or " " in last or last != last.lower()
    return bool(path) and names_file(words, path)


def _is_about(
    run: Run,
    name: str,
    failure: FailingTest | None,
    mentioned: Sequence[NamedDefinition],
    files: Sequence[str],
) -> bool:
    """Whether the test ran into, or names, a definition or file that the words name."""
    frames = failure.frames if failure is not None else ()
    if any(frame.path in files for frame in frames):
        return True
    last_names = {one.name.rpartition(".")[2] for one in mentioned}
    if any(
        frame.path == one.path and one.first_line <= frame.line <= one.last_line
        for frame in frames
        for one in mentioned
    ):
        return True
    said = f"{failure.statement} {failure.message}" if failure is not None else ""
    text = f"{said}\n{_source_of(run, name)}"
    if any(re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", text) for word in last_names):
        return True
    stems = {path.rpartition("/")[2].partition(".")[0] for path in files}
    if any(re.search(rf"(?<![\w$]){re.escape(stem)}(?![\w$])", text) for stem in stems if len(stem) > 2):
        return True
    return bool(stems) and _imports_any(_file_of(run, name), stems)


def _imports_any(text: str, modules: Collection[str]) -> bool:
    """Whether the text of a test imports one of the modules, which are last parts of names."""
    wanted = "|".join(map(re.escape, modules))
    line = rf"^.*(?:\bimport\b|\bfrom\b|\brequire\b).*(?<![\w$])(?:{wanted})(?![\w$])"
    return re.search(line, text, re.MULTILINE) is not None


def as_told(run: Run, goals: Sequence[GoalTest]) -> tuple[GoalTest, ...]:
    """The goal tests as models are told them: a short test that does not make a single call, with its text."""
    return tuple(
        goal
        if goal.call or goal.code or goal.command
        else replace(goal, code=source if len(source.splitlines()) <= MOST_TEST_LINES else "")
        for goal in goals
        for source in [_function_of(goal.name, _file_of(run, goal.name))]
    )


def _source_of(run: Run, name: str) -> str:
    """The text of the test, as far as it is found; of a file that could not be loaded, all of it."""
    text = _file_of(run, name)
    return _function_of(name, text) or text


def _file_of(run: Run, name: str) -> str:
    """The text of the test's file at the base; "" if it is not found."""
    tree = run.commits.tree(run.commits.base)
    path = next((one for one in files_meant(name) if one in tree.paths), "")
    return tree.texts((path,))[0].get(path, "") if path else ""


def _function_of(name: str, text: str) -> str:
    """The functions of a Python file that the test's name may mean, with their decorators; "" for none."""
    if is_of_file(name):
        return ""
    parts = re.split(r"::|\.", name.partition("[")[0])
    module = python_module(text)
    functions = [
        node
        for node in (ast.walk(module) if module is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == parts[-1]
    ]
    lines = text.splitlines()
    firsts = [min([node, *node.decorator_list], key=lambda one: one.lineno).lineno for node in functions]
    return "\n".join(
        textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
        for first, node in zip(firsts, functions, strict=True)
    )


def _lacks_environment(failure: FailingTest | None, words: str, paths: frozenset[str]) -> bool:
    """Whether the test fails because something is not there that is neither the repository's nor named by the words."""
    found = ENVIRONMENT.search(failure.message) if failure is not None else None
    if found is None:
        return False
    lacked = next(filter(None, found.groups()))
    if re.search(rf"(?<![\w]){re.escape(lacked.rpartition('.')[2])}(?!\w)", words):
        return False
    if found["name"] is not None:
        return True
    root = lacked.split(".")[0].lstrip("./")
    return not any(f"/{path}".find(f"/{root}") >= 0 for path in paths) or found["fixture"] is not None


def goal_of_test(run: Run, baseline: TestRun, name: str, source: GoalSource) -> GoalTest:
    """With the call that its failing assertion makes, where it makes one: models are told that, not the test's text."""
    failure = next((one for one in baseline.failing if one.name == name), FailingTest(name=name))
    files, known = files_meant(name), run.commits.tree(run.commits.base).paths
    path = next((one for one in files if one in known), files[0])
    message = failure.message.partition("\n")[0][:MOST_VALUE]
    call = ""
    got, wanted = given_and_wanted(failure.actual or message, failure.expected)
    said = _failed_assertion(run, failure)
    if said is not None:
        expected, actual = failure.expected, failure.actual
        if said.swapped:
            expected, actual = actual, expected
        told = TRUTH if said.wanted in {"True", "False"} else EQUALITY
        shown = next(filter(None, map(told.fullmatch, failure.message.split("\n"))), None)
        raised = "" if message.startswith("AssertionError") else message
        call, wanted = said.call, expected or said.wanted
        got = actual or (shown["value"][:MOST_VALUE] if shown and not said.swapped else raised)
    return GoalTest(
        name=name, source=source, path=path if "." in path else "", call=call, wanted=wanted, got=got
    )


def _failed_assertion(run: Run, failure: FailingTest) -> Asserted | None:
    """What its failing statement compares, or that of a helper in its file which it calls."""
    if not failure.statement:
        return None
    found = asserted(failure.statement, _source_of(run, failure.name), dict(failure.arguments))
    if found is not None:
        return found
    text = _file_of(run, failure.name)
    files = files_meant(failure.name)
    inner = next((frame for frame in failure.frames if frame.path in files), None)
    helped = asserted_by_helper(text, inner.line, failure.statement) if inner is not None else None
    return helped or script_asserted(failure.statement)


def without_goal_tests(commits: RunCommits, goals: str, accepted: Sequence[str]) -> str:
    """The last of the `accepted` commits, oldest first, made anew on the snapshot without what the commit `goals` adds to it;
    it is kept under the run's refs.
    """
    base, added = commits.tree(commits.base), commits.tree(goals)
    paths = {one.path for one in commits.changed(commits.base, goals)}
    before, tip = goals, commits.base
    for commit in accepted:
        now = commits.tree(commit)
        changes = {one.path: now.change(one.path) for one in commits.changed(before, commit)}
        for path in paths & changes.keys():
            changes[path] = _change_without_added(path, base, added, now)
        before = commit
        if changes:
            tip = commits.remake(commit, changes, tip)
    return commits.keep(tip, "without-goals") if tip != commits.base else tip


def _change_without_added(path: str, base: Tree, added: Tree, now: Tree) -> FileChange | None:
    change = now.change(path)
    if change is None or change == added.change(path):
        return base.change(path)
    data = unmerged(base.data(path) or b"", added.data(path) or b"", change.data)
    if not data.strip() and base.data(path) is None:
        return None
    return FileChange(data=data, mode=change.mode)


def unmerged(base: bytes, added: bytes, now: bytes) -> bytes:
    """`now`, which was made from `added`, without what `added` has beyond `base`. What `now` changes inside of that goes with
    it; imports stay, since what `now` has of its own may need them.

        base   added   now      unmerged
        a      a       a        a
               b       b
                       c        c
    """
    old, middle, new = (text.splitlines(keepends=True) for text in (base, added, now))
    gone: set[int] = set()  # lines of `added`
    back: dict[int, list[bytes]] = {}  # lines of `base`, by the line of `added` that they come before
    for tag, i1, i2, j1, j2 in _diff_opcodes(old, middle):
        imports = j1 < j2 and all(IMPORT.match(line) for line in middle[j1:j2])
        if tag != "equal" and not imports:
            gone.update(range(j1, j2))
            back[j1] = old[i1:i2]
    lines: list[bytes] = []
    for _, i1, i2, j1, j2 in _diff_opcodes(middle, new):
        count = max(i2 - i1, j2 - j1)
        for offset in range(count):
            line = i1 + offset if i1 + offset < i2 else None
            lines += back.pop(line, []) if line is not None else []
            if j1 + offset < j2 and (line is None or line not in gone or IMPORT.match(middle[line])):
                lines.append(new[j1 + offset])
    return b"".join([*lines, *back.get(len(middle), [])])


def _diff_opcodes(
    before: Sequence[bytes], after: Sequence[bytes]
) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
