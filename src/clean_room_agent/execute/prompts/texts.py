"""Pieces of templates that the prompts here share, and a reader for template files."""

from pathlib import Path

from clean_room_agent.llm.prompt import CONTEXT

TASK = CONTEXT + "{{ task.strip() | task }}\n"
UNDER_WAY = (
    f"""\
{TASK}"""
    """
## The part of it under way
{{ part | part }}
{% if diff %}

## Changes made so far
{{ diff.rstrip() | diff }}
{% endif %}
"""
)
"""The beginning of all judgments about a plan in progress."""
STEPS_SO_FAR = """\
{% if done %}

## Steps so far
{% for line in done %}
{{ line | step }}
{% endfor %}
{% endif %}
"""


def template(name: str) -> str:
    """The text of the template `name`.j2 of this folder."""
    return Path(__file__).with_name(f"{name}.j2").read_text(encoding="utf-8")
