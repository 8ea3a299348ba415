import pytest

from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame, describe_evidence
from clean_room_agent.orchestrator.task_evidence import unrelated_tests

TESTS = """\
from boltons.iterutils import chunked, remap
from boltons.iterutils import windowed as win


def test_chunked():
    assert chunked(range(10), 3, fill=0)


def test_windowed():
    assert win(range(3), 2)


def test_bench_chunked(benchmark):
    benchmark(chunked, range(10))


def test_bench_remap(benchmark):
    benchmark(remap, {})
"""
FILES = {
    "tests/test_iterutils.py": TESTS,
    "tests/test_urls.py": "def test_parse():\n    assert parse('a')\n",
    "boltons/iterutils.py": "",
    "shop/__init__.py": "",
}


def read(path: str) -> str:
    return FILES.get(path, "")


def failing(
    function: str,
    message: str = "assert [9] == [9, 0]",
    at: str = "boltons/iterutils.py",
    path: str = "tests/test_iterutils.py",
) -> FailingTest:
    return FailingTest(
        name=f"{path}::{function}", message=message, path=at, line=3, frames=(StackFrame(path=at, line=3, function="f"), StackFrame(path=path, line=5))
    )  # fmt: skip


LACKING = "fixture 'benchmark' not found"
CHUNKED, WINDOWED = failing("test_chunked"), failing("test_windowed")
BENCH_CHUNKED, BENCH_REMAP = failing("test_bench_chunked", LACKING), failing("test_bench_remap", LACKING)
URLS = failing("test_parse", at="boltons/urlutils.py", path="tests/test_urls.py")
ALL = (CHUNKED, WINDOWED, BENCH_CHUNKED, BENCH_REMAP, URLS)


def left_out(words: str, *tests: FailingTest) -> set[str]:
    return {name.rpartition("::")[2] for name in unrelated_tests(tests or ALL, words, read, FILES)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("chunked(range(10), 3, fill=0) leaves out the last fill", {"test_bench_remap", "test_parse"}),
        ("test_chunked fails", {"test_bench_chunked", "test_bench_remap", "test_parse"}),
        ("tests/test_urls.py fails", {"test_chunked", "test_windowed", "test_bench_chunked", "test_bench_remap"}),
        ("Something in iterutils is wrong", {"test_bench_chunked", "test_bench_remap", "test_parse"}),
        ("Chunking loses the end", {"test_bench_chunked", "test_bench_remap", "test_parse"}),
        ("The end is lost", {"test_bench_chunked", "test_bench_remap"}),
        ("benchmark is not found: do without it", {"test_parse"}),
    ],
)  # fmt: skip
def test_what_the_words_lead_to_is_shown_and_the_rest_is_counted(words: str, expected: set[str]) -> None:
    assert left_out(words) == expected


def test_all_that_fails_by_itself_counts_where_the_words_lead_nowhere() -> None:
    assert left_out("It is wrong", WINDOWED, URLS) == set()
    assert left_out("It is wrong", BENCH_REMAP, URLS) == {"test_bench_remap"}
    assert left_out("It is wrong", BENCH_REMAP) == {"test_bench_remap"}


@pytest.mark.parametrize(
    ("message", "lacks"),
    [
        ("ModuleNotFoundError: No module named 'numpy'", True),
        ("ModuleNotFoundError: No module named 'shop.new'", False),
        ("Error: Cannot find module 'lodash'", True),
        ("Error: Cannot find module './new'", False),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", True),
        ("AssertionError: no module", False),
    ],
)
def test_what_the_repository_itself_could_have_is_not_lacking(message: str, lacks: bool) -> None:
    assert left_out("It is wrong", failing("test_windowed", message)) == (
        {"test_windowed"} if lacks else set()
    )


def test_what_a_task_names_is_not_lacking() -> None:
    assert left_out("Support numpy", failing("test_windowed", "No module named 'numpy'")) == set()


def test_the_others_are_one_line() -> None:
    names = tuple(sorted(unrelated_tests(ALL, "test_chunked", read, FILES)))
    said = describe_evidence(Evidence(tests=(CHUNKED,), others=names))
    assert said.splitlines()[-1] == (
        "3 other tests fail as well, like tests/test_iterutils.py::test_bench_chunked: they are not part of this task."
    )
    assert describe_evidence(Evidence(others=names[:1])) == (
        "One other test fails as well, tests/test_iterutils.py::test_bench_chunked: it is not part of this task."
    )
