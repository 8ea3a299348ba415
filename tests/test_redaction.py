"""Secrets here are made up, and put together at run time, so that scanners of this repository stay quiet."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.growth import QUADRATIC, growth

from clean_room_agent.redaction import Redactor, secret_values

MIXED = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY" * 8
DIGITS = "0123456789abcdef" * 8
UUID = "3f6c1c52-9d0b-4a77-8a53-6b1f0e2d9c41"
MARK = re.compile(r"\[secret:[0-9a-f]{8}\]")
PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + f"{MIXED[:64]}\n" * 3 + "Zz09==\n-----END {0}PRIVATE KEY-----\n"
SECRETS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + MIXED[:36],
    "github fine": "github_pat_" + MIXED[:22] + "_" + MIXED[:59],
    "gitlab": "glpat-" + MIXED[:20],
    "slack": "xoxb-" + "123456789012-" + MIXED[:24],
    "google": "AIza" + MIXED[:35],
    "google oauth": "ya29." + MIXED[:40],
    "openai": "sk-proj-" + MIXED[:40],
    "anthropic": "sk-ant-api03-" + MIXED[:80],
    "npm": "npm_" + MIXED[:36],
    "pypi": "pypi-AgEIcHlwaS5vcmc" + MIXED[:60],
    "hugging face": "hf_" + "abcdefghijABCDEFGHIJabcdefghijABCD",
    "stripe": "sk_live_" + MIXED[:24],
    "sendgrid": "SG." + MIXED[:22] + "." + MIXED[:43],
    "docker": "dckr_pat_" + MIXED[:27],
    "digitalocean": "dop_v1_" + DIGITS[:64],
    "shopify": "shpat_" + DIGITS[:32],
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    "json web token": "eyJ" + MIXED[:20] + ".eyJ" + MIXED[:30] + "." + MIXED[:43],
}
IN_CONTEXT = {
    "url": ("postgresql://app:{}@db.internal:5432/app", "correcthorse"),
    "url with signs": ("https://me:{}@git.example.org/a.git", "p%40ss-w0rd!"),
    "header": ("Authorization: Bearer {}", MIXED[:32]),
    "header in code": ('headers = {{"Authorization": "Basic {}"}}', MIXED[:24] + "=="),
    "header of Kerberos": ("Proxy-Authorization: Negotiate {}", MIXED[:32]),
    "password of mysql": ("mysqldump -h db -u root -p{} shop", "s3cr3tPa55w"),
    "header of curl": ("curl -H 'authorization: token {}' https://x", MIXED[:20]),
    "assigned": ('password = "{}"', "Tr0ub4dor&3"),
    "annotated": ('api_key: str = "{}"', MIXED[:24]),
    "member": ("self.client_secret = '{}'", MIXED[:32]),
    "json": ('{{"db_password": "{}"}}', "xK9#mP2$vL5n"),
    "json within json": ('{{"text": "password = \\"{}\\"\\n"}}', "xK9mP2vL5nQ8wR4t"),
    "ruby": ("secret_key => '{}'", MIXED[:30]),
    "hex": ("SECRET_KEY = '{}'", DIGITS[:32]),
    "settings": ("export STRIPE_TOKEN={}", MIXED[:24]),
    "settings within json": ('{{"prompt": "A=1\\nDB_PASSWORD={}\\nB=2"}}', MIXED[:16]),
    "yaml": ("  api-key: {}", MIXED[:32]),
    "diff": ("+DB_PASSWORD={}", MIXED[:16]),
    "flag": ("$ deploy --auth-token {} --now", MIXED[:20]),
    "query": ("https://x.org/hook?token={}&a=1", MIXED[:20]),
    "webhook": ("https://hooks.slack.com/services/{}", "T0ABC/B0DEF/" + MIXED[:24]),
    "azure": ("AccountName=a;AccountKey={};", MIXED[:86] + "=="),
    "ini": ("[client]\npassword = {}\nport = 3306", "hunter22"),
    "ini with signs": ("db_password = {}", "c0rrect!horse"),
    "ini in a diff": ("+password = {}", "hunter22"),
    "ini of a token": ("api_token = {}", MIXED[:24]),
    "ini with a comment": ("# password = {}", "hunter22"),
    "settings within json of a name": ('{{"app.ini": "API_TOKEN={}\\nB=2"}}', MIXED[:24]),
    "npm's settings": ("//npm.example.org/:_authToken={}", UUID),
    "npm's login": ("_auth = {}", "bWU6aHVudGVyMg=="),
    "npm's password": ("//npm.example.org/:_password={}", "aHVudGVyMjI="),
    "netrc": ("machine example.org login me password {}", "hunter22"),
    "netrc in lines": ("machine example.org\n  login me\n  password {}", "hunter22"),
    "netrc's default": ("default login me password {}", "hunter22"),
    "basic": ("Authorization: Basic {}", "bWU6aHVudGVyMg=="),
    "basic of a proxy": ("Proxy-Authorization: Basic {}", "bWU6aHVudGVyMg=="),
    "no scheme": ("curl -H 'Authorization: {}'", UUID),
    "a key's header": ('headers["X-Api-Key"] = "{}"', MIXED[:32]),
    "aws signature": ("AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature={}", DIGITS[:64]),
    "signed address": ("https://b.s3.example.org/k?X-Amz-Signature={}&a=1", DIGITS[:64]),
    "url with an at": ("amqp://me:{}@mq.example.org:5672/v", "p@ss@word1"),
    "url with a slash": ("redis://:{}@cache.example.org:6379/0", "pa/ss/w0rd"),
    "url with digits and a sign": ("mysql://me:{}@db.example.org/app", "1234:ab?c"),
    "curl": ("curl -u me:{} https://example.org", "hunter22"),
    "curl in quotes": ("curl --user 'me:{}' https://example.org", "h0rse:battery"),
    "uuid": ("client_secret: {}", UUID),
    "few digits": ('app_token = "{}"', "nzekjcbhgkwjbbcicecexm8eygpnnhcc"),
    "element": ("<apiToken>{}</apiToken>", MIXED[:24]),
    "attribute": ('<add key="ApiToken" value="{}" />', MIXED[:24]),
    "compared": ('if (apiKey !== "{}") {{', MIXED[:24]),
    "called": ('setProperty("api.token", "{}")', MIXED[:24]),
    "make": ("API_TOKEN ?= {}", MIXED[:24]),
}
HARMLESS = (
    "password = get_password(user)",
    'password = "password"',
    'token = "user_id_123"',
    "token: Optional[str] = None",
    'self.token = Token("identifier")',
    "https://user:password@example.org",
    "https://user:${PASSWORD}@example.org",
    "https://{user}:{password}@{host}/",
    "postgresql://scott:tiger@localhost/test",
    "SECRET_KEY=os.environ['SECRET_KEY']",
    "PASSWORD_HASHERS = ['django.contrib.auth.hashers.PBKDF2PasswordHasher']",
    "tokens = 4096, max_tokens: 1024",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    '<div class="sk-fading-circle-with-many-words">',
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + MIXED[:64] + "\n-----END CERTIFICATE-----",
    "Authorization: Bearer <token>",
    "secret_key_base: <%= ENV['SECRET'] %>",
    "the secret is in [secret:0123abcd]",
    'password = "[secret:0123abcd]"',
    "password = self.read_password_2",
    "password = hash_v2(value)",
    "password: string",
    "pwd = os.getcwd()",
    "token = tokens[index]",
    "bypass = compute_1_2",
    "https://localhost:8080/@scope/package",
    "http://127.0.0.1:5000/a/b@c",
    "git@github.com:me/a.git, https://example.org:443",
    "//npm.example.org/:_authToken=${NPM_TOKEN}",
    "docker run -u 1000:1000 --user node:node image",
    'curl -u "${USER}:${PASSWORD}" https://example.org',
    "machine learning with a password of login",
    "Authorization: Basic <credentials>",
    "Signature=deadbeef",
    "ghp_" + "x" * 36,
    "xoxb-your-slack-token",
)
UNITS = (
    *(
        "eyJaaaa-",
        "eyJaaaa.",
        ".eyJaaaaaaaaaaaa",
        "a.eyJ",
        "a://b:c",
        "://b:c@",
        "token",
        "token=",
        "password =",
    ),
    *(
        'token="',
        "<token>",
        "-u a:",
        "machine a login b ",
        "default login ",
        "authorization:basic ",
        "?token=",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN A",
        "Signature=ab",
        "--api-token ",
        "sk-",
        "xoxb-",
        "\\n",
        "\n",
    ),
    *("AccountKey=a", "passwd [", "bearer a1", '" ', "A1b2", "-", ".", ":"),
)
"""What patterns begin with: repeated, each place may be a beginning."""


def redactor(*values: str) -> Redactor:
    return Redactor(lambda: b"key", values)


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", 'x = "{}"', "- {}\n", "said {}, and", "({})", '{{"a": "{}\\n"}}'])
def test_keys_that_have_a_shape_are_known_wherever_they_stand(kind: str, around: str) -> None:
    shown = redactor().redact(around.format(SECRETS[kind]))
    assert SECRETS[kind] not in shown
    assert MARK.sub("{}", shown) == around.format("{}")


@pytest.mark.parametrize("kind", IN_CONTEXT)
def test_what_is_given_to_a_secrets_name_is_a_secret(kind: str) -> None:
    around, secret = IN_CONTEXT[kind]
    shown = redactor().redact(f"before\n{around.format(secret)}\nafter")
    assert MARK.sub("{}", shown) == f"before\n{around.format('{}')}\nafter"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redactor().redact(text) == text


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("mark", ["", "+", "    ", "- "])
def test_of_a_key_block_its_lines_and_their_marks_stay(kind: str, mark: str) -> None:
    block = "".join(mark + line for line in PEM.format(kind).splitlines(keepends=True))
    shown = redactor().redact(f"first\n{block}last\n")
    assert MIXED[:20] not in shown
    assert "Zz09" not in shown
    assert shown.count("\n") == block.count("\n") + 2
    assert all(line.startswith(mark) for line in shown.splitlines()[1:-1])
    assert len(set(MARK.findall(shown))) == 1


def test_a_key_block_that_is_cut_off_or_written_in_one_line_is_a_secret() -> None:
    cut = PEM.format("")[:150]
    assert MIXED[:20] not in redactor().redact(cut)
    assert MIXED[:20] not in redactor().redact(repr(PEM.format("RSA ")))
    assert redactor().redact(f"+{MIXED[:64]}") != f"+{MIXED[:64]}"


def test_equal_secrets_look_equal_and_only_under_the_same_key() -> None:
    text = f"{SECRETS['npm']} {SECRETS['aws']} {SECRETS['npm']}"
    first, second, third = MARK.findall(redactor().redact(text))
    assert first == third != second
    assert Redactor(lambda: b"other key").redact(text) != redactor().redact(text)


def test_the_key_is_asked_for_once_and_only_where_there_is_a_secret() -> None:
    asked: list[int] = []

    def key() -> bytes:
        asked.append(1)
        return b"key"

    one = Redactor(key)
    one.redact("nothing here")
    assert asked == []
    one.redact(SECRETS["npm"])
    one.redact(SECRETS["aws"])
    assert asked == [1]
    assert one.count == 2


def test_values_of_secret_variables_are_secrets_wherever_they_stand() -> None:
    environment = {
        "DEPLOY_TOKEN": "plain-words-42",
        "MY_PASSWORD": "plain-words",
        "SESSION_SECRET": "short",
        "API_KEY_FILE": "/run/key-file-1",
        "PWD": "/home/me/project",
        "TOKENIZERS_PARALLELISM": "definitely-1",
        "DB_PASSWORD": "alphabetic",
    }
    values = secret_values(environment)
    assert values == ("plain-words-42", "plain-words")
    assert redactor(*values).redact("it said plain-words-42.") == redactor("plain-words-42").redact(
        "it said plain-words-42."
    )


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PGPASSWORD",
            "MYSQL_PWD",
            "SSHPASS",
            "APITOKEN",
            "GITHUBTOKEN",
            "DB_PW",
            "GH_PAT",
            "NPM_AUTH",
            "REDISCLI_AUTH",
        ),
        *("SESSION_KEY", "FERNET_KEY", "DOCKER_AUTH_CONFIG", "MY_PASS", "apikey"),
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert secret_values({name: "s3cret-words"}) == ("s3cret-words",)


@pytest.mark.parametrize(
    "name", ["PWD", "OLDPWD", "COMPASS", "PATH", "XAUTHORITY", "AUTHOR", "KEYBOARD", "SPW"]
)
def test_other_names_are_none(name: str) -> None:
    assert secret_values({name: "/usr/bin:/bin" if "PWD" in name else "s3cret-words"}) == ()


@given(st.text(alphabet=st.sampled_from("ab1A=:\"' \n\\-+/_.@#[]{}tokenpassword"), max_size=200))
def test_redacting_twice_is_redacting_once_and_keeps_the_lines(text: str) -> None:
    once = redactor().redact(text)
    assert redactor().redact(once) == once
    assert once.count("\n") == text.count("\n")


@pytest.mark.parametrize("unit", UNITS)
def test_the_time_it_takes_grows_as_the_text_does(unit: str) -> None:
    assert growth(lambda text: redactor().redact(text), unit) < QUADRATIC
