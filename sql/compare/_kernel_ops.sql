-- The ops that launch the kernels of the comparison, on any side.
--
-- grain:   one row per (base_kernel, kind)
-- reads:   _kernel_times
-- columns:
--   base_kernel  VARCHAR    -  name of the kernel in the first side; its own without one; or NULL
--   kind         VARCHAR    -  compute, comm, memcpy or memset
--   ops          VARCHAR[]  -  ops, longest time first, ten at most; NULL if none is known
CREATE OR REPLACE VIEW _kernel_ops AS
WITH
    launched AS (
        SELECT
            base_kernel,
            kind,
            op,
            sum(time_ns) AS time_ns
        FROM _kernel_times
        WHERE has_op
        GROUP BY base_kernel, kind, op
    )
SELECT
    base_kernel,
    kind,
    list(op ORDER BY time_ns DESC, op)[1:10] AS ops
FROM launched
GROUP BY base_kernel, kind;
