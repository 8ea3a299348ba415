"""What the prompts here share: the system text of each role, pieces of templates, and reading template files."""

from pathlib import Path

PLANNER = (
    "You are a senior programmer who plans changes to a code base. You write plans, never code. "
    "You answer with one JSON object and nothing else."
)
CODER = (
    "You are a careful programmer. You change exactly what is asked for and nothing else. "
    "You answer with edit blocks and nothing else."
)
JUDGE = "You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it."

UNDER_WAY = """\
{% if diff %}

## Changes made so far
{{ diff | diff }}
{% endif %}

## Task
{{ task | task }}

## The part of it under way
{{ part | part }}
"""
"""Of judgments about a plan that is followed: what they all show first."""
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
