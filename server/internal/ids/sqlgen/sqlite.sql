-- SQLite: IDs of the layout {layout}
-- SQLite has no stored functions. These are columns that it computes when they are read, and
-- conditions to copy. Replace orders, the table, and id, its column of IDs.

ALTER TABLE orders ADD COLUMN id_time TEXT AS (strftime('%Y-%m-%dT%H:%M:%fZ', ({time}) / 1000.0, 'unixepoch'));
ALTER TABLE orders ADD COLUMN id_node INTEGER AS ({node});
ALTER TABLE orders ADD COLUMN id_seq INTEGER AS ({seq});
-- The digits of typed text: 'order_' || id_base32
ALTER TABLE orders ADD COLUMN id_base32 TEXT AS ({digits});
--- sorted

-- The rows of a time range, in Unix milliseconds: from :from up to :to, which is not included.
SELECT * FROM orders WHERE id BETWEEN {first} AND {last};
--- unsorted

-- IDs of this layout do not sort by time, so there is no condition for time ranges.
--- always

-- The row of a typed text. Text of another form or prefix is NULL, which finds no row.
SELECT * FROM orders WHERE id = CASE WHEN :typed = :prefix || '_' || substr(:typed, -13)
  AND substr(:typed, -13) GLOB '[0-9a-f][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z]'
  THEN {value} END;
