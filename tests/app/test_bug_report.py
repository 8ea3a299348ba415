"""What a bug report takes out of texts, and the archive that it becomes."""

import io
import zipfile
from pathlib import Path

from clean_room_agent.app.bug_report import Part, archive, cleaner, listing
from clean_room_agent.redaction import Redactor
from clean_room_agent.workspace import Workspace

FILES = ((Part(name="run.json", holds="outcomes", value={}), "{}\n"),)


def test_places_of_the_user_are_taken_out(tmp_path: Path) -> None:
    clean = cleaner(Redactor(lambda: b"k" * 32, ("hunter2-hunter2",)), Workspace(repo=tmp_path))
    text = clean(f"{tmp_path}/a.py {Path.home()}/b.py {tmp_path}-other hunter2-hunter2")
    assert "<repository>/a.py" in text
    assert "~/b.py" in text
    assert f"{tmp_path}-other" in text or "-other" in text
    assert "hunter2" not in text


def test_the_same_texts_give_the_same_archive() -> None:
    packed = archive(FILES)
    assert packed == archive(FILES)
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        assert opened.namelist() == ["cra-bug-report/README.txt", "cra-bug-report/run.json"]
        assert "outcomes" in opened.read("cra-bug-report/README.txt").decode()


def test_the_listing_names_each_file_with_its_size() -> None:
    assert listing(FILES) == "  run.json (0.0 kB)\n      outcomes"
