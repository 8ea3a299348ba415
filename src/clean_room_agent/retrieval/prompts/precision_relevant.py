"""Is one piece of code needed at all?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, Verdict, YesNo
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
You choose code for a programmer who will do a task. You get the task and one piece of code of the repository.

Rules:
- Say yes if the task will change this code.
- Say yes if the change will call this code, is called by it, or cannot be written without knowing it.
- Say no if it only has a similar name or topic.
- Answer with one word: yes or no.

{{ question }}

## Code to choose from
{% for other in others %}
- {{ other }}
{% endfor %}

## Code
{{ option }}

Does the programmer need to know this code? Answer yes or no.
"""

PRECISION_RELEVANT: Prompt[SingleInputs, Verdict] = Prompt(
    name="precision_relevant",
    role="classifier",
    title="Judge whether a task needs a piece of code",
    system="You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it.",
    template=TEMPLATE,
    answer=YesNo(),
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
