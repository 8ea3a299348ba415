"""Calls beside a call: the same with one literal changed. What two changes of the code give for them tells the changes apart
where the call alone does not (differential testing, McKeeman 1998).

    f(10, 'ab')     f(11, 'ab'), f(10, 'a'), f(9, 'ab'), f(10, 'aab'), …
"""

import re
from collections.abc import Iterator
from itertools import chain, zip_longest

MOST = 16
LITERAL = re.compile(
    r"""(?<![\w.])(?:
        (?P<number>\d+(?:\.\d+)?)(?![\w.])
        | (?P<truth>True|False|true|false)(?!\w)
        | (?P<prefix>[rbuRBU]{0,2})(?P<quote>['"])(?P<body>(?:\\.|(?!(?P=quote)).)*)(?P=quote)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""In Python, JavaScript and TypeScript alike."""
OPPOSITE = {"True": "False", "False": "True", "true": "false", "false": "true"}


def neighbours(call: str) -> tuple[str, ...]:
    """Calls that differ from this one in one literal, a change of each literal before a second one of any; at most `MOST`."""
    ways = [
        [f"{call[: found.start()]}{other}{call[found.end() :]}" for other in _other_literals(found)]
        for found in LITERAL.finditer(call)
    ]
    in_turn = chain.from_iterable(zip_longest(*ways))
    return tuple(dict.fromkeys(one for one in in_turn if one is not None and one != call))[:MOST]


def _other_literals(found: re.Match[str]) -> Iterator[str]:
    """Other literals of the kind."""
    if found["number"]:
        yield from _other_numbers(found["number"])
    elif found["truth"]:
        yield OPPOSITE[found["truth"]]
    else:
        prefix, quote, body = found["prefix"], found["quote"], found["body"]
        raw = "\\" in body or "r" in prefix.lower()
        texts = (body + body,) if raw else (body[:-1], body[:1] + body, f"{body} ", f"{body}\\xe9", "")
        yield from (f"{prefix}{quote}{text}{quote}" for text in texts)


def _other_numbers(text: str) -> Iterator[str]:
    whole, point, rest = text.partition(".")
    for number in (int(whole) + 1, int(whole) - 1, 0, 10 * int(whole) + 3):
        # A minus in front of the literal stays, so a negative one stands in brackets.
        yield f"({number}{point}{rest})" if number < 0 else f"{number}{point}{rest}"
