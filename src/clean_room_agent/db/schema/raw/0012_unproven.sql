-- A run may also end as unproven: something was changed and nothing fails, but no test shows that the task is done. SQLite
-- changes no CHECK, so the table is made anew, with its triggers.
CREATE TABLE orchestrator_runs_new (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL UNIQUE,
    repo_path TEXT NOT NULL,
    task_description TEXT NOT NULL,
    total_parts INTEGER NOT NULL DEFAULT 0,
    total_steps INTEGER NOT NULL DEFAULT 0,
    parts_completed INTEGER NOT NULL DEFAULT 0,
    steps_completed INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL CHECK (status IN
        ('running', 'interrupted', 'needs_human', 'complete', 'unproven', 'partial', 'failed')),
    timestamp TEXT NOT NULL,
    completed_at TEXT,
    command TEXT NOT NULL DEFAULT 'solve',
    config TEXT NOT NULL DEFAULT '{}',
    program_version TEXT NOT NULL DEFAULT '',
    base_commit TEXT NOT NULL DEFAULT '',
    snapshot_commit TEXT NOT NULL DEFAULT '',
    snapshot TEXT NOT NULL DEFAULT '',
    branch TEXT NOT NULL DEFAULT '',
    result_commit TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO orchestrator_runs_new
    SELECT id, task_id, repo_path, task_description, total_parts, total_steps, parts_completed, steps_completed, status,
        timestamp, completed_at, command, config, program_version, base_commit, snapshot_commit, snapshot, branch,
        result_commit, reason
    FROM orchestrator_runs;
DROP TABLE orchestrator_runs;
ALTER TABLE orchestrator_runs_new RENAME TO orchestrator_runs;

CREATE TRIGGER orchestrator_runs_keep BEFORE DELETE ON orchestrator_runs
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: rows are never deleted'); END;
CREATE TRIGGER orchestrator_runs_fixed BEFORE UPDATE OF
    id, task_id, repo_path, task_description, timestamp, command, config, program_version,
    base_commit
    ON orchestrator_runs
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: this column is never changed'); END;
CREATE TRIGGER orchestrator_runs_snapshot_once BEFORE UPDATE OF snapshot_commit, snapshot ON orchestrator_runs
    WHEN (OLD.snapshot_commit <> '' AND NEW.snapshot_commit <> OLD.snapshot_commit)
        OR (OLD.snapshot <> '' AND NEW.snapshot <> OLD.snapshot)
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: the snapshot is never changed'); END;
CREATE TRIGGER orchestrator_runs_once BEFORE INSERT ON orchestrator_runs
    WHEN EXISTS (SELECT 1 FROM orchestrator_runs WHERE id = NEW.id OR task_id = NEW.task_id)
    BEGIN SELECT RAISE(ABORT, 'orchestrator_runs: rows are never replaced'); END;
