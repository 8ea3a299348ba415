"""What `cra show` says of a run."""

from rich.console import Console

from clean_room_agent.report.render_run import render_run
from clean_room_agent.report.run_view import RunHead, RunView


def shown(*notes: tuple[str, str]) -> str:
    view = RunView(
        head=RunHead(task_id="1234abcd", command="solve", status="failed", task="Fix it."), notes=notes
    )
    console = Console(width=100)
    with console.capture() as told:
        console.print(render_run(view, str))
    return told.get()


def test_a_note_is_said_once_and_in_words() -> None:
    told = shown(
        ("context_of", "meta_plan"),
        ("plan_note", "refused: part p1 needs p9, which is not in the plan"),
        ("plan_note", "refused: part p1 needs p9, which is not in the plan"),
        ("plan_fault", "part p1 needs p9, which is not in the plan"),
        ("plan_fault", "at least one step is needed"),
    )
    assert [line.strip() for line in told.splitlines() if "plan" in line or "step" in line] == [
        "plan note: refused: part p1 needs p9, which is not in the plan",
        "plan fault: at least one step is needed",
    ]


def test_what_each_command_shows_stands_in_one_column() -> None:
    told = shown()
    rows = [line for line in told.splitlines() if "why it was shown" in line or "every candidate" in line]
    assert len(rows) == 2
    assert rows[0].index("why it was shown") == rows[1].index("every candidate")
