import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.paths import kind_of
from clean_room_agent.query import ranking
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.query.ranking import KIND_WEIGHTS, WEIGHTS, Ranking
from clean_room_agent.query.search import SearchQuery, Vote

PATHS = {1: "a.py", 2: "b.py", 3: "c.py"}
FILES = {
    "pay/bill.py": "class Bill:\n    def split_evenly(self):\n        return self.cents\n",
    "pay/tip.py": "def tip(bill):\n    return bill\n",
    "pay/report.py": "def show(bill):\n    return bill\n",
    "tests/test_bill.py": "def test_split_evenly():\n    pass\n",
    "docs/bill.md": "How a bill is split evenly.\n",
}


def vote(weight: float, source: int) -> Vote:
    made = Vote()
    made.add(weight, source)
    return made


def test_a_name_counts_what_it_says_and_is_quoted_in_the_reason() -> None:
    signal = ranking.named_signal("name", {1: (0.5, "cart")}, "the task says {!r}")
    assert (signal.share(1), signal.explain(1)) == (0.5, "the task says 'cart'")


def test_co_change_names_the_file_that_it_changed_together_with() -> None:
    signal = ranking.co_change_signal(PATHS, {2: vote(0.2, 1), 3: vote(0.1, 1)})
    assert (signal.share(2), signal.share(3)) == (1.0, 0.5)
    assert signal.explain(3) == "often changed together with a.py"


def test_votes_add_up_and_the_strongest_is_the_source() -> None:
    votes = vote(0.5, 7)
    votes.add(0.75, 8)
    votes.add(0.25, 9)
    assert (votes.weight, votes.source, votes.count) == (1.5, 8, 3)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    top: Path = make_repository(tmp_path_factory.mktemp("ranking") / "repo", FILES)
    commit(top, {"pay/report.py": FILES["pay/report.py"] + "\n"}, "Align the columns of the summary")
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        yield KnowledgeBase(conn)


def order(kb: KnowledgeBase, text: str, **fields: object) -> list[str]:
    return [hit.path for hit in kb.rank(SearchQuery(text=text, **fields), limit=10)]  # type: ignore[arg-type]


def test_code_comes_before_tests_and_documents_unless_they_are_wanted(kb: KnowledgeBase) -> None:
    usual = order(kb, "split evenly")
    assert usual[0] == "pay/bill.py"
    assert usual.index("docs/bill.md") < usual.index("tests/test_bill.py")
    with_tests = order(kb, "split evenly", wanted=frozenset({"test"}))
    assert with_tests.index("tests/test_bill.py") < usual.index("tests/test_bill.py")


def test_a_file_is_found_by_what_a_like_commit_changed(kb: KnowledgeBase) -> None:
    (hit, *_) = kb.rank(SearchQuery(text="Align columns"), limit=1)
    assert hit.path == "pay/report.py"
    assert any("'Align the columns of the summary'" in reason for reason in hit.reasons)


def test_every_signal_has_a_weight_and_explains_itself(kb: KnowledgeBase) -> None:
    found = Ranking(kb._conn).find(
        SearchQuery(text="bill: split evenly", names=("split_evenly",), paths=("pay/bill.py",))
    )
    assert [signal.name for signal in found if signal.name not in WEIGHTS] == []
    assert {signal.name for signal in found} == set(WEIGHTS)
    for signal in found:
        for file_id, value in signal.values.items():
            assert 0 < value <= signal.top
            assert signal.explain(file_id)


def test_a_score_is_the_sum_of_the_weighted_shares(kb: KnowledgeBase) -> None:
    question = SearchQuery(text="Split the bill evenly", names=("Bill",))
    found = Ranking(kb._conn).find(question)
    for hit in kb.rank(question, limit=10):
        shares = sum(WEIGHTS[signal.name] * signal.share(hit.file_id) for signal in found)
        assert hit.score == pytest.approx(shares * KIND_WEIGHTS[kind_of(hit.path)])


def test_the_example_of_the_module_is_scored_as_it_says(tmp_path: Path) -> None:
    example = ranking.__doc__ or ""
    files = {
        "pay/bill.py": "def split(cents):\n    return cents\n",
        "pay/tip.py": "def tip(bill):\n    return bill\n",
        "docs/bill.md": "How a bill is split.\n",
    }
    assert all(line.strip() in example for text in files.values() for line in text.splitlines())
    top = make_repository(tmp_path / "repo", files)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        found = {signal.name: signal for signal in Ranking(conn).find(SearchQuery(text="split"))}
        hits = KnowledgeBase(conn).rank(SearchQuery(text="split"), limit=10)
    table = re.findall(r"^ +(\S+/\S+) +(\S+) +(\d) +(\d) .*= (\d\.\d{3})$", example, re.MULTILINE)
    assert [(hit.path, f"{hit.score:.3f}") for hit in hits] == [(path, score) for path, *_, score in table]
    for hit, (_, *shares, _) in zip(hits, table, strict=True):
        for name, share in zip(("fields", "definitions", "co_change"), shares, strict=True):
            assert found[name].share(hit.file_id) == pytest.approx(float(share), abs=0.0005)
    by_fields = sorted(found["fields"].values.values(), reverse=True)
    assert all(f"{value:.3f}" in example for value in by_fields)


def test_a_word_of_nearly_every_file_finds_none_where_they_are_many(tmp_path: Path) -> None:
    files = {f"pkg/m{number}.py": f"common = {number}\n" for number in range(60)}
    top = make_repository(tmp_path / "repo", {**files, "pkg/rare.py": "common = special = 1\n"})
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        fields, *_ = Ranking(conn).find(SearchQuery(text="common special"))
        assert list(fields.values) == [
            file.id for file in KnowledgeBase(conn).get_files() if file.path == "pkg/rare.py"
        ]
