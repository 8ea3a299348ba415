"""What secrets look like: keys of known formats, values assigned to secret names, credentials in URLs and headers.

All of it takes time that grows with the text's length alone. A pattern is tried only where one of its `marks` occurs,
and every repetition in it is bounded, or ends at characters where the next mark may begin. Patterns are texts: `re`
compiles one when it is first tried, and keeps it; most texts need few.
"""

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import Struct

LONG = 16
"""The length from which on a value of only letters and digits may be random."""
Span = tuple[int, int]

PLACEHOLDER = (
    r"(?i)[x*.•_\-]+|[^<>{}*\[\]]*[<>{}*\[\]].*|[%$@].*|(?:(?:my|your|the|a|some|test|fake|db|example)[_-]?)?"
    r"(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|key|user(?:name)?|foo|bar|foobar|example|changeme|dummy|none|null"
    r"|tiger|guest|test|fake)\d{0,3}"
)
SHOWN = r"\[secret:[0-9a-f]{8}\]"
UUID = r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SEAMS = r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])"
UNSPOKEN = r"[bcdfghjklmnpqrstvwxz]{6}"
"""A row of consonants that no word has."""


def is_no_placeholder(value: str) -> bool:
    """Whether the value is not a placeholder."""
    return re.fullmatch(PLACEHOLDER, value) is None


def has_all_kinds(value: str) -> bool:
    """Whether it contains lower-case letters, capitals and digits."""
    return all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def entropy(text: str) -> float:
    """Entropy in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def is_varied(value: str) -> bool:
    """Whether the value is not a placeholder, and has more than a few different characters, unlike `xxxxxxxx`."""
    return is_no_placeholder(value) and entropy(value) >= 2.5 and "xxxxxx" not in value.lower()


def is_random(value: str) -> bool:
    """Whether the value looks random or unguessable; names, words and paths do not."""
    if re.search(SHOWN, value) or not re.search("[A-Za-z]", value):
        return False
    if re.search(r"[<>{}()\[\]]|^[$%]", value) or "://" in value or not is_no_placeholder(value):
        return False
    if re.fullmatch(UUID, value):
        return True
    if not re.search("[0-9]", value):
        return len(value) >= LONG and re.search(UNSPOKEN, value) is not None and entropy(value) >= 3.0
    seams = len(re.findall(SEAMS, value))
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^A-Za-z0-9_.\-/:]"))
    if len(value) < LONG:
        return (kinds >= 3 and entropy(value) >= 2.75) or (
            len(value) >= 12 and seams >= 4 and entropy(value) >= 2.75
        )
    return (seams >= 3 or re.search(UNSPOKEN, value) is not None) and entropy(value) >= 2.75


def is_password(value: str) -> bool:
    """Whether a value that a settings file assigns to a name like `password` is a password: letters, and digits or
    signs.
    """
    if is_random(value):
        return True
    if (
        re.search(SHOWN, value)
        or not is_no_placeholder(value)
        or re.search(r"[<>{}()\[\]|]|^[$%@&/~.]|://", value)
    ):
        return False
    letters, digits = bool(re.search("[A-Za-z]", value)), len(re.findall("[0-9]", value))
    signs = re.search(r"[!#%^&*+=?~@]", value)
    return letters and (digits >= 2 or signs is not None) and entropy(value) >= 2.25


def is_credential(value: str) -> bool:
    """Whether a URL's or a command's password is worth hiding."""
    return is_no_placeholder(value) and not re.search(SHOWN, value)


def is_login(value: str) -> bool:
    """Whether a command's password is a real one: letters and digits or signs, not a variable or the name of a group."""
    return (
        is_credential(value)
        and re.search("[A-Za-z]", value) is not None
        and re.search(r"[0-9!#%^&*+~@]", value) is not None
    )


def is_basic(value: str) -> bool:
    """Whether it is `name:password` in Base64, or random at least."""
    try:
        said = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return is_random(value)
    return (b":" in said and said.isascii() and said.decode().isprintable()) or is_random(value)


