-- A model's leaning to the words of a prompt: what it answers when it is asked about nothing. Later commands do not ask
-- the same model again.
CREATE TABLE answer_biases (
    id INTEGER PRIMARY KEY,
    base_url TEXT NOT NULL,                 -- of the server, as configured
    model TEXT NOT NULL,                    -- tag, as the server knows it
    model_digest TEXT NOT NULL,             -- '' where the server has none; the row then counts for a week
    prompt TEXT NOT NULL,                   -- its name
    prompt_hash TEXT NOT NULL,              -- of the measuring call
    shares TEXT NOT NULL,                   -- JSON array of [word, probability]
    call_id INTEGER NOT NULL REFERENCES retrieval_llm_calls(id),  -- the measuring call
    timestamp TEXT NOT NULL
) STRICT;
CREATE INDEX answer_biases_by_prompt ON answer_biases(prompt_hash, model, id);
CREATE INDEX answer_biases_by_call ON answer_biases(call_id);

CREATE TRIGGER answer_biases_keep BEFORE DELETE ON answer_biases
    BEGIN SELECT RAISE(ABORT, 'answer_biases: rows are never deleted'); END;
CREATE TRIGGER answer_biases_fixed BEFORE UPDATE ON answer_biases
    BEGIN SELECT RAISE(ABORT, 'answer_biases: rows are never changed'); END;
CREATE TRIGGER answer_biases_once BEFORE INSERT ON answer_biases
    WHEN EXISTS (SELECT 1 FROM answer_biases WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'answer_biases: rows are never replaced'); END;

-- What a verdict says beyond that leaning.
ALTER TABLE retrieval_decisions ADD COLUMN probability REAL;  -- of the word that lets the candidate in; NULL where no probabilities were given
ALTER TABLE retrieval_decisions ADD COLUMN neutral REAL;      -- of the same word, asked about nothing; NULL where not known
ALTER TABLE retrieval_decisions ADD COLUMN calibrated REAL;   -- log-odds of the word less those about nothing: above 0, more yes than no
