-- What the time of a run went to, beside its calls, so that a time line can be drawn.
CREATE TABLE time_spans (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the task
    kind TEXT NOT NULL,                     -- start, preflight, git, sandbox, index, index_copy, model_load, tests, retrieval
    detail TEXT NOT NULL DEFAULT '',        -- what exactly: snapshot, the pass that a context is for
    began_at TEXT NOT NULL,
    ended_at TEXT NOT NULL                  -- spans may overlap: an index is built while tests run
) STRICT;
CREATE INDEX time_spans_by_task ON time_spans(task_id);
CREATE TRIGGER time_spans_keep BEFORE DELETE ON time_spans
    BEGIN SELECT RAISE(ABORT, 'time_spans: rows are never deleted'); END;
CREATE TRIGGER time_spans_fixed BEFORE UPDATE ON time_spans
    BEGIN SELECT RAISE(ABORT, 'time_spans: rows are never changed'); END;
CREATE TRIGGER time_spans_once BEFORE INSERT ON time_spans
    WHEN EXISTS (SELECT 1 FROM time_spans WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'time_spans: rows are never replaced'); END;
