"""The prompt `curate_data`: is a doubtful answer a good example to learn from?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
{{ question | figures }}

{{ heading }}

A coding agent asked a model a narrow question, and the task was solved afterwards. You decide whether the answer is a good \
example to train a model with. It let in something that was not changed in the end.

Rules:
- Say yes if what it let in has to be read to write the change.
- Say no if what it let in only has a similar name or topic.
- Say no if you cannot tell.
- Answer with one word: yes or no.

## Example
{{ option | candidate }}
Is the answer a good example? Answer yes or no.
"""

CURATE_DATA: Prompt[SingleInputs, Choice] = Prompt(
    name="curate_data",
    role="reasoning",
    title="Judge whether an answer is a good example",
    system="You are a precise assistant for engineers who train models. You answer in the form that is asked for, "
    "with nothing around it.",
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="no",
)
