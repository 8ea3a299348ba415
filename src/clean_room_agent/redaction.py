"""Replaces secrets in text by keyed hashes before it is shown or exported."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from clean_room_agent.secret_patterns import shapes_in

LEAST_VALUE = 8
"""The shortest value of a variable that is looked for, in characters."""
SHOWN_DIGITS = 8
SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?|(?:^|_|SSH)PASS|(?:^|_)(?:PWD|PW|PAT|AUTH)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|AUTH|SIGNING|ENCRYPTION|ACCOUNT|MASTER|SERVICE|SESSION|FERNET|COOKIE|DEPLOY)_?KEY)(?:_|$)",
    re.IGNORECASE,
)
"""A variable's name that says its value is secret."""

IN_LINE = re.compile(r"(?P<before>[^\S\n]*[+\-> ]?[^\S\n]*)(?P<secret>[A-Za-z0-9/=].*)")


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables with secret-like names, longest first, without paths and plain words."""
    found = {
        value
        for name, value in environment.items()
        if SECRET_NAME.search(name)
        and len(value) >= LEAST_VALUE
        and not value.startswith(("/", "~", "."))
        and not value.isalpha()
        and "\n" not in value
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


class Redactor:
    """Replaces secrets in text; with the same key, the same secret always gets the same replacement."""

    def __init__(self, key: Callable[[], bytes], values: Iterable[str] = ()) -> None:
        """`key` is called once, when the first secret is found. `values` are secrets wherever they occur."""
        self._make_key = key
        self._key: bytes | None = None
        self._values = tuple(values)
        self.count = 0
        """Secrets taken out so far."""

    def redact(self, text: str) -> str:
        """The text with `[secret:<hash>]` for each secret. Line breaks, and the markers of a diff at the beginning of
        lines, are kept.
        """
        found = self.secrets_in(text)
        if not found:
            return text
        self.count += len(found)
        pieces, at = [], 0
        for start, end in found:
            pieces += [text[at:start], self._stand_in(text[start:end])]
            at = end
        return "".join(pieces) + text[at:]

    def secrets_in(self, text: str) -> tuple[tuple[int, int], ...]:
        """The places of secrets: (start, end), in order, none within another."""
        if len(text) < LEAST_VALUE:
            return ()
        spans = sorted((*self._values_in(text), *shapes_in(text)), key=lambda span: (span[0], -span[1]))
        kept: list[tuple[int, int]] = []
        for start, end in spans:
            if not kept or start >= kept[-1][1]:
                kept.append((start, end))
            elif end > kept[-1][1]:
                kept[-1] = (kept[-1][0], end)
        return tuple(kept)

    def _values_in(self, text: str) -> Iterator[tuple[int, int]]:
        for value in self._values:
            at = text.find(value)
            while at >= 0:
                yield at, at + len(value)
                at = text.find(value, at + len(value))

    def _stand_in(self, secret: str) -> str:
        if self._key is None:
            self._key = self._make_key()
        import hmac  # noqa: PLC0415 - most texts hold no secret

        digest = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        mark = f"[secret:{digest[:SHOWN_DIGITS]}]"
        if "\n" not in secret:
            return mark
        return "\n".join(IN_LINE.sub(rf"\g<before>{mark}", line, count=1) for line in secret.split("\n"))
