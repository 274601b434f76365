-- MySQL and MariaDB: IDs of the layout {layout}
-- Columns are BIGINT UNSIGNED, and times DATETIME(6) in UTC. Text that is not such an ID gives
-- NULL. No function makes IDs.

DROP FUNCTION IF EXISTS {name}_time;
CREATE FUNCTION {name}_time(id BIGINT UNSIGNED) RETURNS DATETIME(6) DETERMINISTIC NO SQL RETURN
  TIMESTAMPADD(MICROSECOND, {time}, '1970-01-01 00:00:00.000000');

DROP FUNCTION IF EXISTS {name}_node;
CREATE FUNCTION {name}_node(id BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN
  {node};

DROP FUNCTION IF EXISTS {name}_seq;
CREATE FUNCTION {name}_seq(id BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN
  {seq};
--- sorted

-- A range: WHERE id BETWEEN {name}_first('2026-11-20') AND {name}_last('2026-11-21')
-- has the IDs from the first time up to the second, which is not included.
DROP FUNCTION IF EXISTS {name}_first;
CREATE FUNCTION {name}_first(t DATETIME(6)) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN
  {first};

DROP FUNCTION IF EXISTS {name}_last;
CREATE FUNCTION {name}_last(t DATETIME(6)) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN
  {last};
--- unsorted

-- IDs of this layout do not sort by time, so there are no functions for time ranges.
--- always

-- Typed text: {name}_to_typed('order', id), and {name}_from_typed('order', text) back. A column
-- of it is VARCHAR(77) CHARACTER SET ascii COLLATE ascii_bin: 73 other collations lose its order.
DROP FUNCTION IF EXISTS {name}_to_typed;
CREATE FUNCTION {name}_to_typed(prefix VARCHAR(63) CHARACTER SET utf8mb4, id BIGINT UNSIGNED) RETURNS VARCHAR(77) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL RETURN
  CONCAT(prefix, '_', {digits});

DROP FUNCTION IF EXISTS {name}_from_typed;
CREATE FUNCTION {name}_from_typed(prefix VARCHAR(63) CHARACTER SET utf8mb4, typed VARCHAR(255) CHARACTER SET utf8mb4) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN
  CASE WHEN CAST(typed AS BINARY) = CAST(CONCAT(prefix, '_', RIGHT(typed, 13)) AS BINARY)
    AND RIGHT(typed, 13) COLLATE utf8mb4_bin REGEXP '^[0-9a-f][0-9a-hjkmnp-tv-z]{12}$'
  THEN {value} END;
