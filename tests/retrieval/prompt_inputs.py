"""What the tests of the judging prompts show."""

from clean_room_agent.artifacts.context import frame
from clean_room_agent.retrieval.prompts import BatchInputs, SingleInputs

QUESTION = "## Task\nFix the <b>total</b>"
BATCH = BatchInputs(
    question=QUESTION,
    options=(
        frame("candidate 1: a.py", "4: total = 0\n", "====="),
        frame("candidate 2: b.py", "", "====="),
    ),
    chosen=("in.py",),
    remark="At most about 9 tokens can stay.",
)
FILE = SingleInputs(
    question=QUESTION,
    option=frame("candidate: a.py", "4: total = 0\n", "====="),
    others=("a.py", "b.py"),
)
