-- References between symbols, and a search that can be written by several processes and changed file by file.
-- What older indexes hold of these is dropped: the next `cra index` is a full one.

DROP TABLE postings;
DROP TABLE file_lengths;
DELETE FROM index_state;

ALTER TABLE symbols ADD COLUMN place INTEGER NOT NULL DEFAULT 0; -- among the file's symbols, from 0, enclosing first

-- Files that git lists and that have no place in the index, as they are no text: known so unread.
CREATE TABLE skipped_files (
    path TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    reason TEXT NOT NULL            -- why, where the name says source code; else empty
) STRICT, WITHOUT ROWID;

-- What a file's imports and names say, so that they can be resolved again without reading the file.
CREATE TABLE file_names (
    file_id INTEGER PRIMARY KEY REFERENCES files(id) ON DELETE CASCADE,
    imports TEXT NOT NULL,          -- JSON: each import as it is written: target, names, kind
    interface TEXT,                 -- JSON: what other files may ask of this one; NULL where the language has no references
    uses TEXT                       -- JSON: the names that its symbols use; NULL where the language has no references
) STRICT;

-- Which names of a file were looked up to resolve another: only these files can resolve otherwise when one changes.
CREATE TABLE lookups (
    target_file_id INTEGER NOT NULL, -- the file that was asked; 0 for names that must be unique in the repository
    source_file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    names TEXT NOT NULL,            -- JSON array, sorted; found or not
    PRIMARY KEY (target_file_id, source_file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX lookups_by_source ON lookups(source_file_id);

-- Lexical search: how often a term stands in each field of each file, 64 files to a row. Frequencies only, no scores:
-- these are made at query time, so that one edit changes one file's entries. Terms are split, lower-cased and stemmed;
-- compounds also stand whole.
CREATE TABLE postings (
    bucket INTEGER PRIMARY KEY,     -- file id / 64
    terms TEXT NOT NULL,            -- sorted, separated by spaces
    counts BLOB NOT NULL,           -- one byte a term: how many of the files hold it
    files BLOB NOT NULL             -- 7 bytes a file of each term, by id: file id % 64, then path, symbols, docstrings,
                                    -- comments (one byte each, 255 for more), body (two, little-endian, 65535 for more)
) STRICT;

-- Lexical search: the length of each field of a file in terms, and its chunks: the definitions with all their words.
CREATE TABLE search_files (
    file_id INTEGER PRIMARY KEY REFERENCES files(id) ON DELETE CASCADE,
    path_len INTEGER NOT NULL,
    symbols_len INTEGER NOT NULL,
    docstrings_len INTEGER NOT NULL,
    comments_len INTEGER NOT NULL,
    body_len INTEGER NOT NULL,
    words TEXT NOT NULL,            -- its distinct words, if it has chunks, separated by spaces; their order numbers them
    chunks BLOB NOT NULL            -- 16-bit numbers, little-endian: for each chunk by place: place of its symbol, how
                                    -- many words (two numbers, the low one first), the numbers of its words in order
) STRICT;

-- Lexical search: what the message of a past commit says; only the newest ones that touched few files.
CREATE TABLE commit_terms (
    commit_id INTEGER PRIMARY KEY REFERENCES commits(id) ON DELETE CASCADE,
    terms TEXT NOT NULL             -- JSON object: term -> how often, by term
) STRICT;
