"""Is the description of a piece of code needed, or its signature alone?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, Verdict, YesNo
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
You choose code for a programmer who will do a task. You get the task and one piece of code that the task will not change.

Rules:
- Say yes if the change will call this code, or is called by it, so that what it does must be known.
- Say no if its name and its signature are enough.
- Answer with one word: yes or no.

{{ question }}

## Code to choose from
{% for other in others %}
- {{ other }}
{% endfor %}

## Code
{{ option }}

Does the programmer need the description of this code? Answer yes or no.
"""

PRECISION_SUPPORTING: Prompt[SingleInputs, Verdict] = Prompt(
    name="precision_supporting",
    role="classifier",
    title="Judge how much of a piece of code a task needs",
    system="You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it.",
    template=TEMPLATE,
    answer=YesNo(),
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
