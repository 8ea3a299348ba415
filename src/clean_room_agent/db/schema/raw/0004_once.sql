-- Rows are not replaced either. REPLACE deletes what stands in its way, and the triggers against deleting see that only
-- where recursive_triggers is on, as it is in this program and not in others.

CREATE TRIGGER index_runs_once BEFORE INSERT ON index_runs
    WHEN EXISTS (SELECT 1 FROM index_runs WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'index_runs: rows are never replaced'); END;
CREATE TRIGGER enrichment_outputs_once BEFORE INSERT ON enrichment_outputs
    WHEN EXISTS (SELECT 1 FROM enrichment_outputs WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'enrichment_outputs: rows are never replaced'); END;
CREATE TRIGGER retrieval_llm_calls_once BEFORE INSERT ON retrieval_llm_calls
    WHEN EXISTS (SELECT 1 FROM retrieval_llm_calls WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'retrieval_llm_calls: rows are never replaced'); END;
CREATE TRIGGER call_readings_once BEFORE INSERT ON call_readings
    WHEN EXISTS (SELECT 1 FROM call_readings WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'call_readings: rows are never replaced'); END;
CREATE TRIGGER retrieval_decisions_once BEFORE INSERT ON retrieval_decisions
    WHEN EXISTS (SELECT 1 FROM retrieval_decisions WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'retrieval_decisions: rows are never replaced'); END;
CREATE TRIGGER task_runs_once BEFORE INSERT ON task_runs
    WHEN EXISTS (SELECT 1 FROM task_runs WHERE id = NEW.id OR task_id = NEW.task_id)
    BEGIN SELECT RAISE(ABORT, 'task_runs: rows are never replaced'); END;
CREATE TRIGGER run_attempts_once BEFORE INSERT ON run_attempts
    WHEN EXISTS (SELECT 1 FROM run_attempts WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never replaced'); END;
CREATE TRIGGER validation_results_once BEFORE INSERT ON validation_results
    WHEN EXISTS (SELECT 1 FROM validation_results WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'validation_results: rows are never replaced'); END;
CREATE TRIGGER orchestrator_runs_once BEFORE INSERT ON orchestrator_runs
    WHEN EXISTS (SELECT 1 FROM orchestrator_runs WHERE id = NEW.id OR task_id = NEW.task_id)
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: rows are never replaced'); END;
CREATE TRIGGER orchestrator_passes_once BEFORE INSERT ON orchestrator_passes
    WHEN EXISTS (SELECT 1 FROM orchestrator_passes WHERE id = NEW.id OR (orchestrator_run_id = NEW.orchestrator_run_id AND task_run_id = NEW.task_run_id))
    BEGIN SELECT RAISE(ABORT, 'orchestrator_passes: rows are never replaced'); END;
CREATE TRIGGER events_once BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'events: rows are never replaced'); END;
CREATE TRIGGER session_archives_once BEFORE INSERT ON session_archives
    WHEN EXISTS (SELECT 1 FROM session_archives WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'session_archives: rows are never replaced'); END;
CREATE TRIGGER refinements_once BEFORE INSERT ON refinements
    WHEN EXISTS (SELECT 1 FROM refinements WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'refinements: rows are never replaced'); END;
CREATE TRIGGER recovery_decisions_once BEFORE INSERT ON recovery_decisions
    WHEN EXISTS (SELECT 1 FROM recovery_decisions WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'recovery_decisions: rows are never replaced'); END;
CREATE TRIGGER training_plans_once BEFORE INSERT ON training_plans
    WHEN EXISTS (SELECT 1 FROM training_plans WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'training_plans: rows are never replaced'); END;
CREATE TRIGGER training_datasets_once BEFORE INSERT ON training_datasets
    WHEN EXISTS (SELECT 1 FROM training_datasets WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'training_datasets: rows are never replaced'); END;
CREATE TRIGGER adapter_registry_once BEFORE INSERT ON adapter_registry
    WHEN EXISTS (SELECT 1 FROM adapter_registry WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'adapter_registry: rows are never replaced'); END;
CREATE TRIGGER adapter_evaluations_once BEFORE INSERT ON adapter_evaluations
    WHEN EXISTS (SELECT 1 FROM adapter_evaluations WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'adapter_evaluations: rows are never replaced'); END;
CREATE TRIGGER token_calibrations_once BEFORE INSERT ON token_calibrations
    WHEN EXISTS (SELECT 1 FROM token_calibrations WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'token_calibrations: rows are never replaced'); END;
CREATE TRIGGER task_gauges_once BEFORE INSERT ON task_gauges
    WHEN EXISTS (SELECT 1 FROM task_gauges WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'task_gauges: rows are never replaced'); END;
