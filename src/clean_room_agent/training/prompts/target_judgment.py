"""The prompt `target_judgment`: is a prompt worth an adapter?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
{{ question | figures }}

{{ heading }}

A coding agent asks small language models narrow questions. You decide whether a model should be trained for one kind of \
question. You get figures from the record of its runs.

Rules:
- Say yes if many failed tasks are charged to the question, and fewer would fail if its answers were better.
- Say no if hardly a task would be won even with perfect answers.
- Say no if the figures show that other stages lose the same tasks anyway.
- Answer with one word: yes or no.

## Questions that may be trained
{% for other in others %}
- {{ other | line | candidate }}
{% endfor %}

## Figures
{{ option | candidate }}
Is it worth training a model for this question? Answer yes or no.
"""

TARGET_JUDGMENT: Prompt[SingleInputs, Choice] = Prompt(
    name="target_judgment",
    role="reasoning",
    title="Judge whether a prompt is worth an adapter",
    system="You are a precise assistant for engineers who train models. You answer in the form that is asked for, "
    "with nothing around it.",
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
