-- The rules that a table of attempt/1 records is held to (docs/records.md), in plain SQL: one statement a rule,
-- and each gives the attempts that break it. The table is `attempt`, with the columns of attempt/1 as they are named.
--
-- A comparison with NULL is neither true nor false, and WHERE takes only what is true. So every piece of evidence
-- is asked for through coalesce: what is not known counts as missing.

-- R1: accepted, though the evidence is missing or not enough
SELECT attempt_id FROM attempt
WHERE decision = 'accepted' AND NOT (
  coalesce(framing_complete, false)
  AND coalesce(terminal_class, '') = 'complete'
  AND (terminal_event IS NOT NULL OR NOT coalesce(needs_terminal, true))
  AND (coalesce(terminal_reason_source, '') = 'provider' OR NOT coalesce(needs_reason, true))
  AND coalesce(tool_args_complete, true)
  AND payload_sha256 IS NOT NULL
  AND payload_bytes IS NOT NULL
);

-- R2: accepted in a task that has an accepted answer already
SELECT attempt_id FROM (
  SELECT attempt_id, row_number() OVER (PARTITION BY task_id ORDER BY fence, attempt_id) AS place
  FROM attempt WHERE decision = 'accepted'
) AS accepted
WHERE place > 1;

-- R3: an attempt_id that occurs before, or a fence that its task has given before
SELECT attempt_id FROM (
  SELECT attempt_id,
    row_number() OVER (PARTITION BY attempt_id ORDER BY started_at, fence) AS same_id,
    row_number() OVER (PARTITION BY task_id, fence ORDER BY started_at, attempt_id) AS same_fence
  FROM attempt
) AS attempts
WHERE same_id > 1 OR same_fence > 1;

-- R4: accepted, though a newer attempt of the task had begun
SELECT attempt_id FROM attempt AS mine
WHERE decision = 'accepted' AND EXISTS (
  SELECT 1 FROM attempt AS newer
  WHERE newer.task_id = mine.task_id AND newer.fence > mine.fence AND newer.started_at < mine.decided_at
);

-- R5: an answer in the product's own store, in the table or view `answer (attempt_id, payload_sha256)`, that no
-- accepted attempt is on record for
SELECT attempt_id FROM answer
WHERE NOT EXISTS (
  SELECT 1 FROM attempt
  WHERE attempt.attempt_id = answer.attempt_id
    AND attempt.decision = 'accepted' AND attempt.payload_sha256 = answer.payload_sha256
);

-- R6: a word that the schema does not have, or none where it needs one
SELECT attempt_id FROM attempt
WHERE NOT (
  coalesce("schema" = 'attempt/1', false)
  AND coalesce(fence >= 1, false)
  AND coalesce(decision IN ('accepted', 'refused', 'superseded', 'failed', 'cancelled'), false)
  AND coalesce(transport_end IN (
    'eof', 'content_length_met', 'last_chunk', 'h2_end_stream', 'reset', 'timeout', 'cancelled', 'unknown'), false)
  AND framing_complete IS NOT NULL
  AND coalesce(terminal_reason_source IN ('provider', 'instrumentation', 'none'), false)
  AND coalesce(terminal_class IN (
    'complete', 'length', 'filtered', 'refused', 'paused', 'error', 'truncated', 'cancelled', 'unknown'), false)
  AND rule_version IS NOT NULL
  AND recorder IS NOT NULL
  AND source_sha256 IS NOT NULL
);

-- R7: accepted, though the provider said that it stopped short or failed
-- (a list of reasons is read as text, however the database spells one: ["stop"], [stop] or {stop})
SELECT attempt_id FROM attempt
WHERE decision = 'accepted' AND cast("gen_ai.response.finish_reasons" AS varchar) IN (
  SELECT spelt FROM (
    SELECT spelt, ',' || replace(replace(replace(replace(replace(replace(
      lower(spelt), '"', ''), ' ', ''), '[', ''), '{', ''), ']', ','), '}', ',') AS reasons
    FROM (
      SELECT max(cast("gen_ai.response.finish_reasons" AS varchar)) AS spelt
      FROM attempt GROUP BY cast("gen_ai.response.finish_reasons" AS varchar)
    ) AS lists
  ) AS said
  WHERE reasons LIKE '%,length,%' OR reasons LIKE '%,max_tokens,%' OR reasons LIKE '%,max_output_tokens,%'
    OR reasons LIKE '%,model_length,%' OR reasons LIKE '%,model_context_window_exceeded,%'
    OR reasons LIKE '%,max_messages,%' OR reasons LIKE '%,content_filter,%' OR reasons LIKE '%,content_filtered,%'
    OR reasons LIKE '%,safety,%' OR reasons LIKE '%,refusal,%' OR reasons LIKE '%,guardrail_intervened,%'
    OR reasons LIKE '%,error,%'
);
