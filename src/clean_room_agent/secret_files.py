"""Which files hold secrets, by their names alone."""

from clean_room_agent.globs import compile_globs

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


# One pattern for all: an index asks for every file of a repository.
SECRET = compile_globs(PATTERNS)
NO_SECRET = compile_globs(HARMLESS)


def is_secret_name(path: str) -> bool:
    """Whether the file at `path` (forward slashes) must stay out of index, snapshot and prompts."""
    folder, _, name = path.lower().rpartition("/")
    if not FOLDERS.isdisjoint(folder.split("/")):
        return True
    return SECRET.match(name) is not None and NO_SECRET.match(name) is None
