-- What a server's prefix cache spared.

ALTER TABLE retrieval_llm_calls ADD COLUMN cached_tokens INTEGER;  -- of prompt_tokens, computed for an earlier request; NULL where the server does not tell
