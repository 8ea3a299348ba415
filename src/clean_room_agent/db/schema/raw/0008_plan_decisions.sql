-- What was decided on the way to a plan or an adjustment: yes or no, about two changes, a step, a failure, a goal.
CREATE TABLE plan_decisions (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,                  -- the pass
    question TEXT NOT NULL,                 -- name of the prompt that asks it, also where no model had to be asked
    item TEXT NOT NULL,                     -- what it is about, by ids of the plan: 'c1 c2', 'p2 p1', 's3 f1'
    yes INTEGER NOT NULL CHECK (yes IN (0, 1)),
    reason TEXT NOT NULL,
    call_id INTEGER REFERENCES retrieval_llm_calls(id),  -- the call that judged; NULL where no model did
    confidence REAL,                        -- of the word that was said; NULL where no probabilities were given
    probability REAL,                       -- of yes; NULL likewise
    neutral REAL,                           -- of yes, asked about nothing; NULL where not known
    calibrated REAL,                        -- log-odds of yes less those about nothing: above 0, more yes than no
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX plan_decisions_by_task ON plan_decisions(task_id);
CREATE INDEX plan_decisions_by_call ON plan_decisions(call_id);

CREATE TRIGGER plan_decisions_keep BEFORE DELETE ON plan_decisions
    BEGIN SELECT RAISE(ABORT, 'plan_decisions: rows are never deleted'); END;
CREATE TRIGGER plan_decisions_fixed BEFORE UPDATE ON plan_decisions
    BEGIN SELECT RAISE(ABORT, 'plan_decisions: rows are never changed'); END;
CREATE TRIGGER plan_decisions_once BEFORE INSERT ON plan_decisions
    WHEN EXISTS (SELECT 1 FROM plan_decisions WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'plan_decisions: rows are never replaced'); END;
