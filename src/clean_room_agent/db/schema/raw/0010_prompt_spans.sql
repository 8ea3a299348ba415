-- Where the lines of a prompt come from: a task, a file, a plan, an earlier attempt. A line in no span is the template's.

ALTER TABLE retrieval_llm_calls ADD COLUMN prompt_spans TEXT;  -- JSON array of [first line, last line, source, path, symbol, number]; NULL where it was recorded before