class SecretRule(Struct, frozen=True, kw_only=True):
    """One kind of secret: the group `secret` of its pattern must not be shown, if `accept` agrees."""

    marks: tuple[str, ...]
    """Texts, one of which the pattern begins with."""
    pattern: str
    accept: Callable[[str], bool] = bool

    def find(self, text: str) -> Iterator[Span]:
        """The places of such secrets."""
        for mark in self.marks:
            at = text.find(mark)
            while at >= 0:
                match = re.compile(self.pattern).match(text, at)
                if match is not None and self.accept(match["secret"]):
                    yield match.span("secret")
                at = text.find(mark, at + len(mark) if match is None else max(match.end(), at + len(mark)))


def _rule_of_shape(marks: str, shape: str) -> SecretRule:
    """A rule for keys that begin with one of `marks`, followed by `shape`."""
    pattern = rf"(?<![A-Za-z0-9_])(?P<secret>{shape})(?![A-Za-z0-9])"
    return SecretRule(marks=tuple(marks.split()), pattern=pattern, accept=is_varied)


def _in_header(name: str) -> SecretRule:
    """A rule for the value of a header whose name ends in `name`."""
    pattern = (
        rf"(?i:{name})\\{{0,3}}[\"']?\]?\s{{0,3}}[:=,]\s{{0,3}}\\{{0,3}}[\"']?"
        r"(?i:(?:basic|bearer|(?:api-?)?token|digest|apikey|negotiate|ntlm|hawk|sso-key)\s{1,3})?(?P<secret>[A-Za-z0-9._~+/=-]{8,2000})"
    )
    return SecretRule(
        marks=tuple(dict.fromkeys((name, name.title(), name.upper()))), pattern=pattern, accept=is_basic
    )


