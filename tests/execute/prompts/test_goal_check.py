from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.goal_check import GOAL_CHECK


def test_the_goal_check_prompt_reads_so() -> None:
    assert plain_text(GOAL_CHECK.render(INPUTS["goal_check"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## Steps so far
- s1, done: Sum all prices.

# Instructions: Judge whether a revised plan keeps the goal

A plan for the task above was revised. You get the steps before and the revised steps. Say whether the work still does all that the user asked for.

Rules:
- How it is done may change. What the user gets may not become less.
- Say yes if the revised steps do the same in another way.
- Say yes if the steps that are missing are already done. A step that failed was undone.
- Say no if something that the user asked for is neither done nor in the revised steps.
- Other parts of the task have plans of their own: judge the part under way.
- Answer with one word and nothing else: yes or no.

## Steps before
- s2: Export total. (src/till.py)

## Revised steps
(none)

Is all that the user asked for still done or in the revised steps? Answer yes or no.\
""")


def test_what_each_value_of_the_goal_check_prompt_comes_from() -> None:
    spans = GOAL_CHECK.render(INPUTS["goal_check"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (25, 25, "step")]
    )
