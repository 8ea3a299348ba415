"""The `[sandbox]` table of `config.toml`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from clean_room_agent.config import ConfigSlice

Mode = Literal["auto", "bwrap", "none"]


class SandboxConfig(ConfigSlice):
    """[sandbox]: what surrounds the repository's commands while they run model-written code."""

    mode: Mode = Field(
        default="auto",
        description='"bwrap": inside bubblewrap, or not at all; "none": with your privileges, as each run says; "auto": '
        "bubblewrap where it works, else none, as each run says",
    )
    read: tuple[str, ...] = Field(
        default=(), description='more that the commands may read: absolute paths, or "~/" and what follows'
    )
    environment: tuple[str, ...] = Field(
        default=(), description="names of more environment variables that the commands are given"
    )
    memory_mb: int = Field(default=4096, ge=0, description="held by all processes of a command; 0: no bound")
    processes: int = Field(default=2048, ge=0, description="with threads, at a time; 0: no bound")
    file_mb: int = Field(default=2048, ge=0, description="of each file written; 0: no bound")
    scratch_mb: int = Field(
        default=512, ge=1, description="in each of the temporary folders, which live in memory"
    )

    @field_validator("read")
    @classmethod
    def _names_a_place(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith(("/", "~/")) or ".." in Path(path).parts:
                raise ValueError(f"{path!r} is neither absolute nor begins with ~/")
        return value
