-- How tokens are estimated: what was learned from logged calls, and which run used what.

-- Token estimators fitted to the calls of a model; the newest of a model is used.
CREATE TABLE token_calibrations (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,                    -- tag, as the server knows it
    model_digest TEXT NOT NULL,             -- of the calls that it is fitted to; '' where the server gives none
    pairs INTEGER NOT NULL,                 -- calls that it is fitted to
    newest_call_id INTEGER NOT NULL REFERENCES retrieval_llm_calls(id),
    margin REAL NOT NULL,                   -- what the fit gives is multiplied with it, to be on the safe side
    weights TEXT NOT NULL,                  -- JSON array: tokens for one of each kind of piece, in the program's order
    words TEXT NOT NULL,                    -- JSON array of [word, tokens beside those of its kinds]
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX token_calibrations_by_model ON token_calibrations(model, id);
CREATE INDEX token_calibrations_by_call ON token_calibrations(newest_call_id);

-- What each task's prompts were measured with: a replay measures with the same.
CREATE TABLE task_gauges (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the task, not its passes
    model TEXT NOT NULL,
    calibration_id INTEGER REFERENCES token_calibrations(id),  -- NULL: too few calls were known
    start_factor REAL NOT NULL,             -- tokens for a piece of text, where there is no calibration
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX task_gauges_by_task ON task_gauges(task_id);
CREATE INDEX task_gauges_by_calibration ON task_gauges(calibration_id);

CREATE TRIGGER token_calibrations_keep BEFORE DELETE ON token_calibrations
    BEGIN SELECT RAISE(ABORT, 'token_calibrations: rows are never deleted'); END;
CREATE TRIGGER token_calibrations_fixed BEFORE UPDATE ON token_calibrations
    BEGIN SELECT RAISE(ABORT, 'token_calibrations: rows are never changed'); END;
CREATE TRIGGER task_gauges_keep BEFORE DELETE ON task_gauges
    BEGIN SELECT RAISE(ABORT, 'task_gauges: rows are never deleted'); END;
CREATE TRIGGER task_gauges_fixed BEFORE UPDATE ON task_gauges
    BEGIN SELECT RAISE(ABORT, 'task_gauges: rows are never changed'); END;
