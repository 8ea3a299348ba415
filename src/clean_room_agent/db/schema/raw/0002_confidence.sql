-- How sure the model was of a verdict.

ALTER TABLE retrieval_decisions ADD COLUMN confidence REAL;  -- of the verdict, 0.5 to 1; NULL where no probabilities were given
