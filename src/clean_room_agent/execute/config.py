"""The `[edit]` table of `config.toml`."""

from pydantic import Field

from clean_room_agent.config import ConfigSlice

DEFAULT_PROTECTED = (
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "*.pem",
    "*.key",
    "id_rsa*",
    "id_ed25519*",
)


class EditConfig(ConfigSlice):
    """[edit]: what no edit may touch."""

    protected: tuple[str, ...] = Field(
        default=DEFAULT_PROTECTED,
        description="glob patterns of files that are never edited; a pattern without a slash matches names in any folder",
    )
