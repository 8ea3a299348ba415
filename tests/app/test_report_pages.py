"""Where a report may be written."""

from pathlib import Path

import pytest

from clean_room_agent.app.report_pages import default_place, require_replaceable
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace


def test_a_file_that_is_no_report_is_replaced_only_by_force(tmp_path: Path) -> None:
    mine = tmp_path / "notes.html"
    mine.write_text("<p>mine</p>")
    with pytest.raises(UsageError, match="not a report") as caught:
        require_replaceable(mine, force=False)
    assert "--force" in caught.value.hint
    require_replaceable(mine, force=True)
    require_replaceable(tmp_path / "new.html", force=False)


def test_by_default_it_stands_in_our_own_folder(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    place = default_place(workspace, "3f2c7a90")
    assert place == workspace.folder / "reports/cra-report-3f2c7a90.html"
    assert place.parent.is_dir()
