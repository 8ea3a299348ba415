"""Logged rows say under which licence the code in them stands."""

from pathlib import Path

from msgspec.structs import replace
from testing.repositories import make_repository
from testing.seeded_record import Seeded

from clean_room_agent.db.connection import read_record
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.git.repository import open_repository
from clean_room_agent.training.curate import with_licences
from clean_room_agent.training.examples import read_examples
from clean_room_agent.training.logs import LogAnalysisAPI

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"


def test_a_logged_row_has_the_licence_of_its_commit(seeded: Seeded, tmp_path: Path) -> None:
    top = make_repository(tmp_path / "licensed", {"LICENSE": MIT, "a.py": "x = 1\n"})
    head = open_repository(top).head
    with read_record(seeded.top) as conn:
        example = read_examples(LogAnalysisAPI(conn), META_PLAN, lambda _done, _total: None)[0]
    places = [(str(top), head or ""), (str(top), "0" * 40), (str(tmp_path / "gone"), head or "")]
    runs = [replace(example.task.run, repo_path=repo, commit=commit) for repo, commit in places]
    made = with_licences(replace(example, task=replace(example.task, run=run)) for run in runs)
    assert [each.row(label=True).origin.license for each in made] == ["MIT", "MIT", ""]
