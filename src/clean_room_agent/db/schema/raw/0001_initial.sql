-- The record of everything that happened: append-only, and the corpus that training reads.
-- All timestamps are UTC, ISO 8601. JSON stands in TEXT columns that say so.
-- Nothing is ever deleted. What may be updated, and nothing else, enforced by the triggers at the end:
--   task_runs          success, total_tokens, total_latency_ms, final_diff, final_plan, detail, completed_at
--   orchestrator_runs  total_parts, total_steps, parts_completed, steps_completed, status, completed_at, branch,
--                      result_commit, reason; snapshot_commit and snapshot once, while they are empty
--   enrichment_outputs promoted
--   adapter_registry   deployed

-- Every run of the indexer, successful or not.
CREATE TABLE index_runs (
    id INTEGER PRIMARY KEY,
    repo_path TEXT NOT NULL,
    files_scanned INTEGER NOT NULL,
    files_changed INTEGER NOT NULL,
    files_deleted INTEGER NOT NULL DEFAULT 0,
    symbols INTEGER NOT NULL DEFAULT 0,     -- in the index afterwards
    commits INTEGER NOT NULL DEFAULT 0,     -- added by this run
    duration_ms INTEGER NOT NULL,
    status TEXT NOT NULL,                   -- complete, partial (files were skipped), failed
    failures TEXT NOT NULL DEFAULT '[]',    -- JSON array of [path, message]
    timestamp TEXT NOT NULL
) STRICT;

