"""What was measured of the configured models, and what is chosen by it, as it is shown."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.app.fit.decisions import (
    ChosenKey,
    choices,
    is_of_use,
    slots_words,
    words_of,
    words_of_runs,
)
from clean_room_agent.app.fit.figures import FIGURES, Fit
from clean_room_agent.app.fit.fitted import contradictions, models_of, verdict
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.context import Role
from clean_room_agent.db.raw.analysis import CallSums


class FitView(Struct, frozen=True, kw_only=True):
    """What was measured, and what is chosen by it."""

    models: tuple[str, ...]
    figures: tuple[str, ...]
    """Each in words."""
    verdict: str
    """That the coding model cannot do the work; "" if it can."""
    chosen: tuple[ChosenKey, ...]
    """What a run does where nothing else is configured."""
    overridden: tuple[ChosenKey, ...]
    """Of these, where something else is configured."""
    whole: bool
    """Whether all is measured."""


def is_whole(fits: Mapping[Role, Fit]) -> bool:
    """Whether each figure of each role's model is measured."""
    return all(bounds.role in fits and name in fits[bounds.role].ended for name, bounds in FIGURES.items())


def fit_view(settings: Settings, fits: Mapping[Role, Fit], runs: Sequence[CallSums] = ()) -> FitView:
    """What was measured of the models, and what follows, with what was seen in `runs`, for runs with these settings."""
    chosen = choices(fits, runs, models_of(settings))
    return FitView(
        models=tuple(dict.fromkeys(fit.model for fit in fits.values())),
        figures=(*_figure_lines(fits), *words_of_runs(runs)),
        verdict=verdict(fits),
        chosen=chosen,
        overridden=tuple(contradictions(settings, chosen)),
        whole=is_whole(fits),
    )


def _figure_lines(fits: Mapping[Role, Fit]) -> Iterator[str]:
    for name, bounds in FIGURES.items():
        if bounds.role in fits and (told := words_of(fits[bounds.role], name)):
            yield f"{told}: not asked" if is_of_use(fits[bounds.role], name) is False else told
    if "coding" in fits and (told := slots_words(fits["coding"])):
        yield told
