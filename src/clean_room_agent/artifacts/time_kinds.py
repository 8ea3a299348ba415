"""What the time of a run goes to, beside model calls, whose rows have times of their own."""

from enum import StrEnum


class TimeKind(StrEnum):
    """Values are in old records, so they stay as they are."""

    START = "start"
    """From Enter until the command begins its work: Python, imports, configuration."""
    PREFLIGHT = "preflight"
    """The model server is asked for its models."""
    GIT = "git"
    SANDBOX = "sandbox"
    """It is set up, and linked folders are copied in."""
    INDEX = "index"
    """The repository's index is brought up to date, in a process beside the run."""
    INDEX_COPY = "index_copy"
    """The run waits for the index, copies it, and keeps its copy up to date."""
    MODEL_LOAD = "model_load"
    """The server loads a model that no question waits for yet."""
    TESTS = "tests"
    RETRIEVAL = "retrieval"
    """A context is made; the calls for it are part of it."""