-- A model's descriptions of files, as `cra enrich` got them.
CREATE TABLE enrichment_outputs (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL,               -- in curated.sqlite, as it was then; path and content_hash last longer
    path TEXT NOT NULL,
    content_hash TEXT NOT NULL,             -- of the bytes that the model was shown
    model TEXT NOT NULL,
    purpose TEXT,
    module TEXT,
    domain TEXT,
    concepts TEXT,                          -- JSON array of strings
    public_api_surface TEXT,                -- JSON array of strings
    complexity_notes TEXT,
    raw_prompt TEXT NOT NULL,
    raw_response TEXT NOT NULL,
    promoted INTEGER NOT NULL DEFAULT 0 CHECK (promoted IN (0, 1)),  -- updatable
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX enrichment_outputs_by_path ON enrichment_outputs(path, content_hash);

-- Every call of a model by any part of the program, committed before the answer is read.
-- Identity, the same when a task runs again: pass without its task, call_type, item, attempt.
CREATE TABLE retrieval_llm_calls (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the pass that asked: a task's id, or that id and more after a colon
    call_type TEXT NOT NULL,                -- the prompt's name
    stage_name TEXT NOT NULL,               -- the stage that asked; '' outside stages
    model TEXT NOT NULL,                    -- tag, as the server knows it
    prompt TEXT NOT NULL,                   -- the user message
    response TEXT NOT NULL,                 -- exact text; what came before the error where there was one
    prompt_tokens INTEGER,                  -- counted by the server; NULL where it did not say
    completion_tokens INTEGER,              -- counted by the server; NULL where it did not say
    latency_ms INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    system_prompt TEXT NOT NULL,
    request_body TEXT NOT NULL,             -- the exact JSON that was sent: options, schema, seed
    provider TEXT NOT NULL,                 -- ollama, openai, replay
    model_digest TEXT NOT NULL DEFAULT '',  -- of the weights, where the server tells
    finish TEXT NOT NULL,                   -- stop, length, or error:<class of the error>
    role TEXT NOT NULL,                     -- classifier, reasoning, coding
    item TEXT NOT NULL DEFAULT '',          -- what was judged; '' for calls that judge no item
    attempt INTEGER NOT NULL DEFAULT 0,     -- 0-based within pass, prompt and item
    prompt_hash TEXT NOT NULL,              -- hex SHA-256 of what replay compares
    estimated_tokens INTEGER NOT NULL,      -- of the whole request, before it was sent
    thinking TEXT NOT NULL DEFAULT '',
    logprobs TEXT NOT NULL DEFAULT '',      -- JSON as the server sent it; '' where none was asked for
    error TEXT NOT NULL DEFAULT '',         -- the message of the error that finish names
    replayed_from INTEGER                   -- the recorded call that answered; its database may be another one
) STRICT;
CREATE INDEX retrieval_llm_calls_by_task ON retrieval_llm_calls(task_id, call_type, item, attempt);

-- How an answer was read. Apart from the calls, since a call is committed before it is read.
CREATE TABLE call_readings (
    id INTEGER PRIMARY KEY,
    call_id INTEGER NOT NULL REFERENCES retrieval_llm_calls(id),
    reading TEXT NOT NULL CHECK (reading IN ('parsed', 'repaired', 'unreadable')),
    fault TEXT NOT NULL DEFAULT '',         -- what was wrong with the answer; '' where nothing was
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX call_readings_by_call ON call_readings(call_id);

-- What became of each candidate, and why.
CREATE TABLE retrieval_decisions (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the pass
    stage TEXT NOT NULL,                    -- the stage, or assembly
    file_id INTEGER,                        -- in curated.sqlite, as it was then; NULL where the file is not indexed
    tier INTEGER NOT NULL,                  -- 0 named by a plan .. 4 metadata; see planning
    included INTEGER NOT NULL CHECK (included IN (0, 1)),
    reason TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    path TEXT NOT NULL,
    symbol TEXT,                            -- qualified name; NULL where the whole file was judged
    detail TEXT NOT NULL DEFAULT '',        -- primary, supporting, type_context; '' where not decided here
    score REAL,                             -- deterministic; NULL where the tier alone decided
    call_id INTEGER REFERENCES retrieval_llm_calls(id)  -- the call that judged; NULL where no model did
) STRICT;
CREATE INDEX retrieval_decisions_by_task ON retrieval_decisions(task_id);
CREATE INDEX retrieval_decisions_by_path ON retrieval_decisions(path);

-- One row for every pass, written when it begins; its outcome columns when it ends.
CREATE TABLE task_runs (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL UNIQUE,           -- the pass's id
    repo_path TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('plan', 'implement', 'train_plan', 'curate_data')),
    execute_model TEXT NOT NULL,            -- the model that reads the package; '' where none does
    context_window INTEGER NOT NULL,        -- tokens
    reserved_tokens INTEGER NOT NULL,
    stages TEXT NOT NULL,                   -- names in order, joined by commas
    plan_artifact TEXT,                     -- JSON of the plan that the pass followed; NULL where there was none
    success INTEGER CHECK (success IN (0, 1)),  -- updatable; NULL until the pass has ended
    total_tokens INTEGER,                   -- updatable; of all its calls
    total_latency_ms INTEGER,               -- updatable; of all its calls
    final_diff TEXT,                        -- updatable; unified, of the accepted change
    final_plan TEXT,                        -- updatable; JSON of the plan that the pass made
    detail TEXT NOT NULL DEFAULT '',        -- updatable; why it did not succeed
    completed_at TEXT,                      -- updatable
    timestamp TEXT NOT NULL                 -- of its beginning
) STRICT;

-- One attempt at a step, written when its outcome is known.
CREATE TABLE run_attempts (
    id INTEGER PRIMARY KEY,
    task_run_id INTEGER NOT NULL REFERENCES task_runs(id),
    attempt INTEGER NOT NULL,               -- 1-based
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    latency_ms INTEGER NOT NULL,
    raw_response TEXT NOT NULL,
    patch_applied INTEGER NOT NULL CHECK (patch_applied IN (0, 1)),
    timestamp TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('applied_and_passed', 'no_edits', 'unreadable', 'truncated', 'refused',
        'tests_failed', 'timed_out', 'insufficient_context', 'infrastructure')),
    diff TEXT NOT NULL DEFAULT '',          -- unified, of what was applied, also when it was undone afterwards
    edit_report TEXT NOT NULL DEFAULT '[]', -- JSON array: each edit, its code, the tier that matched
    call_id INTEGER REFERENCES retrieval_llm_calls(id),  -- the call whose answer this is
    commit_hash TEXT NOT NULL DEFAULT '',   -- what was tested, kept under refs/cra/<task>; '' where nothing was applied
    error TEXT NOT NULL DEFAULT ''          -- what went wrong, in one line
) STRICT;
CREATE INDEX run_attempts_by_task_run ON run_attempts(task_run_id);

