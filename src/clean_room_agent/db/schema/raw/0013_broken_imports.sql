-- An attempt may also end because its edits broke an import, so that tests could not be loaded. SQLite changes no CHECK, so
-- the table is made anew, with its index and its triggers.
CREATE TABLE run_attempts_new (
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
        'import_broken', 'tests_failed', 'timed_out', 'insufficient_context', 'infrastructure')),
    diff TEXT NOT NULL DEFAULT '',          -- unified, of what was applied, also when it was undone afterwards
    edit_report TEXT NOT NULL DEFAULT '[]', -- JSON array: each edit, its code, the tier that matched, what was repaired
    call_id INTEGER REFERENCES retrieval_llm_calls(id),  -- the call whose answer this is
    commit_hash TEXT NOT NULL DEFAULT '',   -- what was tested, kept under refs/cra/<task>; '' where nothing was applied
    error TEXT NOT NULL DEFAULT ''          -- what went wrong, in one line
) STRICT;
INSERT INTO run_attempts_new
    SELECT id, task_run_id, attempt, prompt_tokens, completion_tokens, latency_ms, raw_response, patch_applied, timestamp,
        outcome, diff, edit_report, call_id, commit_hash, error
    FROM run_attempts;
DROP TABLE run_attempts;
ALTER TABLE run_attempts_new RENAME TO run_attempts;
CREATE INDEX run_attempts_by_task_run ON run_attempts(task_run_id);

CREATE TRIGGER run_attempts_keep BEFORE DELETE ON run_attempts
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never deleted'); END;
CREATE TRIGGER run_attempts_fixed BEFORE UPDATE ON run_attempts
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never changed'); END;
CREATE TRIGGER run_attempts_once BEFORE INSERT ON run_attempts
    WHEN EXISTS (SELECT 1 FROM run_attempts WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'run_attempts: rows are never replaced'); END;
