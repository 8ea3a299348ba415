"""Every state there is."""

from tests.fakes.states import histories, locations, work_trees
from tests.fakes.states.place import Maker

STATES: dict[str, Maker] = {**work_trees.STATES, **histories.STATES, **locations.STATES}
"""By name. A maker gives None where this machine cannot have the state."""
