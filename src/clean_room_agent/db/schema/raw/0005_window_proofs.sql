-- Servers that were proven to refuse (or to read whole) a prompt beyond the configured window: later commands do not
-- ask the same server again. `cra check` always does, and adds a row.
CREATE TABLE window_proofs (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,                 -- protocol by which the server was asked
    base_url TEXT NOT NULL,                 -- as configured
    model TEXT NOT NULL,                    -- tag, as the server knows it
    model_digest TEXT NOT NULL,             -- '' where the server has none; the proof then counts for a week
    window INTEGER NOT NULL,                -- tokens, as configured
    call_id INTEGER NOT NULL REFERENCES retrieval_llm_calls(id),  -- the probe
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX window_proofs_by_server ON window_proofs(base_url, model, id);
CREATE INDEX window_proofs_by_call ON window_proofs(call_id);

CREATE TRIGGER window_proofs_keep BEFORE DELETE ON window_proofs
    BEGIN SELECT RAISE(ABORT, 'window_proofs: rows are never deleted'); END;
CREATE TRIGGER window_proofs_fixed BEFORE UPDATE ON window_proofs
    BEGIN SELECT RAISE(ABORT, 'window_proofs: rows are never changed'); END;
CREATE TRIGGER window_proofs_once BEFORE INSERT ON window_proofs
    WHEN EXISTS (SELECT 1 FROM window_proofs WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'window_proofs: rows are never replaced'); END;
