"""A run that ends unfinished says why, by what its attempts came to: on its last screen, in `cra show`, and as JSON."""

import json

from testing.runs.solving import Project, edit

from clean_room_agent.execute.prompts.implement import IMPLEMENT

NOWHERE = edit("    this stands nowhere in the file", "    pass")
"""No attempt with it comes to anything."""


def test_refused_edits_are_counted_wherever_the_run_is_looked_at(till: Project) -> None:
    answers = [f"{NOWHERE}\n{'again ' * number}" for number in range(40)]
    told = till.solve_scripted({IMPLEMENT.title: answers}, "--json")
    assert told.code == 1, told.err
    answer = json.loads(told.out)
    attempts = len([count for count in answer["ending"]["counts"] if count["cause"] == "was refused"])
    assert attempts == 1
    (line, *_) = answer["ending"]["lines"]
    assert "attempts at steps were refused (NO_MATCH)" in line
    assert answer["ending"]["advice"].startswith("`cra show ")
    screen = till.cra("show", answer["task_id"])
    assert f"  {line}\n  " in screen.out
    assert answer["ending"]["advice"] in screen.out
    shown = json.loads(till.cra("show", answer["task_id"], "--json").out)
    assert shown["run"]["ending"] == answer["ending"]


def test_the_last_screen_says_it_and_a_complete_run_does_not(till: Project) -> None:
    answers = [f"{NOWHERE}\n{'again ' * number}" for number in range(40)]
    failed = till.solve_scripted({IMPLEMENT.title: answers})
    assert "attempts at steps were refused (NO_MATCH)\n" in failed.out
    complete = till.solve_scripted({IMPLEMENT.title: [NOWHERE]})
    assert complete.code == 0, complete.err
    assert "refused (NO_MATCH)" not in complete.out
