-- Where a trained adapter stands, what it was trained on, and every change of which one answers for a prompt.

ALTER TABLE adapter_registry ADD COLUMN adapter_path TEXT NOT NULL DEFAULT '';  -- folder; '' for rows older than this column
ALTER TABLE adapter_registry ADD COLUMN base_digest TEXT NOT NULL DEFAULT '';   -- SHA-256 of the weights it was trained on

CREATE TRIGGER adapter_registry_place_fixed BEFORE UPDATE OF adapter_path, base_digest ON adapter_registry
    BEGIN SELECT RAISE(ABORT, 'adapter_registry: this column is never changed'); END;

-- What `cra adapters deploy` and `retire` were about to write into [models.overrides]. The row is older than the change of
-- the file: where the process died between them, the file says something else, and the file is right.
CREATE TABLE adapter_deployments (
    id INTEGER PRIMARY KEY,
    adapter_id INTEGER NOT NULL REFERENCES adapter_registry(id),  -- the one that was deployed, or retired
    evaluation_id INTEGER REFERENCES adapter_evaluations(id),     -- the gate that it passed; NULL for retire and --force
    stage_name TEXT NOT NULL,               -- a prompt's name
    action TEXT NOT NULL CHECK (action IN ('deploy', 'retire')),
    tag TEXT NOT NULL,                      -- the override from now on; '' for none
    replaced_tag TEXT NOT NULL,             -- the override until then; '' for none
    reason TEXT NOT NULL DEFAULT '',        -- why it was deployed without a passed gate
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX adapter_deployments_by_stage ON adapter_deployments(stage_name, id);
CREATE INDEX adapter_deployments_by_adapter ON adapter_deployments(adapter_id);
CREATE INDEX adapter_deployments_by_evaluation ON adapter_deployments(evaluation_id);

CREATE TRIGGER adapter_deployments_keep BEFORE DELETE ON adapter_deployments
    BEGIN SELECT RAISE(ABORT, 'adapter_deployments: rows are never deleted'); END;
CREATE TRIGGER adapter_deployments_fixed BEFORE UPDATE ON adapter_deployments
    BEGIN SELECT RAISE(ABORT, 'adapter_deployments: rows are never changed'); END;
CREATE TRIGGER adapter_deployments_once BEFORE INSERT ON adapter_deployments
    WHEN EXISTS (SELECT 1 FROM adapter_deployments WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'adapter_deployments: rows are never replaced'); END;
