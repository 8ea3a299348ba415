"""An odd repository is indexed, and what has no place in the index is left out or named; nothing else happens."""

from pathlib import Path

import pytest
from testing.index_dump import dump_of, index
from testing.odd_repository import NOT_UTF8, Fate, deep_contents, make_odd_repository
from testing.repositories import make_repository, write

from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer.build import IndexSummary, index_repository
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.workspace import Workspace

FILES = {f"m{number:03}.py": f"def f{number}(): pass\n" for number in range(80)}
Odd = tuple[Path, dict[str, Fate], IndexSummary]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Odd:
    top = tmp_path_factory.mktemp("odd") / "repo"
    fates = make_odd_repository(top)
    return top, fates, index(top, jobs=2, continue_on_error=True)


def paths_with(fates: dict[str, Fate], *wanted: Fate) -> set[str]:
    return {path for path, fate in fates.items() if fate in wanted}


def test_each_file_is_in_the_index_or_named_or_no_text_of_a_usual_size(odd: Odd) -> None:
    top, fates, summary = odd
    rows = dump_of(top)
    assert {str(row[0]) for row in rows["files"]} == paths_with(fates, "symbols", "text")
    assert [path for path, _ in summary.failures] == sorted(paths_with(fates, "undecodable"))
    named = {path for path, _ in (*summary.failures, *summary.left_out)}
    silent = set(fates) - paths_with(fates, "symbols", "text") - named
    assert {path for path in silent if path.endswith((".py", ".js", ".ts"))} == set()
    assert {str(row[0]) for row in rows["symbols"]} == paths_with(fates, "symbols")


def test_odd_files_that_change_and_go_leave_the_index_of_a_fresh_build(tmp_path: Path) -> None:
    deep = {name: content for name, (content, _) in deep_contents(1_200).items()}
    top = make_repository(tmp_path / "r", deep)
    index(top)
    write(top, {name: content + b"\n\n" for name, content in deep.items()})
    index(top)
    updated = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top)
    assert updated == dump_of(top)
    write(top, dict.fromkeys(deep))
    assert index(top).files_deleted == len(deep)
    assert dump_of(top)["symbols"] == []


def test_a_name_that_is_no_utf8_does_not_stop_the_others(odd: Odd) -> None:
    top, _, _ = odd
    assert (top / NOT_UTF8).exists()
    assert NOT_UTF8 not in {row[0] for row in dump_of(top)["files"]}


def test_a_file_that_vanishes_while_the_index_is_made_is_indexed_or_named_or_gone(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", FILES)

    def vanish(_done: int, _total: int) -> None:
        (top / "m079.py").unlink(missing_ok=True)

    try:
        index_repository(top, config=IndexConfig(), jobs=1, progress=vanish)
        said = ""
    except IndexingError as exc:
        said = str(exc)
    assert not said or "m079.py" in said
    assert not (top / "m079.py").exists()
    index(top)
    assert {row[0] for row in dump_of(top)["files"]} == set(FILES) - {"m079.py"}


def test_a_file_that_grows_while_the_index_is_made_is_as_it_was_or_as_it_is(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", FILES)

    def grow(_done: int, _total: int) -> None:
        (top / "m079.py").write_text("def other(): pass\n" * 3)

    index_repository(top, config=IndexConfig(), jobs=1, progress=grow)
    index(top)
    updated = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top)
    assert updated == dump_of(top)
