"""The training stages by name. A new stage is one line here."""

from collections.abc import Callable, Mapping

from clean_room_agent.retrieval.stage import RetrievalStage
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig
from clean_room_agent.training.stages.data_selection import DataSelectionStage
from clean_room_agent.training.stages.log_analysis import LogAnalysisStage

TRAINING_STAGES: Mapping[str, Callable[[TrainingStageConfig], RetrievalStage[LogSource]]] = {
    "log_analysis": LogAnalysisStage,
    "data_selection": DataSelectionStage,
}
