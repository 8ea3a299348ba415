import pytest
from msgspec.structs import replace
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.context import RefinementRequest, Section
from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.orchestrator.steps.missing_context import (
    is_new,
    missing_after_refusal,
    missing_after_tests,
    not_shown_whole,
)

KNOWN = {"a.py", "b.py", "tests/test_b.py"}
SHOWN = package(shown_file("a.py", "import b\n"))


def report(path: str, code: EditCode) -> EditReport:
    return EditReport(index=0, file_path=path, code=code)


def test_an_edit_of_an_unseen_file_asks_for_that_file() -> None:
    request = missing_after_refusal([report("b.py", EditCode.WRONG_FILE)], SHOWN, KNOWN)
    assert request is not None
    assert request.missing_files == ("b.py",)


def test_a_misquote_of_a_file_shown_whole_lacks_nothing() -> None:
    assert missing_after_refusal([report("a.py", EditCode.NO_MATCH)], SHOWN, KNOWN) is None


def step_that_changes(*paths: str) -> PlanStep:
    targets = tuple(TargetFile(path=path, role="modify") for path in paths)
    return PlanStep(id="s1", description="d", target_files=targets)


def test_files_of_a_step_that_are_shown_in_part_are_wanted_whole_where_there_is_room() -> None:
    step = step_that_changes("a.py", "b.py", "c.py", "huge.py", "unreadable.py")
    seen = package(shown_file("a.py", "import b\n"), shown_symbol("b.py", "def part(): ...\n", "part", 1, 1))
    left = seen.budget.context_window - seen.budget.reserved_tokens - seen.budget.used_tokens
    sizes = {"a.py": 9, "b.py": left, "c.py": 10, "huge.py": left}
    request = not_shown_whole(step, seen, sizes)
    assert request is not None
    assert request.whole_files == ("b.py", "c.py")
    assert is_new(request, [])
    assert not is_new(request, [request])
    assert is_new(request, [RefinementRequest(reason="r", missing_files=("b.py", "c.py"))])


def test_failing_tests_ask_for_what_they_name_and_the_context_did_not_show() -> None:
    evidence = Evidence(
        tests=(
            FailingTest(name="tests/test_b.py::test_one"),
            FailingTest(name="tests/test_a.py::test_gone"),
        ),
        messages=("NameError: name 'helper' is not defined",),
        frames=(StackFrame(path="b.py", line=3), StackFrame(path="a.py", line=1), StackFrame(path="lib.py")),
    )
    request = missing_after_tests(evidence, SHOWN, KNOWN)
    assert request is not None
    assert request.missing_files == ("b.py",)
    assert request.missing_symbols == ("helper",)
    assert request.missing_tests == ("tests/test_b.py::test_one",)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("tests/test_b.py > not pytest's", "tests/test_b.py"),
        ("web/b.test.ts > outer > a::b > inner", "web/b.test.ts"),
        ("web/b.test.ts", "web/b.test.ts"),
        ("tests.test_b.Case.test_one", "tests/test_b.py"),
        ("outer > inner", ""),
        ("Case.test_one", ""),
    ],
)
def test_a_failing_test_is_asked_for_by_the_name_that_its_runner_gives(name: str, file: str) -> None:
    evidence = Evidence(tests=(FailingTest(name=name),))
    request = missing_after_tests(evidence, SHOWN, {*KNOWN, "web/b.test.ts"})
    assert (request is not None) == bool(file)
    if request is not None:
        assert request.missing_tests == (name,)
        assert missing_after_tests(evidence, package(shown_file(file, "x\n")), {file}) is None


