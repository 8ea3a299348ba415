"""The `[index]` section of `config.toml`."""

from typing import Annotated

from msgspec import Meta

from clean_room_agent.config import ConfigSlice
from clean_room_agent.file_contents import MAX_TEXT_BYTES


class IndexConfig(ConfigSlice, frozen=True, kw_only=True):
    """Limits on what the index covers. Changing one makes the next `cra index` a full rebuild."""

    history: Annotated[int, Meta(ge=0, description="newest commits to read; merges are not counted")] = 20_000
    max_file_bytes: Annotated[
        int, Meta(ge=1, le=MAX_TEXT_BYTES, description="larger files are left out of the index")
    ] = MAX_TEXT_BYTES
    pair_bound: Annotated[
        int,
        Meta(
            ge=1,
            description="commits that touch more files are ignored where files that belong together are looked for",
        ),
    ] = 30
    lock_timeout: Annotated[
        float, Meta(ge=0, description="seconds to wait while another process indexes this repository")
    ] = 600.0
