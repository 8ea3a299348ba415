-- What is known of a repository. Derived from its files and history by `cra index`, and rebuilt from them;
-- only file_metadata and adapter_metadata hold what cannot be derived.

-- The indexed repository; one row.
CREATE TABLE repos (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,      -- absolute, of the working tree's root
    remote_url TEXT,                -- of the remote named origin, without credentials; NULL without a remote
    indexed_at TEXT NOT NULL        -- UTC, ISO 8601
) STRICT;

-- Every text file that git lists (tracked, or untracked and not ignored) and that is neither secret nor too large.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    repo_id INTEGER NOT NULL REFERENCES repos(id) ON DELETE CASCADE,
    path TEXT NOT NULL,             -- relative to the root, with forward slashes
    language TEXT NOT NULL,         -- python, javascript, typescript, or the name of another kind of text
    content_hash TEXT NOT NULL,     -- hex SHA-256 of the file's bytes, apart from line ends and `$Id$`
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL DEFAULT 0,  -- with size and inode: whether the file can be known unchanged unread
    inode INTEGER NOT NULL DEFAULT 0,
    parse_error TEXT                -- where the first syntax error stands; NULL where all of the file parsed
) STRICT;
CREATE UNIQUE INDEX files_by_path ON files(repo_id, path);

-- Definitions, with the lines that they cover, decorators included.
CREATE TABLE symbols (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    qualified_name TEXT NOT NULL,   -- names of the enclosing symbols and its own, joined by dots: Class.method
    kind TEXT NOT NULL CHECK (kind IN
        ('function', 'class', 'method', 'interface', 'type_alias', 'enum', 'variable')),
    start_line INTEGER NOT NULL,    -- 1-based, inclusive
    end_line INTEGER NOT NULL,      -- 1-based, inclusive
    signature TEXT NOT NULL,        -- source text, all its lines
    parent_symbol_id INTEGER REFERENCES symbols(id) ON DELETE CASCADE  -- the enclosing symbol; NULL at module level
) STRICT;
CREATE INDEX symbols_by_file ON symbols(file_id);
CREATE INDEX symbols_by_name ON symbols(name);
CREATE INDEX symbols_by_parent ON symbols(parent_symbol_id);

-- Documentation of modules and symbols.
CREATE TABLE docstrings (
    id INTEGER PRIMARY KEY,
    symbol_id INTEGER REFERENCES symbols(id) ON DELETE CASCADE,  -- NULL for the module's own
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    content TEXT NOT NULL,          -- without quotes or comment marks, dedented
    format TEXT NOT NULL CHECK (format IN ('google', 'numpy', 'sphinx', 'jsdoc', 'plain')),
    parsed_fields TEXT              -- JSON object: parameters, returns, raises; NULL where the text has none
) STRICT;
CREATE INDEX docstrings_by_file ON docstrings(file_id);
CREATE INDEX docstrings_by_symbol ON docstrings(symbol_id);

-- Comments that are not documentation.
CREATE TABLE inline_comments (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    symbol_id INTEGER REFERENCES symbols(id) ON DELETE CASCADE,  -- the innermost symbol around it; NULL at module level
    line INTEGER NOT NULL,          -- 1-based
    content TEXT NOT NULL,          -- without comment marks
    kind TEXT NOT NULL CHECK (kind IN ('todo', 'fixme', 'hack', 'note', 'bug_ref', 'rationale', 'general')),
    is_rationale INTEGER NOT NULL CHECK (is_rationale IN (0, 1))  -- whether it gives a reason, whatever its kind
) STRICT;
CREATE INDEX inline_comments_by_file ON inline_comments(file_id);
CREATE INDEX inline_comments_by_symbol ON inline_comments(symbol_id);

-- Imports between files of the repository: the source file needs the target file.
CREATE TABLE dependencies (
    id INTEGER PRIMARY KEY,
    source_file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    target_file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('import', 'type_ref'))  -- type_ref: needed by type checkers only
) STRICT;
CREATE INDEX dependencies_by_source ON dependencies(source_file_id);
CREATE INDEX dependencies_by_target ON dependencies(target_file_id);