@pytest.mark.parametrize(
    ("said", "symbol"),
    [
        ("TypeError: render() got an unexpected keyword argument 'width'", "render"),
        ("TypeError: Page.render() got an unexpected keyword argument 'width'", "Page.render"),
        ("TypeError: Page.__init__() got an unexpected keyword argument 'width'", "Page"),
        ("TypeError: make.<locals>.inner() missing 1 required positional argument: 'x'", "inner"),
        ("TypeError: render() missing 2 required keyword-only arguments: 'x' and 'y'", "render"),
        ("TypeError: Page.render() takes 1 positional argument but 2 were given", "Page.render"),
        ("TypeError: render() takes from 1 to 2 positional arguments but 3 were given", "render"),
    ],
)
def test_a_call_that_does_not_fit_asks_for_what_was_called(said: str, symbol: str) -> None:
    request = missing_after_tests(Evidence(messages=(said,)), SHOWN, KNOWN)
    assert request is not None
    assert request.missing_symbols == (symbol,)


def test_a_file_in_the_words_of_a_failure_is_asked_for() -> None:
    said = "ImportError: cannot import name 'x' from 'lib.b' (./lib/b.py); see a.py and gone/c.py"
    request = missing_after_tests(Evidence(messages=(said,)), SHOWN, {*KNOWN, "lib/b.py"})
    assert request is not None
    assert request.missing_files == ("lib/b.py",)


def test_what_is_called_wrongly_and_shown_lacks_nothing() -> None:
    said = "TypeError: Parser.__init__() got an unexpected keyword argument 'strict'"
    shown = package(shown_file("a.py", "class Parser:\n    pass\n"))
    assert missing_after_tests(Evidence(messages=(said,)), shown, KNOWN) is None


@pytest.mark.parametrize(("section", "wanted"), [("code", ("Parser.close",)), ("tests", ())])
def test_what_is_called_wrongly_and_cannot_be_changed_is_asked_for(
    section: Section, wanted: tuple[str, ...]
) -> None:
    """A caller was changed before the signature: the signature must come among what may be changed."""
    said = "TypeError: Parser.close() takes 1 positional argument but 2 were given"
    item = shown_symbol("b.py", "def close(self): ...\n", "Parser.close", 1, 1, detail="supporting")
    request = missing_after_tests(Evidence(messages=(said,)), package(replace(item, section=section)), KNOWN)
    assert (request.missing_symbols if request else ()) == wanted


def test_a_newly_failing_test_asks_for_its_code_though_its_file_is_partly_shown() -> None:
    text = "def test_one(): pass\ndef test_two(): pass\n"
    shown = package(shown_symbol("tests/test_b.py", text, "test_one", 1, 1))
    names = ("tests/test_b.py::test_one", "tests/test_b.py::TestB::test_two[1-x]")
    evidence = Evidence(tests=tuple(FailingTest(name=name) for name in names))
    request = missing_after_tests(evidence, shown, KNOWN, newly_failing=names)
    assert request is not None
    assert request.missing_tests == (names[1],)
    assert missing_after_tests(evidence, shown, KNOWN) is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tests/b.test.ts > sums > adds two numbers", "it('adds two numbers', f)\n"),
        ("tests/b.test.ts > sums > adds #2", "it('adds', f)\n"),
        ("tests.test_b.TestB.test_two", "def test_two(): pass\n"),
    ],
)
def test_the_code_of_a_test_is_found_by_the_names_of_all_runners(name: str, code: str) -> None:
    path = "tests/b.test.ts" if " > " in name else "tests/test_b.py"
    known = {path, "src/b.py"}
    evidence = Evidence(tests=(FailingTest(name=name),))
    other = package(shown_symbol(path, "other\n", "other", 1, 1), shown_file("src/b.py", "x\n"))
    request = missing_after_tests(evidence, other, known, newly_failing=(name,))
    assert request is not None
    assert request.missing_tests == (name,)
    test = shown_symbol(path, code, "it", 1, 1, detail="supporting")
    shown = package(replace(test, section="tests"), shown_file("src/b.py", "x\n"))
    assert missing_after_tests(evidence, shown, known, newly_failing=(name,)) is None
