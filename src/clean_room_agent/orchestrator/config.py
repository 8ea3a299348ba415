"""The slices of `config.toml` that steer a run."""

from pydantic import Field

from clean_room_agent.config import ConfigSlice


class SolveConfig(ConfigSlice):
    """[solve]: how hard a step is tried."""

    max_attempts: int = Field(ge=1, description="attempts at one step before it is given up")
    max_refinement_loops: int = Field(
        ge=0, description="how often a step may ask retrieval for what its room lacked"
    )


class OrchestratorConfig(ConfigSlice):
    """[orchestrator]: bounds of a plan and of a whole run; reaching one ends the run as partial."""

    max_parts: int = Field(default=10, ge=1, description="parts of a plan")
    max_steps_per_part: int = Field(default=15, ge=1, description="steps of a part")
    max_adjustment_rounds: int = Field(
        default=1, ge=0, description="times that what remains of a part may be revised after one step"
    )
    plan_fallback: bool = Field(
        default=True,
        description="where no valid plan comes: the task as one part, a part as one step, over the files in scope",
    )
    max_calls: int = Field(default=400, ge=1, description="model calls of a run")
    max_tokens: int = Field(default=4_000_000, ge=1, description="prompt and answer tokens of a run")
    max_minutes: float = Field(default=240.0, gt=0, description="minutes of a run")
    max_untracked_bytes: int = Field(
        default=2_000_000, ge=0, description="an untracked file larger than this stays out of the snapshot"
    )
