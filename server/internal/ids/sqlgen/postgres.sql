-- PostgreSQL: IDs of the layout {layout}
-- Text that is not such an ID gives NULL. No function makes IDs.
-- Functions find each other and pgcrypto in any schema, with any search_path, so they also
-- work in indexes, generated columns, checks and restores. They need PostgreSQL 14 or newer.
--- wide

CREATE OR REPLACE FUNCTION {name}_hi(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  ('x' || encode(substring(uuid_send(id) FROM 1 FOR 8), 'hex'))::bit(64)::bigint;

CREATE OR REPLACE FUNCTION {name}_lo(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  ('x' || encode(substring(uuid_send(id) FROM 9), 'hex'))::bit(64)::bigint;

CREATE OR REPLACE FUNCTION {name}_uuid(hi bigint, lo bigint) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  encode(int8send(hi) || int8send(lo), 'hex')::uuid;
--- always

-- The time in microseconds since 1970, and as a timestamp.
CREATE OR REPLACE FUNCTION {name}_micros(id {id}) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {time};

CREATE OR REPLACE FUNCTION {name}_time(id {id}) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (timestamp '1970-01-01' + {name}_micros(id) / 1000000 * interval '1 second'
    + {name}_micros(id) % 1000000 * interval '1 microsecond') AT TIME ZONE 'UTC';

CREATE OR REPLACE FUNCTION {name}_node(id {id}) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {node}::bigint;

CREATE OR REPLACE FUNCTION {name}_seq(id {id}) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {seq}::bigint;
--- sorted

-- A range: WHERE id BETWEEN {name}_first('2026-11-20Z') AND {name}_last('2026-11-21Z')
-- has the IDs from the first time up to the second, which is not included.
CREATE OR REPLACE FUNCTION {name}_at(micros bigint) RETURNS {id} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {first};

CREATE OR REPLACE FUNCTION {name}_before(micros bigint) RETURNS {id} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {last};

CREATE OR REPLACE FUNCTION {name}_first(t timestamptz) RETURNS {id} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {name}_at((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint);

CREATE OR REPLACE FUNCTION {name}_last(t timestamptz) RETURNS {id} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  {name}_before((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint);
--- unsorted

-- IDs of this layout do not sort by time, so there are no functions for time ranges.
--- always

-- Typed text: {name}_to_typed('order', id), and {name}_from_typed('order', text) back. A column
-- of it is text COLLATE "C": the rules of some languages sort aa, ch or z elsewhere.
CREATE OR REPLACE FUNCTION {name}_to_typed(prefix text, id {id}) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', substring(b FROM 5 * i + 1 FOR 5)::integer + 1, 1), '' ORDER BY i)
--- wide
  FROM (SELECT B'00' || {name}_hi(id)::bit(64) || {name}_lo(id)::bit(64) AS b) AS bits, generate_series(0, 25) AS i);
--- narrow
  FROM (SELECT B'0' || id::bit(64) AS b) AS bits, generate_series(0, 12) AS i);
--- always

CREATE OR REPLACE FUNCTION {name}_from_typed(prefix text, typed text) RETURNS {id} LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
--- wide
  (SELECT {name}_uuid(substring(b FROM 3 FOR 64)::bit(64)::bigint, substring(b FROM 67)::bit(64)::bigint)
--- narrow
  (SELECT substring(b FROM 2)::bit(64)::bigint
--- always
  FROM (SELECT string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', digit) - 1)::bit(5)::text, '' ORDER BY i)::varbit AS b
    FROM regexp_split_to_table(right(typed, {length}), '') WITH ORDINALITY AS digits (digit, i)) AS bits
  WHERE typed = prefix || '_' || right(typed, {length})
--- wide
    AND right(typed, 26) ~ '^[0-7][0-9a-hjkmnp-tv-z]{25}$');
--- narrow
    AND right(typed, 13) ~ '^[0-9a-f][0-9a-hjkmnp-tv-z]{12}$');
--- veil

-- Veiled IDs need the extension: CREATE EXTENSION pgcrypto;
-- {name}_to_typed('v1', {name}_veil(id, key, 'orders')) is the text with the key number 1, and
-- {name}_unveil({name}_from_typed('v1', text), key, 'orders') the ID. The key is a bytea of 16, 24 or 32 bytes:
-- pass it as a parameter, and do not let the server log parameters.
CREATE OR REPLACE FUNCTION {name}_ff1(halves bigint[], key bytea, sequencer text, back boolean) RETURNS bigint[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  tweak bytea := convert_to(sequencer || '/{N}', 'UTF8');
  head bytea := '\x{head}'::bytea || int4send(length(tweak)) || tweak
    || substring('\x000000000000000000000000000000'::bytea FROM 1 FOR 15 - (length(tweak) + {bytes}) % 16);
  a bigint := halves[1];
  b bigint := halves[2];
  hashed bytea;
  mask bigint;
  added bigint;
  i integer;
  encrypt text := (SELECT format('SELECT %s.encrypt($1, $2, ''aes-cbc/pad:none'')', extnamespace::regnamespace)
    FROM pg_extension WHERE extname = 'pgcrypto');
BEGIN
  IF encrypt IS NULL THEN
    RAISE EXCEPTION 'veiled IDs need the extension pgcrypto: CREATE EXTENSION pgcrypto';
  END IF;
  IF length(key) NOT IN (16, 24, 32) THEN
    RAISE EXCEPTION 'the key has % bytes: it must have 16, 24 or 32', length(key);
  END IF;
  LOOP
    FOR step IN 0..9 LOOP
      i := CASE WHEN back THEN 9 - step ELSE step END;
      mask := CASE WHEN i % 2 = 0 THEN {maskU} ELSE {maskV} END;
      EXECUTE encrypt INTO hashed USING head || set_byte('\x00', 0, i) || substring(int8send(CASE WHEN back THEN a ELSE b END) FROM 9 - {bytes}), key;
      added := ('x' || encode(substring(hashed FROM length(hashed) - 16 + {out} - 7 FOR 8), 'hex'))::bit(64)::bigint & mask;
      IF back THEN
        halves := ARRAY[(b - added) & mask, a];
      ELSE
        halves := ARRAY[b, (a + added) & mask];
      END IF;
      a := halves[1];
      b := halves[2];
    END LOOP;
    EXIT WHEN a <> 0 OR b <> 0;
  END LOOP;
  RETURN halves;
END $$;
--- veil wide

-- The halves are the 122 bits of a UUID besides version and variant.
CREATE OR REPLACE FUNCTION {name}_veil(id uuid, key bytea, sequencer text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (SELECT {name}_uuid(
    ((h[1] << 3) & ~65535) | 32768 | ((h[1] >> 1) & 4095),
    (h[1] & 1) << 61 | h[2] | bigint '-9223372036854775808')
  FROM {name}_hi(id) AS hi, {name}_lo(id) AS lo, {name}_ff1(ARRAY[
    ((((hi >> 16) & 281474976710655) << 12) | (hi & 4095)) << 1 | ((lo >> 61) & 1),
    lo & {maskV}], key, sequencer, false) AS h
  WHERE (hi >> 12) & 15 = 7 AND (lo >> 62) & 3 = 2 AND (hi & ~61440 <> 0 OR lo & 4611686018427387903 <> 0));

-- The halves are the 122 bits of a UUID besides version and variant.
CREATE OR REPLACE FUNCTION {name}_unveil(id uuid, key bytea, sequencer text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (SELECT {name}_uuid(
    ((h[1] << 3) & ~65535) | 28672 | ((h[1] >> 1) & 4095),
    (h[1] & 1) << 61 | h[2] | bigint '-9223372036854775808')
  FROM {name}_hi(id) AS hi, {name}_lo(id) AS lo, {name}_ff1(ARRAY[
    ((((hi >> 16) & 281474976710655) << 12) | (hi & 4095)) << 1 | ((lo >> 61) & 1),
    lo & {maskV}], key, sequencer, true) AS h
  WHERE (hi >> 12) & 15 = 8 AND (lo >> 62) & 3 = 2 AND (hi & ~61440 <> 0 OR lo & 4611686018427387903 <> 0));
--- veil narrow

CREATE OR REPLACE FUNCTION {name}_veil(id bigint, key bytea, sequencer text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (SELECT h[1] << {V} | h[2]
  FROM {name}_ff1(ARRAY[(id >> {V}) & {maskU}, id & {maskV}], key, sequencer, false) AS h
  WHERE {veilable});

CREATE OR REPLACE FUNCTION {name}_unveil(id bigint, key bytea, sequencer text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
  (SELECT h[1] << {V} | h[2]
  FROM {name}_ff1(ARRAY[(id >> {V}) & {maskU}, id & {maskV}], key, sequencer, true) AS h
  WHERE {veilable});
