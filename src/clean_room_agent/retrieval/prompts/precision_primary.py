"""Must a piece of code that is needed be seen whole?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, Verdict, YesNo
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
You choose code for a programmer who will do a task. You get the task and one piece of code that is of use for it.

Rules:
- Say yes if the task will change this code, or may have to.
- Say yes if its every line must be read to write the change.
- Say no if it is enough to know what this code does and how it is called.
- Answer with one word: yes or no.

{{ question }}

## Code to choose from
{% for other in others %}
- {{ other }}
{% endfor %}

## Code
{{ option }}

Must the programmer change this code, or read its every line? Answer yes or no.
"""

PRECISION_PRIMARY: Prompt[SingleInputs, Verdict] = Prompt(
    name="precision_primary",
    role="classifier",
    title="Judge whether a task changes a piece of code",
    system="You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it.",
    template=TEMPLATE,
    answer=YesNo(),
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
