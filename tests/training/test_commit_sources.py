"""Repositories by path, by URL and by manifest."""

from pathlib import Path

import pytest
from testing.histories import make_history
from testing.repositories import git

from clean_room_agent.errors import ArtifactError, UsageError
from clean_room_agent.training.commit_sources import (
    Exclusions,
    Listed,
    open_sources,
    read_exclusions,
    read_manifest,
)


def quiet(_text: str) -> None:
    """Nobody watches."""


def test_a_manifest_names_revisions(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(
        '[[repository]]\nsource = "till"\nrevision = "v1"\nname = "shop/till"\n'
        '[[repository]]\nsource = "https://example.org/shop/till"\n'
    )
    assert read_manifest(path) == (
        Listed(source=str(tmp_path / "till"), revision="v1", name="shop/till"),
        Listed(source="https://example.org/shop/till"),
    )


@pytest.mark.parametrize(
    "text", ["", "[[repository]]\nrevision = 1\n", "[[repository]]\nsource = 'a'\nb = 1\n", "["]
)
def test_a_manifest_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=r"list\.toml"):
        read_manifest(path)


def test_a_url_is_cloned_once_which_is_told(tmp_path: Path) -> None:
    make_history(tmp_path / "till")
    head = git(tmp_path / "till", "rev-parse", "HEAD")
    told: list[str] = []
    listed = [Listed(source=f"file://{tmp_path}/till", name="till")]
    (first,), _ = open_sources(listed, tmp_path / "clones", Exclusions(), told.append)
    assert first.head == head
    assert told
    told.clear()
    (again,), _ = open_sources(listed, tmp_path / "clones", Exclusions(), told.append)
    assert (again, told) == (first, [])


@pytest.mark.parametrize(
    "url", ["ext::sh -c touch% /tmp/pwned", "git://127.0.0.1:1/till", "ssh://127.0.0.1/till"]
)
def test_an_address_of_another_kind_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Exception, match=r"clone|no folder"):
        open_sources([Listed(source=url)], tmp_path / "clones", Exclusions(), quiet)
    assert not list(tmp_path.glob("clones/*"))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    make_history(tmp_path / "till")
    for source, revision in ((str(tmp_path / "none"), "HEAD"), (str(tmp_path / "till"), "v9")):
        with pytest.raises(UsageError, match=r"none|v9"):
            open_sources([Listed(source=source, revision=revision)], tmp_path, Exclusions(), quiet)
    twice = [Listed(source=str(tmp_path / "till"))] * 2
    with pytest.raises(UsageError, match="two repositories"):
        open_sources(twice, tmp_path, Exclusions(), quiet)


def test_repositories_of_benchmarks_are_left_out_however_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.txt"
    path.write_text(f"# do not learn from these\nShop/Till.git\n{'a' * 40}\n")
    exclusions = read_exclusions(path)
    assert exclusions.commits == {"a" * 40}
    for name in ("https://example.org/shop/till", "git@example.org:shop/till.git", "/mirrors/shop+till/repo"):
        assert exclusions.has(name)
    assert not exclusions.has("shop/tiller")
    found, left_out = open_sources(
        [Listed(source="https://example.org/shop/till")], tmp_path / "clones", exclusions, quiet
    )
    assert (found, left_out) == ((), ("https://example.org/shop/till",))


def test_a_name_that_cannot_be_printed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unprintable"):
        open_sources([Listed(source="a\nb")], tmp_path, Exclusions(), quiet)
