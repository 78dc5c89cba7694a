-- The kernels in the parts of each side: of an op those that it launched, of a kernel its names.
--
-- grain:   one row per (level, name, shapes, types, kind, side)
-- reads:   _kernel_times
-- columns:
--   level       VARCHAR    -  op or kernel
--   name        VARCHAR    -  op, or kernel of the first side; NULL if nameless
--   shapes      VARCHAR    -  of level op: shapes of its inputs; NULL if unknown
--   types       VARCHAR    -  of level op: types of its inputs; NULL if unknown
--   kind        VARCHAR    -  of level kernel: compute, comm, memcpy or memset; else NULL
--   side        INTEGER    -  the side, from 0
--   kernels     VARCHAR[]  -  names, longest time first; ten at most
--   short_name  VARCHAR    -  the first of them without return type, namespaces and arguments
CREATE OR REPLACE VIEW _part_kernels AS
WITH
    named AS (
        SELECT
            levels.level,
            CASE WHEN levels.level = 'op' THEN own.op ELSE own.base_kernel END AS name,
            CASE WHEN levels.level = 'op' THEN own.shapes END AS shapes,
            CASE WHEN levels.level = 'op' THEN own.types END AS types,
            CASE WHEN levels.level = 'kernel' THEN own.kind END AS kind,
            own.side,
            own.kernel,
            min(own.short_name) AS short_name,
            sum(own.time_ns) AS time_ns
        FROM _kernel_times AS own
        CROSS JOIN (VALUES ('op'), ('kernel')) AS levels(level)
        GROUP BY ALL
    )
SELECT
    level,
    name,
    shapes,
    types,
    kind,
    side,
    list(kernel ORDER BY time_ns DESC, kernel)[1:10] AS kernels,
    first(short_name ORDER BY time_ns DESC, kernel) AS short_name
FROM named
GROUP BY level, name, shapes, types, kind, side;