SHAPED = (
    ("AKIA ASIA ABIA ACCA A3T", r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z2-7]{16}"),  # AWS
    ("ABSK bedrock-api-key-", r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{24,400}={0,2}"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),  # GitHub
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{60,255}"),
    (
        "glpat- glptt- gldt- glrt- glcbt- gloas- glsoat- glft- glffct- glimt- glagent- GR1348941",
        r"(?:gl(?:pat|ptt|dt|rt|cbt|oas|soat|ft|ffct|imt|agent)-|GR1348941)[A-Za-z0-9_.-]{20,255}",
    ),  # GitLab
    (
        "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-",
        r"xox[abeoprs][.-](?:xox[bp]-)?\d[A-Za-z0-9-]{9,255}",
    ),  # Slack
    ("xapp-", r"xapp-\d-[A-Za-z0-9-]{20,255}"),
    ("AIza", r"AIza[A-Za-z0-9_-]{35}"),  # Google
    ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,255}"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-Ag", r"pypi-Ag[A-Za-z0-9_-]{50,255}"),
    ("hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z]{34}"),  # Hugging Face
    ("dckr_pat_ dckr_oat_", r"dckr_[po]at_[A-Za-z0-9_-]{27,32}"),  # Docker
    ("dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}"),  # DigitalOcean
    (
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}",
    ),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{24,255}"),
    ("SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),  # SendGrid
    ("xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),  # Brevo
    ("shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),  # Shopify
    ("hvs. hvb. hvr.", r"hv[bsr]\.[A-Za-z0-9_-]{24,255}"),  # Vault
    ("dapi", r"dapi[0-9a-f]{32}"),  # Databricks
    ("gsk_", r"gsk_[A-Za-z0-9]{52}"),  # Groq
    ("pplx-", r"pplx-[A-Za-z0-9]{40,60}"),  # Perplexity
    ("lin_api_", r"lin_api_[A-Za-z0-9]{40}"),  # Linear
    ("ATATT3", r"ATATT3[A-Za-z0-9_=-]{50,300}"),  # Atlassian
    ("sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_]{40,500}"),  # Sentry
    ("glsa_ glc_", r"gl(?:sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|c_[A-Za-z0-9+/]{32,400}={0,3})"),  # Grafana
    ("pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),  # PlanetScale
    ("fo1_ fm1_ fm2_ fm1r_ fm1a_", r"f(?:o1|m1[ar]?|m2)_[A-Za-z0-9+/_=-]{40,500}"),  # Fly.io
    ("NRAK- NRJS- NRII-", r"NR(?:AK|JS|II)-[A-Za-z0-9-]{19,40}"),  # New Relic
    ("PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),  # Postman
    ("rubygems_", r"rubygems_[0-9a-f]{48}"),
    ("pul-", r"pul-[0-9a-f]{40}"),  # Pulumi
    ("ntn_", r"ntn_[A-Za-z0-9]{40,60}"),  # Notion
    ("HRKU-", r"HRKU-[A-Za-z0-9_-]{36,80}"),  # Heroku
    ("EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),  # EasyPost
    ("shippo_", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    ("duffel_", r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}"),
    ("dp.pt. dp.st.", r"dp\.[ps]t\.[A-Za-z0-9.]{40,80}"),  # Doppler
    ("dt0c01.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),  # Dynatrace
    ("CLOJARS_", r"CLOJARS_[A-Za-z0-9]{60}"),
    ("FLWSECK FLWPUBK", r"FLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?"),  # Flutterwave
    ("LTAI", r"LTAI[A-Za-z0-9]{12,24}"),  # Alibaba
    ("AKCp", r"AKCp[A-Za-z0-9]{69}"),  # Artifactory
    ("EAAA sq0atp- sq0csp-", r"(?:EAAA[A-Za-z0-9_-]{22,60}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60})"),  # Square
    ("sha256~", r"sha256~[A-Za-z0-9_-]{43}"),  # OpenShift
    ("A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),  # 1Password
    ("ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{250,4000}={0,3}"),
    ("SK", r"SK[0-9a-f]{32}"),  # Twilio
    ("EAA", r"EAA[A-Z][A-Za-z0-9]{80,400}"),  # Facebook
    ("p8e-", r"p8e-[0-9a-f]{32}"),  # Adobe
    ("sgp_", r"sgp_(?:[A-Za-z0-9]{16}_)?[0-9a-fA-F]{40}"),  # Sourcegraph
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
)
"""Keys that begin with one of the words in the first column, as documented by their issuers."""
RULES = (
    *(_rule_of_shape(marks, shape) for marks, shape in SHAPED),
    # The words before it are bounded, so that a class name like sk-fading-circle is none.
    SecretRule(
        marks=("sk-",),
        pattern=r"(?<![A-Za-z0-9_-])(?P<secret>sk-[A-Za-z0-9_-]{20,255})(?![A-Za-z0-9])",
        accept=has_all_kinds,
    ),
    SecretRule(
        marks=("hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        pattern=(
            r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/"
            r"(?P<secret>[A-Za-z0-9/_-]{20,255})"
        ),
    ),
    # //user:password@host; a port and a path that follows are no password, though an @ stands in the path.
    SecretRule(
        marks=("://",),
        pattern=(
            r"(?<=[a-zA-Z0-9])://[^\s/:@\"'`<>\\]{0,100}:(?!\d{0,5}(?:[/?#]|@@))"
            r"(?P<secret>(?:(?!://)[^\s\"'`<>\\]){3,200})@(?=[\w\[])"
        ),
        accept=is_credential,
    ),
    _in_header("authorization"),
    _in_header("-key"),
    _in_header("-token"),
    SecretRule(
        marks=("bearer", "Bearer", "BEARER"),
        pattern=r"(?i)\bbearer\s{1,3}(?P<secret>[A-Za-z0-9._~+/-]{20,2000})",
        accept=is_random,
    ),
    SecretRule(
        marks=("?", "&"),
        pattern=(
            r"(?i)[?&](?:[a-z-]{0,20}(?:token|signature)|api_?key|key|secret|password|sig)="
            r"(?P<secret>[A-Za-z0-9._~%+/-]{12,2000})"
        ),
        accept=is_random,
    ),
    # AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…
    SecretRule(
        marks=("Signature=",),
        pattern=r"Signature=(?P<secret>[0-9a-fA-F]{32,512})",
        accept=is_varied,
    ),
    SecretRule(marks=("AccountKey=",), pattern=(r"AccountKey=(?P<secret>[A-Za-z0-9+/]{60,100}={0,2})")),
    # //npm.example.org/:_authToken=…
    SecretRule(
        marks=("_authToken", "_auth", "_password"),
        pattern=(
            r"(?<![\w.])_(?:authToken|auth|password)[^\S\n]{0,3}=[^\S\n]{0,3}[\"']?(?P<secret>[^\s\"'${}]{8,2000})"
        ),
        accept=is_credential,
    ),
    # machine example.org login me password …
    SecretRule(
        marks=("machine", "default"),
        pattern=(
            r"\b(?:machine\s{1,20}\S{1,200}|default)\s{1,20}(?:(?:login|account)\s{1,20}\S{1,200}\s{1,20}){0,2}"
            r"password\s{1,20}(?P<secret>[^\s\\\"']{3,200})"
        ),
        accept=is_credential,
    ),
    # curl -u user:password
    SecretRule(
        marks=("-u", "--user", "--proxy-user"),
        pattern=(
            r"(?<![\w-])(?:-u|--user|--proxy-user)(?:=|[^\S\n]{0,5})[\"']?[^\s:\"'$<{]{0,100}[\"']?:[\"']?"
            r"(?P<secret>[^\s\"'$<{][^\s\"'<{]{2,199})"
        ),
        accept=is_login,
    ),
    # mysql -ppassword
    SecretRule(
        marks=("mysql", "mariadb"),
        pattern=(
            r"\b(?:mysql|mariadb)[a-z-]{0,12}[^\S\n](?:[^\n|;&]{0,200}[^\S\n])?-p"
            r"(?P<secret>[^\s\"'$<{][^\s\"'<{]{4,199})"
        ),
        accept=is_login,
    ),
)
"""Secrets that a single pattern recognises."""

# The names of what is kept secret, and what may stand behind them in a longer name; then the ways to give them a value.
KEEPER = (
    r"(?i)(?P<word>passw(?:or)?d|passphrase|pwd|(?<![a-z])pass(?![a-z])|secret|token|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|credential|cred)[\w-]{0,30}"
)
KEEPER_MARKS = ("pass", "pwd", "secret", "token", "key", "cred")
"""One of them is in each name, in any case."""
PASSWORDS = frozenset(("password", "passwd", "passphrase", "pwd", "pass"))
QUOTE = r"\\{0,3}[\"'`]"
SIGN = r"(?:[=!]==?|[:?.]?:{0,3}=|=>|\|\||:|,|\()"
QUOTED = (
    rf"(?:{QUOTE})?(?:\[\d{{0,5}}\]|\])?\s{{0,8}}(?:(?::\s{{0,3}})?[A-Za-z]{{1,20}}\s{{0,3}})?{SIGN}\s{{0,8}}"
    rf"[A-Za-z@]{{0,2}}{QUOTE}(?P<secret>[^\"'`\s\\]{{8,300}}){QUOTE}"
)
"""name = "value", name: str = "value", "name": "value", name => 'value', name("value")."""
BARE = (
    r"(?m)(?:[^\S\n]{0,8}[:?]{0,3}=[^\S\n]{0,8}|[\"']?:[^\S\n]{1,8})"
    r"(?P<secret>[^\s\\\"'`#;,()\[\]{}<>$][^\s\\\"'`;,()\[\]{}<>$]{5,300})(?=[^\S\n]{0,8}[;'\"]?[^\S\n]{0,8}(?:\\[rn]|$))"
)
"""NAME=value as in a file of settings, name = value as in INI, name: value as in YAML; a line may end as it does within
JSON."""
BEFORE_BARE = r"[+\- >#;]{0,4}\s*(?:export\s|set\s|-\s)?[\w.-]*"
ELEMENT = r"[^<>]{0,40}>\s{0,40}(?P<secret>[^\s<>\"'$]{8,300})\s{0,40}</"
ATTRIBUTE = r"(?i)[\"']\s{1,8}value=[\"'](?P<secret>[^\s<>\"'$]{8,300})[\"']"
"""<token>value</token>, <add key="Token" value="value"/>."""
FLAG = r"[=\s](?P<secret>[^\s\"'`$<>()]{12,300})"
BEFORE_FLAG = r"--(?:[A-Za-z]+-)*\Z"
NEAR = 100
"""Characters before a name that are examined."""

PEM_MARK = "-----BEGIN "
PEM = (
    PEM_MARK + r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:(?!-----(?:BEGIN|END))[\s\S]){1,20000}?)(?=-----(?:END|BEGIN)|\Z)"
)
PEM_LINE = r"[ +\-]?\s{0,80}(?P<secret>[A-Za-z0-9+/]{64})\s{0,80}"
MAX_PEM_LINE = 1 + 80 + 64 + 80
JWT_HEAD = r"(?<![A-Za-z0-9_])eyJ"
JWT_PART = r"[A-Za-z0-9_-]*"


def shapes_in(text: str) -> Iterator[Span]:
    """The places in the text that look like secrets; in no particular order, and possibly one within another."""
    for match in re.finditer(PEM, text) if PEM_MARK in text else ():
        if re.search("[A-Za-z0-9+/]{16}", match["secret"]):
            yield match.span("secret")
    lone = re.fullmatch(PEM_LINE, text) if len(text) <= MAX_PEM_LINE else None
    if lone is not None and has_all_kinds(lone["secret"]):
        yield lone.span("secret")
    for rule in RULES:
        yield from rule.find(text)
    yield from _web_tokens(text)
    yield from _assigned_secrets(text)


def _web_tokens(text: str) -> Iterator[Span]:
    """JSON web tokens, `eyJ….eyJ….…`: found by their middle part, so that each part is read at most twice."""
    middle = text.find(".eyJ")
    part = 0
    while middle >= 0:
        body = re.compile(JWT_PART).match(text, middle + 1)
        end = body.end() if body else middle
        begin = middle
        while begin > part and (
            text[begin - 1].isascii() and (text[begin - 1].isalnum() or text[begin - 1] in "_-")
        ):
            begin -= 1
        head = re.compile(JWT_HEAD).search(text, begin, middle)
        if head is not None and middle - head.start() >= 11 and end - middle >= 12:
            signature = re.compile(JWT_PART).match(text, end + 1) if text[end : end + 1] == "." else None
            yield head.start(), signature.end() if signature and signature.end() - end > 10 else end
        part = end
        middle = text.find(".eyJ", end)


def _assigned_secrets(text: str) -> Iterator[Span]:
    """Values assigned to secret names, if they look random."""
    folded = text.casefold()
    if not any(mark in folded for mark in KEEPER_MARKS):
        return
    for name in re.finditer(KEEPER, text):
        near = text[max(name.start() - NEAR, 0) : name.start()]
        before = near[max(near.rfind("\n") + 1, near.rfind("\\n") + 2 if "\\n" in near else 0) :]
        said = _assigned_value(text, name, before)
        if said is not None:
            yield said


def _assigned_value(text: str, name: re.Match[str], before: str) -> Span | None:
    for pattern in (QUOTED, ATTRIBUTE, ELEMENT):
        match = re.compile(pattern).match(text, name.end())
        if match is not None:
            return match.span("secret") if is_random(match["secret"]) else None
    if re.search(BEFORE_FLAG, before):
        match = re.compile(FLAG).match(text, name.end())
        if match is not None:
            return match.span("secret") if is_random(match["secret"]) else None
    bare = re.compile(BARE).match(text, name.end())
    if bare is None or re.fullmatch(BEFORE_BARE, re.split("[\"']", before)[-1]) is None:
        return None
    judged = is_password if name["word"].lower() in PASSWORDS else is_random
    return bare.span("secret") if judged(bare["secret"]) else None
