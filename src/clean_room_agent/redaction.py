"""Secrets in text that is shown or exported: found by their looks, replaced by keyed hashes."""

import hashlib
import hmac
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

LEAST_VALUE = 8
"""Characters of a variable's value that is looked for."""
SHOWN_DIGITS = 8
LONG = 16
"""From this length on letters and digits alone may be random."""

SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?"
    r"|(?:API|ACCESS|PRIVATE|SECRET|AUTH|SIGNING|ENCRYPTION|ACCOUNT|MASTER|SERVICE)_?KEY)(?:_|$)",
    re.IGNORECASE,
)
"""A variable's name that says its value is secret."""

# One shape, told apart by what it begins with: what the makers of these keys document.
SHAPED = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{36,255}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{60,255}",
    r"gl(?:pat|ptt|dt|rt|cbt|oas|soat|ft|imt|agent)-[A-Za-z0-9_.-]{20,255}",  # GitLab
    r"xox[abeoprs]-[A-Za-z0-9-]{10,255}",  # Slack
    r"xapp-\d-[A-Za-z0-9-]{20,255}",
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"ya29\.[A-Za-z0-9_-]{20,255}",
    r"GOCSPX-[A-Za-z0-9_-]{28}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-Ag[A-Za-z0-9_-]{50,255}",
    r"hf_[A-Za-z]{34}",  # Hugging Face
    r"dckr_pat_[A-Za-z0-9_-]{27}",  # Docker
    r"do[opr]_v1_[0-9a-f]{64}",  # DigitalOcean
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",  # Stripe
    r"whsec_[A-Za-z0-9+/=]{24,255}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",  # SendGrid
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",  # Shopify
    r"hv[bsr]\.[A-Za-z0-9_-]{24,255}",  # Vault
    r"dapi[0-9a-f]{32}",  # Databricks
    r"gsk_[A-Za-z0-9]{52}",  # Groq
    r"lin_api_[A-Za-z0-9]{40}",  # Linear
    r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}",  # JSON web token
)
# The names of what is kept secret, and what may stand behind them in a longer name; then the ways to give them a value.
KEEPER = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|account[_-]?key|credential)[\w-]{0,30}"
)
QUOTE = r"\\{0,3}[\"'`]"
QUOTED = re.compile(
    rf"(?:{QUOTE})?\]?\s{{0,8}}(?::\s{{0,3}}[A-Za-z]{{1,20}}\s{{0,3}})?(?:=>|:=|==?|:|,)\s{{0,8}}"
    rf"[A-Za-z]{{0,2}}{QUOTE}(?P<secret>[^\"'`\s\\]{{8,300}}){QUOTE}"
)
"""name = "value", "name": "value", name => 'value'."""
BARE = re.compile(
    r"(?:=|:[^\S\n]{1,8})(?P<secret>[^\s\\\"'`#;,()\[\]{}<>$]{12,300})(?=[^\S\n]*(?:\\[rn]|$))", re.MULTILINE
)
"""NAME=value as in a file of settings, name: value as in YAML; a line may end as it does within JSON."""
BEFORE_BARE = re.compile(r"[+\- >]?\s*(?:export\s|set\s|-\s)?[\w.-]*")
FLAG = re.compile(r"[=\s](?P<secret>[^\s\"'`$<>()]{12,300})")
BEFORE_FLAG = re.compile(r"--(?:[A-Za-z]+-)*\Z")
PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:(?!-----(?:BEGIN|END))[\s\S]){1,20000}?)(?=-----(?:END|BEGIN)|\Z)"
)
PEM_LINE = re.compile(r"[ +\-]?\s*(?P<secret>[A-Za-z0-9+/]{64})\s*")
IN_LINE = re.compile(r"(?P<before>[^\S\n]*[+\-> ]?[^\S\n]*)(?P<secret>[A-Za-z0-9/=].*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of secret: its group `secret` is what must not be shown, if `accept` says so."""

    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = bool


@cache
def rules() -> tuple[Rule, ...]:
    """The rules that one pattern can say. Compiled when first asked for: most commands show nothing that needs them."""
    return (
        Rule(pattern=re.compile(rf"(?<![A-Za-z0-9_])(?P<secret>{'|'.join(SHAPED)})(?![A-Za-z0-9])")),
        # The words before it are bounded, so that a class name like sk-fading-circle is none.
        Rule(
            pattern=re.compile(r"(?<![A-Za-z0-9_-])(?P<secret>sk-[A-Za-z0-9_-]{20,255})(?![A-Za-z0-9])"),
            accept=has_all_kinds,
        ),
        Rule(
            pattern=re.compile(
                r"https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/"
                r"(?P<secret>[A-Za-z0-9/_-]{20,255})"
            )
        ),
        # scheme://user:password@host
        Rule(
            pattern=re.compile(
                r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<secret>[^\s/@\"'<>]{3,200})@(?=[\w\[])"
            ),
            accept=is_no_placeholder,
        ),
        Rule(
            pattern=re.compile(
                r"(?i)authorization\\{0,3}[\"']?\]?\s{0,3}[:=,]\s{0,3}\\{0,3}[\"']?"
                r"(?:basic|bearer|token|digest|apikey)\s{1,3}(?P<secret>[A-Za-z0-9._~+/=-]{8,2000})"
            ),
            accept=is_random,
        ),
        Rule(
            pattern=re.compile(r"(?i)\bbearer\s{1,3}(?P<secret>[A-Za-z0-9._~+/-]{20,2000})"), accept=is_random
        ),
        Rule(
            pattern=re.compile(
                r"(?i)[?&](?:access_token|auth_token|token|api_?key|key|secret|password|sig|signature)="
                r"(?P<secret>[A-Za-z0-9._~%+/-]{12,500})"
            ),
            accept=is_random,
        ),
        Rule(pattern=re.compile(r"AccountKey=(?P<secret>[A-Za-z0-9+/]{60,100}={0,2})")),
    )


PLACEHOLDER = re.compile(
    r"(?i)[x*.•_\-]+|.*[<>{}*\[\]].*|[%$].*|(?:(?:my|your|the|a|some|test|db|example)[_-]?)?"
    r"(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|key|user(?:name)?|foo|bar|foobar|example|changeme|dummy|none|null"
    r"|tiger)\d{0,3}"
)
SHOWN = re.compile(r"\[secret:[0-9a-f]{8}\]")


def is_no_placeholder(value: str) -> bool:
    """Whether the value stands for itself, not for what a reader should put in."""
    return PLACEHOLDER.fullmatch(value) is None


def has_all_kinds(value: str) -> bool:
    """Whether small letters, capitals and digits stand in it."""
    return all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def is_random(value: str) -> bool:
    """Whether the value looks made by chance, or to be guessed by nobody; names, words and paths do not."""
    if SHOWN.search(value) or not re.search("[0-9]", value) or not re.search("[A-Za-z]", value):
        return False
    if re.search(r"[<>{}()\[\]]|^[$%]", value) or "://" in value or PLACEHOLDER.fullmatch(value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^A-Za-z0-9_.\-/:]"))
    if len(value) < LONG:
        return kinds >= 3 and entropy(value) >= 2.75
    changes = len(re.findall(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])", value))
    return changes >= 3 and entropy(value) >= 3.0


def entropy(text: str) -> float:
    """Bits a character, by how often each stands in the text."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables with secret-like names, longest first; paths and plain words are none."""
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
    """Takes secrets out of text; what stands for one is the same wherever it stands, as long as the key is."""

    def __init__(self, key: Callable[[], bytes], values: Iterable[str] = ()) -> None:
        """`key` is asked for once, when the first secret is found. `values` are secrets wherever they stand."""
        self._make_key = key
        self._key: bytes | None = None
        self._values = tuple(values)
        self.count = 0
        """Secrets taken out so far."""

    def redact(self, text: str) -> str:
        """The text with `[secret:<hash>]` for each secret. Its lines, and a mark of a diff that they begin with, stay."""
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
        """Where secrets stand: (start, end), in order, none within another."""
        if len(text) < LEAST_VALUE:
            return ()
        spans = sorted((*self._values_in(text), *_shapes_in(text)), key=lambda span: (span[0], -span[1]))
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
        digest = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        mark = f"[secret:{digest[:SHOWN_DIGITS]}]"
        if "\n" not in secret:
            return mark
        return "\n".join(IN_LINE.sub(rf"\g<before>{mark}", line, count=1) for line in secret.split("\n"))


def _shapes_in(text: str) -> Iterator[tuple[int, int]]:
    for match in PEM.finditer(text):
        if re.search("[A-Za-z0-9+/]{16}", match["secret"]):
            yield match.span("secret")
    lone = PEM_LINE.fullmatch(text)
    if lone is not None and has_all_kinds(lone["secret"]):
        yield lone.span("secret")
    for rule in rules():
        for match in rule.pattern.finditer(text):
            if rule.accept(match["secret"]):
                yield match.span("secret")
    yield from _assigned_in(text)


def _assigned_in(text: str) -> Iterator[tuple[int, int]]:
    """Values that are given to names of secrets, where they look random."""
    for name in KEEPER.finditer(text):
        near = text[max(name.start() - 100, 0) : name.start()]
        before = near[max(near.rfind("\n") + 1, near.rfind("\\n") + 2 if "\\n" in near else 0) :]
        match = QUOTED.match(text, name.end())
        if match is None and BEFORE_FLAG.search(before):
            match = FLAG.match(text, name.end())
        if match is None and BEFORE_BARE.fullmatch(before):
            match = BARE.match(text, name.end())
        if match is not None and is_random(match["secret"]):
            yield match.span("secret")
