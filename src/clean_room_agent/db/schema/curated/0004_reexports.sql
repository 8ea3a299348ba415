-- What JavaScript and TypeScript modules pass on, so that a barrel does not hide the files behind it.
CREATE TABLE reexports (
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    name TEXT NOT NULL,             -- as it is imported from the file; default for all of a CommonJS module
    target_file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,  -- where what it stands for is defined
    symbol_id INTEGER REFERENCES symbols(id) ON DELETE CASCADE,  -- what it stands for; NULL where that is a whole module
    PRIMARY KEY (file_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX reexports_by_target ON reexports(target_file_id);
CREATE INDEX reexports_by_symbol ON reexports(symbol_id);

-- Older indexes hold neither these nor references of JavaScript and TypeScript: the next `cra index` is a full one.
DELETE FROM index_state;
