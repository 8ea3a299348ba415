"""The `[index]` section of `config.toml`."""

from pydantic import Field

from clean_room_agent.config import ConfigSlice
from clean_room_agent.text_file import MAX_TEXT_BYTES


class IndexConfig(ConfigSlice):
    """Limits on what the index covers. Changing one makes the next `cra index` a full rebuild."""

    history: int = Field(default=20_000, ge=0, description="newest commits to read; merges are not counted")
    max_file_bytes: int = Field(
        default=MAX_TEXT_BYTES, ge=1, le=MAX_TEXT_BYTES, description="larger files are left out of the index"
    )
    pair_bound: int = Field(
        default=30,
        ge=1,
        description="commits that touch more files are ignored where files that belong together are looked for",
    )
    lock_timeout: float = Field(
        default=600.0, ge=0, description="seconds to wait while another process indexes this repository"
    )
