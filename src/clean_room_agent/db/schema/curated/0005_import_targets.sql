-- Where each import of a JavaScript or TypeScript file leads: a configuration or a path that changes without changing this
-- leaves the file as it is.
CREATE TABLE import_targets (
    file_id INTEGER PRIMARY KEY REFERENCES files(id) ON DELETE CASCADE,
    targets TEXT NOT NULL           -- JSON object: module as written -> the file's id, or null for what is outside; sorted
) STRICT;

-- Older indexes lack it: the next `cra index` is a full one.
DELETE FROM index_state;
