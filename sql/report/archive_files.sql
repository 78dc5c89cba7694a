-- Files that could not be read whole.
--
-- grain:   one row per (path)
-- reads:   files
-- columns:
--   path    VARCHAR  -  the file
--   label   VARCHAR  -  job that it belongs to
--   status  VARCHAR  -  rejected, partial or repaired
--   reason  VARCHAR  -  why
SELECT
    path,
    label,
    status,
    reason
FROM files
WHERE status <> 'ok'
    AND ($label IS NULL OR label = $label)
ORDER BY
    CASE status WHEN 'rejected' THEN 0 WHEN 'partial' THEN 1 ELSE 2 END,
    path;
