"""The page `protocols/adapter-map.md`: `python -m testing.pages.adapter_map > protocols/adapter-map.md` renews it."""

from typing import Any

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.llm.answers import OneWord
from clean_room_agent.llm.prompt import Prompt

HEADER = """\
# Prompts and adapters

Generated from `app/prompts.py` by `python -m testing.pages.adapter_map > protocols/adapter-map.md`; a test keeps
it current. A prompt's name is its call type in the record, its key in `[models.overrides]`, and its adapter's name.
Answers with edits are bounded by the code that they may edit (`answer_bound` in `execute/implement.py`).

| prompt | role | answers with | longest answer, tokens | title |
|---|---|---|---|---|
"""


def page() -> str:
    """The page `protocols/adapter-map.md`."""
    rows = [
        f"| `{prompt.name}` | {prompt.role} | {_form(prompt)} | {_longest(prompt)} | {prompt.title} |"
        for prompt in PROMPTS
    ]
    return HEADER + "\n".join(rows) + "\n"


def _longest(prompt: Prompt[Any, Any]) -> str:
    return str(prompt.max_answer_tokens) if prompt.editable is None else "twice the code and 400"


def _form(prompt: Prompt[Any, Any]) -> str:
    if prompt.schema is not None:
        return "JSON"
    if isinstance(prompt.answer, OneWord):
        return f"{', '.join(prompt.answer.words[:-1])} or {prompt.answer.words[-1]}"
    return "yes or no" if prompt.answer.wants_logprobs else "text"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - its output is the page
