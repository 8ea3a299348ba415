"""Which files are resolved again after a change."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.resolution import StoredWorld, affected
from clean_room_agent.indexer.write import Changes

FILES = {
    "package.json": '{"name": "shop", "version": "1.0.0", "exports": {"./items": "./lib/items.ts"}}\n',
    "tsconfig.json": '{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["lib/*"]}}}\n',
    "app.ts": "import { Item } from 'shop/items'\nexport function total(item: Item) {}\n",
    "page.ts": "import { Item } from '@/items'\nexport { Item }\n",
    "print.ts": "import { Item } from './page'\nexport function print(item: Item) { item.price() }\n",
    "lib/items.ts": "export class Item { price() {} }\n",
    "lib/other.ts": "export class Item { price() {} }\n",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "repo", FILES)
    index(top)
    return top


@contextlib.contextmanager
def opened(top: Path) -> Iterator[Connection]:
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        yield conn


def affected_by(top: Path, path: str, text: str) -> set[str]:
    """The paths that are resolved again when the configuration at `path` says this."""
    (top / path).write_text(text)
    with opened(top) as conn:
        ids = files.list_ids(conn)
        found = affected(conn, top, Changes(written={path: ids[path]}), ids, StoredWorld(conn, top, ids))
        return {one for one, number in ids.items() if number in found}


def test_a_version_concerns_nobody(top: Path) -> None:
    text = FILES["package.json"].replace("1.0.0", "1.0.1")
    assert affected_by(top, "package.json", text) == {"package.json"}


def test_a_setting_that_is_written_otherwise_concerns_nobody(top: Path) -> None:
    text = FILES["tsconfig.json"].replace('"lib/*"', '"./lib/*"')
    assert affected_by(top, "tsconfig.json", text) == {"tsconfig.json"}


def test_an_export_that_leads_elsewhere_concerns_who_imports_it(top: Path) -> None:
    text = FILES["package.json"].replace("lib/items.ts", "lib/other.ts")
    assert affected_by(top, "package.json", text) == {"package.json", "app.ts"}


def test_a_path_that_leads_elsewhere_concerns_also_who_asked_the_importer(top: Path) -> None:
    text = FILES["tsconfig.json"].replace("lib/*", "gone/*")
    assert affected_by(top, "tsconfig.json", text) == {"tsconfig.json", "page.ts", "print.ts"}
