-- History that can go on, back and sideways without being read anew. A larger id of a commit is a newer one, in the
-- order of `git log`; ids leave gaps, so that what a merge brings finds its place between others.

-- Renames in past commits: on the way back in time, what is said of old_path belongs to where new_path led.
CREATE TABLE renames (
    commit_id INTEGER NOT NULL REFERENCES commits(id) ON DELETE CASCADE,
    old_path BLOB NOT NULL,         -- bytes, here and below: a name in the log need not be UTF-8
    new_path BLOB NOT NULL,
    PRIMARY KEY (commit_id, old_path)
) STRICT, WITHOUT ROWID;

-- Paths with a past, renames followed, that the index has no file for now.
CREATE TABLE lost_paths (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE
) STRICT;

-- Which commits touched them.
CREATE TABLE lost_commits (
    path_id INTEGER NOT NULL,       -- of lost_paths
    commit_id INTEGER NOT NULL,     -- of commits; rows of commits that are gone go with the next index run
    PRIMARY KEY (path_id, commit_id)
) STRICT, WITHOUT ROWID;

-- A file that leaves the index leaves its past behind, for when it comes back or turns out to be renamed.
CREATE TRIGGER files_leave_their_past BEFORE DELETE ON files
WHEN EXISTS (SELECT 1 FROM file_commits WHERE file_id = OLD.id)
BEGIN
    INSERT OR IGNORE INTO lost_paths (path) VALUES (CAST(OLD.path AS BLOB));
    INSERT OR IGNORE INTO lost_commits (path_id, commit_id)
    SELECT (SELECT id FROM lost_paths WHERE path = CAST(OLD.path AS BLOB)), commit_id
    FROM file_commits WHERE file_id = OLD.id;
END;

-- What older indexes hold of history lacks these: the next `cra index` is a full one.
DELETE FROM index_state;