-- Uses of one symbol by another.
CREATE TABLE symbol_references (
    id INTEGER PRIMARY KEY,
    caller_symbol_id INTEGER NOT NULL REFERENCES symbols(id) ON DELETE CASCADE,
    callee_symbol_id INTEGER NOT NULL REFERENCES symbols(id) ON DELETE CASCADE,
    reference_kind TEXT NOT NULL,   -- call, inheritance, decorator, attribute, name
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1)  -- by how it was resolved; same scope 1.0
) STRICT;
CREATE INDEX symbol_references_by_caller ON symbol_references(caller_symbol_id);
CREATE INDEX symbol_references_by_callee ON symbol_references(callee_symbol_id);

-- History, merges left out.
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    repo_id INTEGER NOT NULL REFERENCES repos(id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    author TEXT NOT NULL,
    message TEXT NOT NULL,
    timestamp TEXT NOT NULL,        -- of the author, UTC, ISO 8601
    files_changed INTEGER NOT NULL, -- all files of the commit, also those that exist no more
    insertions INTEGER,             -- NULL: lines are not counted
    deletions INTEGER               -- NULL: lines are not counted
) STRICT;
CREATE UNIQUE INDEX commits_by_hash ON commits(repo_id, hash);

-- Which commits touched which of today's files, renames followed.
CREATE TABLE file_commits (
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    commit_id INTEGER NOT NULL REFERENCES commits(id) ON DELETE CASCADE,
    PRIMARY KEY (file_id, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_commits_by_commit ON file_commits(commit_id);

-- How often two files changed in the same commit.
CREATE TABLE co_changes (
    file_a_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    file_b_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    count INTEGER NOT NULL,
    last_commit_hash TEXT NOT NULL, -- the newest commit that touched both
    PRIMARY KEY (file_a_id, file_b_id),
    CHECK (file_a_id < file_b_id)   -- each pair once
) STRICT, WITHOUT ROWID;
CREATE INDEX co_changes_by_second ON co_changes(file_b_id);

-- A model's description of a file, promoted by hand: `cra enrich --promote`.
CREATE TABLE file_metadata (
    file_id INTEGER PRIMARY KEY REFERENCES files(id) ON DELETE CASCADE,
    purpose TEXT,
    module TEXT,
    domain TEXT,
    concepts TEXT,                  -- JSON array of strings
    public_api_surface TEXT,        -- JSON array of strings
    complexity_notes TEXT
) STRICT;
CREATE INDEX file_metadata_by_domain ON file_metadata(domain);
CREATE INDEX file_metadata_by_module ON file_metadata(module);

-- Adapters in use: which model tag answers for a prompt.
CREATE TABLE adapter_metadata (
    id INTEGER PRIMARY KEY,
    stage_name TEXT NOT NULL,       -- a prompt's name
    base_model TEXT NOT NULL CHECK (base_model IN ('coding', 'reasoning')),  -- the role it was trained for
    model_tag TEXT NOT NULL,        -- as the server knows it
    version TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    performance_notes TEXT,
    deployed_at TEXT NOT NULL       -- UTC, ISO 8601
) STRICT;
CREATE INDEX adapter_metadata_by_stage ON adapter_metadata(stage_name, active);

-- Lexical search: how often a term stands in each field of a file. Frequencies only, no scores: these are made at query
-- time, so that one edit changes one file's rows. Terms are split, lower-cased and stemmed; compounds also stand whole.
CREATE TABLE postings (
    term TEXT NOT NULL,
    file_id INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    path_tf REAL NOT NULL DEFAULT 0,        -- weighted where a term counts more than once or less
    symbols_tf REAL NOT NULL DEFAULT 0,
    docstrings_tf REAL NOT NULL DEFAULT 0,
    comments_tf REAL NOT NULL DEFAULT 0,
    body_tf REAL NOT NULL DEFAULT 0,
    history_tf REAL NOT NULL DEFAULT 0,     -- messages of past commits that touched the file
    PRIMARY KEY (term, file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX postings_by_file ON postings(file_id);

-- Lexical search: the length of each field of a file, in terms.
CREATE TABLE file_lengths (
    file_id INTEGER PRIMARY KEY REFERENCES files(id) ON DELETE CASCADE,
    path_len REAL NOT NULL DEFAULT 0,
    symbols_len REAL NOT NULL DEFAULT 0,
    docstrings_len REAL NOT NULL DEFAULT 0,
    comments_len REAL NOT NULL DEFAULT 0,
    body_len REAL NOT NULL DEFAULT 0,
    history_len REAL NOT NULL DEFAULT 0
) STRICT;

-- What the index was made from: last commit indexed, program version, settings that change rows.
CREATE TABLE index_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
