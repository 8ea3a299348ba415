"""The `[enrichment]` table of `config.toml`."""

from pydantic import Field

from clean_room_agent.config import ConfigSlice


class EnrichmentConfig(ConfigSlice):
    """When `cra enrich` gives up."""

    max_unreadable: int = Field(
        default=5, ge=1, description="unreadable answers in a row after which `cra enrich` stops"
    )
