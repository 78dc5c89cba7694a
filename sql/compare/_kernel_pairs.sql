-- Which kernel of the first side each kernel of another side stands beside.
--
-- grain:   one row per (side, op, has_op, shapes, types, kernel, kind)
-- reads:   compared_activities, compared_sides
-- columns:
--   side         INTEGER  -  the side, 1 and on
--   op           VARCHAR  -  op that launched it; else launch call; else `(no op)`
--   has_op       BOOLEAN  -  whether it is an op
--   shapes       VARCHAR  -  shapes of the op's inputs; NULL if unknown
--   types        VARCHAR  -  types of the op's inputs; NULL if unknown
--   kernel       VARCHAR  -  its name
--   kind         VARCHAR  -  compute, comm, memcpy or memset
--   base_kernel  VARCHAR  -  name of the kernel it stands beside; its own without one
--   how          VARCHAR  -  same, by name; op or name, renamed: see the notes; own: no partner
-- notes:
--   Below one op, shapes, types and kind, kernels of one name are the same. What is left is paired
--   (op): in order of the place in the call if both sides have as many left, else the longest time
--   with the longest. A kernel without an op, of a name that the first side has nowhere, goes with
--   the partner that its name has below ops, the one with most time (name).
CREATE OR REPLACE VIEW _kernel_pairs AS
WITH
    named AS (
        SELECT
            side,
            op,
            has_op,
            shapes,
            types,
            kernel,
            kind,
            min(place) AS place,
            sum(time_ns) AS time_ns
        FROM compared_activities
        GROUP BY side, op, has_op, shapes, types, kernel, kind
    ),
    base AS (
        SELECT
            op,
            has_op,
            shapes,
            types,
            kernel,
            kind,
            place,
            time_ns
        FROM named
        WHERE side = 0
    ),
    others AS (
        SELECT
            named.side,
            named.op,
            named.has_op,
            named.shapes,
            named.types,
            named.kernel,
            named.kind,
            named.place,
            named.time_ns,
            base.kernel IS NOT NULL AS is_same
        FROM named
        LEFT JOIN base
            ON base.op = named.op
            AND base.has_op = named.has_op
            AND base.shapes IS NOT DISTINCT FROM named.shapes
            AND base.types IS NOT DISTINCT FROM named.types
            AND base.kernel IS NOT DISTINCT FROM named.kernel
            AND base.kind = named.kind
        WHERE named.side > 0
    ),
    left_of_others AS (
        SELECT
            side,
            op,
            shapes,
            types,
            kernel,
            kind,
            time_ns,
            count(*) OVER in_op AS kernels,
            row_number() OVER (in_op ORDER BY place, time_ns DESC, kernel) AS by_place,
            row_number() OVER (in_op ORDER BY time_ns DESC, place, kernel) AS by_time
        FROM others
        WHERE has_op
            AND NOT is_same
        WINDOW in_op AS (PARTITION BY side, op, shapes, types, kind)
    ),
    left_of_base AS (
        SELECT
            compared_sides.side,
            base.op,
            base.shapes,
            base.types,
            base.kernel,
            base.kind,
            count(*) OVER in_op AS kernels,
            row_number() OVER (in_op ORDER BY place, time_ns DESC, kernel) AS by_place,
            row_number() OVER (in_op ORDER BY time_ns DESC, place, kernel) AS by_time
        FROM base
        JOIN compared_sides
            ON compared_sides.side > 0
        ANTI JOIN others
            ON others.side = compared_sides.side
            AND others.has_op
            AND others.op = base.op
            AND others.shapes IS NOT DISTINCT FROM base.shapes
            AND others.types IS NOT DISTINCT FROM base.types
            AND others.kernel IS NOT DISTINCT FROM base.kernel
            AND others.kind = base.kind
        WHERE base.has_op
        WINDOW in_op AS (PARTITION BY compared_sides.side, op, shapes, types, kind)
    ),
    renamed AS (
        SELECT
            left_of_others.side,
            left_of_others.op,
            left_of_others.shapes,
            left_of_others.types,
            left_of_others.kernel,
            left_of_others.kind,
            left_of_others.time_ns,
            left_of_base.kernel AS base_kernel
        FROM left_of_others
        JOIN left_of_base
            ON left_of_base.side = left_of_others.side
            AND left_of_base.op = left_of_others.op
            AND left_of_base.shapes IS NOT DISTINCT FROM left_of_others.shapes
            AND left_of_base.types IS NOT DISTINCT FROM left_of_others.types
            AND left_of_base.kind = left_of_others.kind
            AND CASE
                WHEN left_of_base.kernels = left_of_others.kernels
                    THEN left_of_base.by_place = left_of_others.by_place
                ELSE left_of_base.by_time = left_of_others.by_time
            END
    ),
    partner_times AS (
        SELECT
            side,
            kernel,
            kind,
            base_kernel,
            sum(time_ns) AS time_ns
        FROM renamed
        GROUP BY side, kernel, kind, base_kernel
    ),
    partners AS (
        SELECT
            side,
            kernel,
            kind,
            first(base_kernel ORDER BY time_ns DESC, base_kernel) AS base_kernel
        FROM partner_times
        GROUP BY side, kernel, kind
    ),
    base_names AS (
        SELECT DISTINCT
            kernel,
            kind
        FROM base
    )
SELECT
    others.side,
    others.op,
    others.has_op,
    others.shapes,
    others.types,
    others.kernel,
    others.kind,
    CASE
        WHEN others.is_same THEN others.kernel
        WHEN others.has_op THEN coalesce(renamed.base_kernel, others.kernel)
        WHEN base_names.kind IS NOT NULL THEN others.kernel
        ELSE coalesce(partners.base_kernel, others.kernel)
    END AS base_kernel,
    CASE
        WHEN others.is_same THEN 'same'
        WHEN renamed.kind IS NOT NULL THEN 'op'
        WHEN base_names.kind IS NOT NULL THEN 'same'
        WHEN NOT others.has_op AND partners.kind IS NOT NULL THEN 'name'
        ELSE 'own'
    END AS how
FROM others
LEFT JOIN renamed
    ON others.has_op
    AND renamed.side = others.side
    AND renamed.op = others.op
    AND renamed.shapes IS NOT DISTINCT FROM others.shapes
    AND renamed.types IS NOT DISTINCT FROM others.types
    AND renamed.kernel IS NOT DISTINCT FROM others.kernel
    AND renamed.kind = others.kind
LEFT JOIN partners
    ON partners.side = others.side
    AND partners.kernel IS NOT DISTINCT FROM others.kernel
    AND partners.kind = others.kind
LEFT JOIN base_names
    ON base_names.kernel IS NOT DISTINCT FROM others.kernel
    AND base_names.kind = others.kind;