-- Every run of the commands of [testing], written when it has ended.
CREATE TABLE validation_results (
    id INTEGER PRIMARY KEY,
    attempt_id INTEGER REFERENCES run_attempts(id),  -- NULL where no attempt was judged: baseline, final run
    success INTEGER NOT NULL CHECK (success IN (0, 1)),
    test_output TEXT NOT NULL,              -- whole up to a bound; beyond it head and tail, the cut marked
    lint_output TEXT,                       -- NULL where no command is configured
    type_check_output TEXT,                 -- NULL where no command is configured
    failing_tests TEXT NOT NULL,            -- JSON array of {name, message, path, line, statement, expected, actual, frames}
    newly_failing TEXT NOT NULL DEFAULT '[]',  -- JSON array of names that passed after the last accepted step
    task_id TEXT NOT NULL,                  -- the pass; the task itself for baseline and final run
    kind TEXT NOT NULL CHECK (kind IN ('baseline', 'attempt', 'recheck', 'final', 'restored')),
                                            -- recheck: newly failing tests alone; restored: with the base's own tests
    command TEXT NOT NULL DEFAULT '',
    exit_code INTEGER,                      -- NULL where the command did not end by itself
    timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1)),
    tests_run INTEGER,                      -- NULL where the runner's report cannot be read
    tests_passed INTEGER,
    duration_ms INTEGER NOT NULL DEFAULT 0,
    timestamp TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX validation_results_by_attempt ON validation_results(attempt_id);
CREATE INDEX validation_results_by_task ON validation_results(task_id);

-- A run of many passes: `cra solve`, `cra plan`.
CREATE TABLE orchestrator_runs (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL UNIQUE,
    repo_path TEXT NOT NULL,
    task_description TEXT NOT NULL,         -- the user's words, unchanged
    total_parts INTEGER NOT NULL DEFAULT 0,     -- updatable, as all counts
    total_steps INTEGER NOT NULL DEFAULT 0,     -- updatable
    parts_completed INTEGER NOT NULL DEFAULT 0, -- updatable
    steps_completed INTEGER NOT NULL DEFAULT 0, -- updatable
    status TEXT NOT NULL CHECK (status IN
        ('running', 'interrupted', 'needs_human', 'complete', 'partial', 'failed')),  -- updatable
    timestamp TEXT NOT NULL,                -- of its beginning
    completed_at TEXT,                      -- updatable; NULL while it can go on
    command TEXT NOT NULL DEFAULT 'solve',  -- solve, plan
    config TEXT NOT NULL DEFAULT '{}',      -- JSON: every value that the run was started with
    program_version TEXT NOT NULL DEFAULT '',
    base_commit TEXT NOT NULL DEFAULT '',   -- the user's HEAD
    snapshot_commit TEXT NOT NULL DEFAULT '',  -- updatable while ''; what the user saw: HEAD, changes, untracked files
    snapshot TEXT NOT NULL DEFAULT '',      -- updatable while ''; JSON: dirty, untracked, excluded and absent paths
    branch TEXT NOT NULL DEFAULT '',        -- updatable; '' while nothing has landed
    result_commit TEXT NOT NULL DEFAULT '', -- updatable; the branch's tip when it was made
    reason TEXT NOT NULL DEFAULT ''         -- updatable; why the status is not complete, in one line
) STRICT;

