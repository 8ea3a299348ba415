"""A decision about what a model is shown, or about a plan: what it is about, and what the judging model said."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a retrieval decision is about: a file or a piece of one, or the whole pass."""

    path: str = ""
    """Or the name that leads to no file; "" for the whole pass."""
    symbol: str | None = None
    file_id: int | None = None
    tier: int = 4
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """What the model that judged said; all None where the program decided."""

    call_id: int | None = None
    confidence: float | None = None
    """Of the word that the model said; None where it gave no probabilities, as the next three."""
    probability: float | None = None
    """Of the word that decides, such as yes."""
    neutral: float | None = None
    """Of the same word, asked about nothing; None where that is not known."""
    calibrated: float | None = None
    """Log-odds of that word, less those about nothing."""
