"""Which files hold secrets, judged by their names alone."""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

PATTERNS = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    "credentials",
    "credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "service-account*.json",
    "*.tfvars",
    "*.tfstate",
)
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.example.env", "*.pub")
FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube"})


def is_secret_name(path: str) -> bool:
    """Whether the file at `path` (forward slashes) must stay out of index, snapshot and prompts."""
    parts = PurePosixPath(path.lower()).parts
    if not parts:
        return False
    name = parts[-1]
    if any(part in FOLDERS for part in parts[:-1]):
        return True
    if any(fnmatchcase(name, pattern) for pattern in HARMLESS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in PATTERNS)