-- Which passes a run is made of, in which order.
CREATE TABLE orchestrator_passes (
    id INTEGER PRIMARY KEY,
    orchestrator_run_id INTEGER NOT NULL REFERENCES orchestrator_runs(id),
    task_run_id INTEGER NOT NULL REFERENCES task_runs(id),
    pass_type TEXT NOT NULL,                -- meta_plan, part_plan, implement, adjust
    part_id TEXT NOT NULL DEFAULT '',
    step_id TEXT NOT NULL DEFAULT '',
    sequence_order INTEGER NOT NULL,        -- 0-based
    timestamp TEXT NOT NULL,
    UNIQUE (orchestrator_run_id, task_run_id)
) STRICT;
CREATE INDEX orchestrator_passes_by_task_run ON orchestrator_passes(task_run_id);

-- What happens to a run beyond its passes: warnings, resumption, plans renumbered, result applied or discarded.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the task or the pass
    kind TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',        -- plain words, or JSON where the kind has fields
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_task ON events(task_id);

-- A session's whole file, kept when its task has ended.
CREATE TABLE session_archives (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    session_blob BLOB NOT NULL,             -- an SQLite database
    archived_at TEXT NOT NULL
) STRICT;
CREATE INDEX session_archives_by_task ON session_archives(task_id);

