import pytest

from clean_room_agent.secret_files import is_secret_name


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env.local", "A/.ENV", "prod.env", "certs/server.pem", "x.key", ".ssh/config", "id_rsa", "id_ed25519_work",
     ".netrc", ".npmrc", "a/.aws/credentials", "main.tfstate", "secrets.yaml"],
)  # fmt: skip
def test_names_that_hold_secrets_are_known(path: str) -> None:
    assert is_secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "env.py",
        ".env.example",
        "src/environment.ts",
        "keys.py",
        "id_rsa.pub",
        "monkey",
        "pem.md",
        "aws/s3.py",
    ],
)
def test_ordinary_names_are_no_secrets(path: str) -> None:
    assert not is_secret_name(path)
