"""Every state there is."""

from testing.states import foreign, histories, locations, work_trees
from testing.states.place import Maker

STATES: dict[str, Maker] = {**work_trees.STATES, **histories.STATES, **locations.STATES, **foreign.STATES}
"""By name. A maker gives None where this machine cannot have the state."""