-- A context made again because a failed attempt showed that something was missing in it.
CREATE TABLE refinements (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the pass
    request TEXT NOT NULL,                  -- JSON of the RefinementRequest
    evidence TEXT NOT NULL,                 -- JSON: what in the failure named what was missing
    added TEXT NOT NULL,                    -- JSON array of the paths and symbols that came in
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX refinements_by_task ON refinements(task_id);

-- What was done about a step that did not work.
CREATE TABLE recovery_decisions (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the pass that had failed
    state TEXT NOT NULL,                    -- JSON: history and budgets, as the rules saw them
    rule TEXT NOT NULL,                     -- the rule that fired
    action TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_decisions_by_task ON recovery_decisions(task_id);

-- What is to be trained, and on which data.
CREATE TABLE training_plans (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    target_stage TEXT NOT NULL,             -- a prompt's name
    base_model TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('logged', 'synthetic')),
    data_criteria TEXT NOT NULL,            -- JSON object
    hyperparameters TEXT NOT NULL,          -- JSON object
    improvement_targets TEXT NOT NULL,      -- JSON object
    raw_plan TEXT NOT NULL,                 -- the plan as it was answered
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX training_plans_by_task ON training_plans(task_id);

-- Data sets on disk.
CREATE TABLE training_datasets (
    id INTEGER PRIMARY KEY,
    training_plan_id INTEGER NOT NULL REFERENCES training_plans(id),
    stage_name TEXT NOT NULL,               -- a prompt's name
    base_model TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('logged', 'synthetic')),
    dataset_path TEXT NOT NULL,             -- absolute
    example_count INTEGER NOT NULL,
    positive_count INTEGER NOT NULL,
    negative_count INTEGER NOT NULL,
    format TEXT NOT NULL,
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX training_datasets_by_plan ON training_datasets(training_plan_id);

-- Adapters that were trained.
CREATE TABLE adapter_registry (
    id INTEGER PRIMARY KEY,
    dataset_id INTEGER NOT NULL REFERENCES training_datasets(id),
    stage_name TEXT NOT NULL,               -- a prompt's name
    base_model TEXT NOT NULL,
    model_tag TEXT NOT NULL,
    training_loss REAL,
    eval_metrics TEXT NOT NULL DEFAULT '{}',  -- JSON object
    deployed INTEGER NOT NULL DEFAULT 0 CHECK (deployed IN (0, 1)),  -- updatable
    trained_at TEXT NOT NULL
) STRICT;
CREATE INDEX adapter_registry_by_dataset ON adapter_registry(dataset_id);

-- An adapter against its base on held-out prompts.
CREATE TABLE adapter_evaluations (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    adapter_id INTEGER NOT NULL REFERENCES adapter_registry(id),
    base_tag TEXT NOT NULL,                 -- the model it was compared with
    example_count INTEGER NOT NULL,
    metrics TEXT NOT NULL,                  -- JSON object: the task's metric of both, p-value, bounds, latency
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),  -- whether the gate lets it be deployed
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX adapter_evaluations_by_adapter ON adapter_evaluations(adapter_id);
-- No row is deleted.
CREATE TRIGGER index_runs_keep BEFORE DELETE ON index_runs
    BEGIN SELECT RAISE(ABORT, 'index_runs: rows are never deleted'); END;
CREATE TRIGGER enrichment_outputs_keep BEFORE DELETE ON enrichment_outputs
    BEGIN SELECT RAISE(ABORT, 'enrichment_outputs: rows are never deleted'); END;
CREATE TRIGGER retrieval_llm_calls_keep BEFORE DELETE ON retrieval_llm_calls
    BEGIN SELECT RAISE(ABORT, 'retrieval_llm_calls: rows are never deleted'); END;
CREATE TRIGGER call_readings_keep BEFORE DELETE ON call_readings
    BEGIN SELECT RAISE(ABORT, 'call_readings: rows are never deleted'); END;
CREATE TRIGGER retrieval_decisions_keep BEFORE DELETE ON retrieval_decisions
    BEGIN SELECT RAISE(ABORT, 'retrieval_decisions: rows are never deleted'); END;
CREATE TRIGGER task_runs_keep BEFORE DELETE ON task_runs
    BEGIN SELECT RAISE(ABORT, 'task_runs: rows are never deleted'); END;
CREATE TRIGGER run_attempts_keep BEFORE DELETE ON run_attempts
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never deleted'); END;
CREATE TRIGGER validation_results_keep BEFORE DELETE ON validation_results
    BEGIN SELECT RAISE(ABORT, 'validation_results: rows are never deleted'); END;
CREATE TRIGGER orchestrator_runs_keep BEFORE DELETE ON orchestrator_runs
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: rows are never deleted'); END;
CREATE TRIGGER orchestrator_passes_keep BEFORE DELETE ON orchestrator_passes
    BEGIN SELECT RAISE(ABORT, 'orchestrator_passes: rows are never deleted'); END;
CREATE TRIGGER events_keep BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events: rows are never deleted'); END;
CREATE TRIGGER session_archives_keep BEFORE DELETE ON session_archives
    BEGIN SELECT RAISE(ABORT, 'session_archives: rows are never deleted'); END;
CREATE TRIGGER refinements_keep BEFORE DELETE ON refinements
    BEGIN SELECT RAISE(ABORT, 'refinements: rows are never deleted'); END;
CREATE TRIGGER recovery_decisions_keep BEFORE DELETE ON recovery_decisions
    BEGIN SELECT RAISE(ABORT, 'recovery_decisions: rows are never deleted'); END;
CREATE TRIGGER training_plans_keep BEFORE DELETE ON training_plans
    BEGIN SELECT RAISE(ABORT, 'training_plans: rows are never deleted'); END;
CREATE TRIGGER training_datasets_keep BEFORE DELETE ON training_datasets
    BEGIN SELECT RAISE(ABORT, 'training_datasets: rows are never deleted'); END;
CREATE TRIGGER adapter_registry_keep BEFORE DELETE ON adapter_registry
    BEGIN SELECT RAISE(ABORT, 'adapter_registry: rows are never deleted'); END;
CREATE TRIGGER adapter_evaluations_keep BEFORE DELETE ON adapter_evaluations
    BEGIN SELECT RAISE(ABORT, 'adapter_evaluations: rows are never deleted'); END;

-- No row is changed, but in the columns listed above.
CREATE TRIGGER index_runs_fixed BEFORE UPDATE ON index_runs
    BEGIN SELECT RAISE(ABORT, 'index_runs: rows are never changed'); END;
CREATE TRIGGER enrichment_outputs_fixed BEFORE UPDATE OF
    id, file_id, path, content_hash, model, purpose, module, domain, concepts, public_api_surface,
    complexity_notes, raw_prompt, raw_response, timestamp
    ON enrichment_outputs
    BEGIN SELECT RAISE(ABORT, 'enrichment_outputs: this column is never changed'); END;
CREATE TRIGGER retrieval_llm_calls_fixed BEFORE UPDATE ON retrieval_llm_calls
    BEGIN SELECT RAISE(ABORT, 'retrieval_llm_calls: rows are never changed'); END;
CREATE TRIGGER call_readings_fixed BEFORE UPDATE ON call_readings
    BEGIN SELECT RAISE(ABORT, 'call_readings: rows are never changed'); END;
CREATE TRIGGER retrieval_decisions_fixed BEFORE UPDATE ON retrieval_decisions
    BEGIN SELECT RAISE(ABORT, 'retrieval_decisions: rows are never changed'); END;
CREATE TRIGGER task_runs_fixed BEFORE UPDATE OF
    id, task_id, repo_path, mode, execute_model, context_window, reserved_tokens, stages,
    plan_artifact, timestamp
    ON task_runs
    BEGIN SELECT RAISE(ABORT, 'task_runs: this column is never changed'); END;
CREATE TRIGGER run_attempts_fixed BEFORE UPDATE ON run_attempts
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never changed'); END;
CREATE TRIGGER validation_results_fixed BEFORE UPDATE ON validation_results
    BEGIN SELECT RAISE(ABORT, 'validation_results: rows are never changed'); END;
CREATE TRIGGER orchestrator_runs_fixed BEFORE UPDATE OF
    id, task_id, repo_path, task_description, timestamp, command, config, program_version,
    base_commit
    ON orchestrator_runs
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: this column is never changed'); END;
CREATE TRIGGER orchestrator_passes_fixed BEFORE UPDATE ON orchestrator_passes
    BEGIN SELECT RAISE(ABORT, 'orchestrator_passes: rows are never changed'); END;
CREATE TRIGGER events_fixed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events: rows are never changed'); END;
CREATE TRIGGER session_archives_fixed BEFORE UPDATE ON session_archives
    BEGIN SELECT RAISE(ABORT, 'session_archives: rows are never changed'); END;
CREATE TRIGGER refinements_fixed BEFORE UPDATE ON refinements
    BEGIN SELECT RAISE(ABORT, 'refinements: rows are never changed'); END;
CREATE TRIGGER recovery_decisions_fixed BEFORE UPDATE ON recovery_decisions
    BEGIN SELECT RAISE(ABORT, 'recovery_decisions: rows are never changed'); END;
CREATE TRIGGER training_plans_fixed BEFORE UPDATE ON training_plans
    BEGIN SELECT RAISE(ABORT, 'training_plans: rows are never changed'); END;
CREATE TRIGGER training_datasets_fixed BEFORE UPDATE ON training_datasets
    BEGIN SELECT RAISE(ABORT, 'training_datasets: rows are never changed'); END;
CREATE TRIGGER adapter_registry_fixed BEFORE UPDATE OF
    id, dataset_id, stage_name, base_model, model_tag, training_loss, eval_metrics, trained_at
    ON adapter_registry
    BEGIN SELECT RAISE(ABORT, 'adapter_registry: this column is never changed'); END;
CREATE TRIGGER adapter_evaluations_fixed BEFORE UPDATE ON adapter_evaluations
    BEGIN SELECT RAISE(ABORT, 'adapter_evaluations: rows are never changed'); END;
CREATE TRIGGER orchestrator_runs_snapshot_once BEFORE UPDATE OF snapshot_commit, snapshot ON orchestrator_runs
    WHEN (OLD.snapshot_commit <> '' AND NEW.snapshot_commit <> OLD.snapshot_commit)
        OR (OLD.snapshot <> '' AND NEW.snapshot <> OLD.snapshot)
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: the snapshot is never changed'); END;
