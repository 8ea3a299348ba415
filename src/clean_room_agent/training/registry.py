"""The training stages by name. A new stage is one line here."""

from collections.abc import Callable, Mapping

from clean_room_agent.retrieval.stage import RetrievalStage
from clean_room_agent.training.data_selection_stage import DataSelectionStage
from clean_room_agent.training.log_analysis_stage import LogAnalysisStage
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

TRAINING_STAGES: Mapping[str, Callable[[TrainingStageConfig], RetrievalStage[LogSource]]] = {
    "log_analysis": LogAnalysisStage,
    "data_selection": DataSelectionStage,
}
