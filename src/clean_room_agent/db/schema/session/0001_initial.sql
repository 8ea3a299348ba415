-- Working memory of one task: what its passes hand on, and what a resumed run goes on from.

-- One value a key. Keys of a pass inside an orchestrated run are prefixed with that pass's id and a slash.
CREATE TABLE kv (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,            -- JSON
    updated_at TEXT NOT NULL        -- UTC, ISO 8601
) STRICT, WITHOUT ROWID;
