"""The record of all runs, asked for figures."""

from collections.abc import Iterator

import pytest
from testing.seeded_record import Seeded
from tests.training.conftest import COUNTS

from clean_room_agent.artifacts.outcomes import PassType, RunStatus
from clean_room_agent.db.connection import read_record
from clean_room_agent.training.gold import gold_of
from clean_room_agent.training.logs import Agreement, LogAnalysisAPI, is_gold

DIFF = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@ def total(items):
 def total(items):
-    return 0
+    return sum(items)
"""


@pytest.fixture
def logs(seeded: Seeded) -> Iterator[LogAnalysisAPI]:
    with read_record(seeded.top) as conn:
        yield LogAnalysisAPI(conn)


@pytest.mark.parametrize(
    ("right", "extra", "missed", "precision", "recall"),
    [(3, 1, 0, 0.75, 1.0), (0, 0, 2, None, 0.0), (0, 0, 0, None, None), (0, 4, 0, 0.0, None)],
)
def test_precision_and_recall_need_something_to_divide_by(
    right: int, extra: int, missed: int, precision: float | None, recall: float | None
) -> None:
    found = Agreement(right=right, extra=extra, missed=missed)
    assert (found.precision, found.recall) == (precision, recall)


def test_a_failed_run_is_compared_with_the_later_complete_one_of_its_task(logs: LogAnalysisAPI) -> None:
    tasks = [*logs.tasks()]
    known = [task for task in tasks if task.gold is not None]
    assert len(tasks) == len(logs.runs)
    assert len(tasks) - len(known) >= COUNTS["unknown"]
    task = next(each for each in known if each.run.status is RunStatus.COMPLETE)
    assert task.gold is not None
    path = task.gold.files[0].path
    assert {item.path for item in task.items_of(path)} == {path}
    assert task.files_named(PassType.META_PLAN, PassType.PART_PLAN)


def test_a_file_or_a_changed_definition_is_gold(logs: LogAnalysisAPI) -> None:
    gold = gold_of([DIFF])
    item = next(each for task in logs.tasks() for each in task.items if each.symbol is None)
    assert not is_gold(item, gold)
