-- DuckDB: IDs of the layout {layout}
-- Columns are BIGINT, UBIGINT or HUGEINT with IDs below 2^63, and times TIMESTAMP in UTC.
-- Text that is not such an ID gives NULL. No macro makes IDs.

CREATE OR REPLACE MACRO {name}_time(id) AS make_timestamp(({time})::BIGINT);

CREATE OR REPLACE MACRO {name}_node(id) AS ({node})::BIGINT;

CREATE OR REPLACE MACRO {name}_seq(id) AS ({seq})::BIGINT;
--- sorted

-- A range: WHERE id BETWEEN {name}_first('2026-11-20') AND {name}_last('2026-11-21')
-- has the IDs from the first time up to the second, which is not included.
CREATE OR REPLACE MACRO {name}_first(t) AS {first};

CREATE OR REPLACE MACRO {name}_last(t) AS {last};
--- unsorted

-- IDs of this layout do not sort by time, so there are no macros for time ranges.
--- always

-- Typed text: {name}_to_typed('order', id), and {name}_from_typed('order', text) back.
CREATE OR REPLACE MACRO {name}_to_typed(prefix, id) AS prefix || '_' || {digits};

CREATE OR REPLACE MACRO {name}_from_typed(prefix, typed) AS
  CASE WHEN typed = prefix || '_' || right(typed, 13) AND regexp_full_match(right(typed, 13), '[0-7][0-9a-hjkmnp-tv-z]{12}')
  THEN {value} END;
