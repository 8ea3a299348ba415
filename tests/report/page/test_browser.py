"""The page in a real browser, where there is one: it asks nobody for anything."""

import os
import re
import shutil
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from tests.report.conftest import Solved

from clean_room_agent import proc
from clean_room_agent.cli.main import run as cra

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--proxy-bypass-list=<-loopback>"),
)

OWN = re.compile(rb"\.google(?:apis)?\.com\b")
"""Whom Chromium itself asks, whatever it is told."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


class Proxy(socketserver.ThreadingTCPServer):
    """Keeps what it is asked for, and answers nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Kept)


class _Kept(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Proxy)
        _, target, *_ = (*self.rfile.readline().split(), b"", b"")
        if OWN.search(target) is None:
            self.server.asked.append(target)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def browse(folder: Path, proxy: Proxy, page: Path, *flags: str) -> str:
    """What Chromium makes of the page, as HTML, or what it says of it."""
    assert CHROMIUM is not None
    where = f"--proxy-server=http://127.0.0.1:{proxy.server_address[1]}"
    command = (
        CHROMIUM,
        *FLAGS,
        where,
        f"--user-data-dir={folder / 'profile'}",
        *flags,
        "--dump-dom",
        page.as_uri(),
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return proc.run(command, cwd=folder, env=env, timeout=PATIENCE, bound=50_000_000).stdout.decode()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, solved: Solved) -> Path:
    """The page of a run."""
    page = tmp_path_factory.mktemp("page") / "page.html"
    assert cra(("report", solved.trace.task_id, "--repo", str(solved.top), "-o", str(page))) == 0
    return page


def test_the_proxy_would_hear_of_a_request(tmp_path: Path, proxy: Proxy) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://example.invalid/x.png">')
    browse(tmp_path, proxy, page)
    assert proxy.asked == [b"http://example.invalid/x.png"]


def test_a_page_and_what_slips_into_it_ask_for_nothing(tmp_path: Path, proxy: Proxy, page: Path) -> None:
    slipped = '<img src="http://example.invalid/x.png"><script>document.title = "run"</script><p style="color: red">'
    spoiled = tmp_path / "page.html"
    text = page.read_text(encoding="utf-8")
    spoiled.write_text(text.replace("<main", f"{slipped}<main"), encoding="utf-8")
    shown = browse(tmp_path, proxy, spoiled)
    assert 'id="passes"' in shown
    assert "<title>run</title>" not in shown
    assert proxy.asked == []
