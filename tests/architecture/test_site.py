"""The documentation as a site: every link leads somewhere, and its pages ask nobody for anything.

Needs requirements/docs.txt in an environment of its own; CRA_MKDOCS names the program there.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc

ROOT = Path(__file__).parents[2]
MKDOCS = os.environ.get("CRA_MKDOCS", "")
PAGES = ("README.md", "CHANGELOG.md", "planning", "protocols", "benchmarks", "testing/README.md", "site")
LOADED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?\s(?:src|href)=["']?((?:https?:)?//[^\s"'>]+)"""
)
needs_mkdocs = pytest.mark.skipif(not MKDOCS, reason="CRA_MKDOCS names no mkdocs")


def build(root: Path, target: Path) -> tuple[int, str]:
    """Exit code and what was said; without a network where that can be had."""
    command: tuple[str, ...] = (
        MKDOCS,
        "build",
        "--strict",
        "-f",
        str(root / "site/mkdocs.yml"),
        "-d",
        str(target),
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(target.parent), "NO_MKDOCS_2_WARNING": "1"}
    alone = ("unshare", "--user", "--map-root-user", "--net")
    if (
        shutil.which("unshare")
        and proc.run((*alone, "true"), cwd=root, env=environment, timeout=PATIENCE, check=False).returncode
        == 0
    ):
        command = (*alone, *command)
    done = proc.run(command, cwd=root, env=environment, timeout=PATIENCE, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


@needs_mkdocs
def test_the_site_is_built_strictly_without_a_network(tmp_path: Path) -> None:
    code, told = build(ROOT, tmp_path / "site")
    assert code == 0, told
    assert "excluded from the built site" not in told, "a page links to a file that the site has not"
    files = [path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.html")]
    pages = {path.as_posix() for path in files}
    wanted = {
        path.relative_to(ROOT).with_suffix(".html").as_posix() for path in (ROOT / "planning").glob("*.md")
    }
    assert (
        wanted
        | {"index.html", "protocols/security.html", "benchmarks/index.html", "benchmarks/oracle/RESULTS.html"}
        <= pages
    )
    assert not {page for page in pages if page.startswith(("src/", "tests/"))}

    texts = [(tmp_path / "site" / path).read_text(encoding="utf-8") for path in files]
    assert [found for text in texts for found in LOADED.findall(text)] == [], "a page loads from elsewhere"
    styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', (tmp_path / "site/index.html").read_text())
    assert styles
    assert all((tmp_path / "site" / style).is_file() for style in styles)


@needs_mkdocs
def test_dead_links_fail(tmp_path: Path) -> None:
    root = tmp_path / "copy"
    for name in PAGES:
        source, target = ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    with (root / "README.md").open("a", encoding="utf-8") as file:
        file.write("\n[dead](planning/nowhere.md) [gone](planning/loop.md#gone)\n")
    code, told = build(root, tmp_path / "site")
    assert code == 1
    assert "planning/nowhere.md" in told
    assert "#gone" in told


def test_a_first_hour_comes_first_and_every_page_but_single_decisions_is_listed() -> None:
    listed = re.findall(
        r"^ +- ([\w/-]+\.md)$", (ROOT / "site/mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    pages = [*ROOT.glob("planning/*.md"), *ROOT.glob("protocols/*.md"), *ROOT.glob("benchmarks/*/RESULTS.md")]
    assert listed[:2] == ["README.md", "planning/first-hour.md"]
    assert {page.relative_to(ROOT).as_posix() for page in pages} <= set(listed)


def test_what_the_site_needs_is_pinned_by_hashes() -> None:
    text = (ROOT / "requirements/docs.txt").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if entry.strip()]
    assert any(entry.startswith("mkdocs-material==") for entry in entries)
    assert all("==" in entry.split("\n", 1)[0] and "--hash=sha256:" in entry for entry in entries)


def test_a_page_that_loads_from_elsewhere_would_be_found() -> None:
    assert LOADED.findall('<script async src="https://example.invalid/a.js"></script>')
    assert LOADED.findall("<link rel=stylesheet href=//example.invalid/a.css>")
    assert not LOADED.findall('<a href="https://example.invalid">here</a><link href="assets/a.css">')
