{{- $id := "bigint"}}{{if .Wide}}{{$id = "uuid"}}{{end -}}
{{- $as := "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN" -}}
-- PostgreSQL: IDs of the layout {{.Layout}}
-- Text that is not such an ID gives NULL. No function makes IDs.
-- Functions find each other and pgcrypto in any schema, with any search_path, so they also
-- work in indexes, generated columns, checks and restores. They need PostgreSQL 14 or newer.
{{if .Wide}}
CREATE OR REPLACE FUNCTION {{.Name}}_hi(id uuid) RETURNS bigint {{$as}}
  ('x' || encode(substring(uuid_send(id) FROM 1 FOR 8), 'hex'))::bit(64)::bigint;

CREATE OR REPLACE FUNCTION {{.Name}}_lo(id uuid) RETURNS bigint {{$as}}
  ('x' || encode(substring(uuid_send(id) FROM 9), 'hex'))::bit(64)::bigint;

CREATE OR REPLACE FUNCTION {{.Name}}_uuid(hi bigint, lo bigint) RETURNS uuid {{$as}}
  encode(int8send(hi) || int8send(lo), 'hex')::uuid;
{{end}}
-- The time in microseconds since 1970, and as a timestamp.
CREATE OR REPLACE FUNCTION {{.Name}}_micros(id {{$id}}) RETURNS bigint {{$as}}
  {{.Time}};

CREATE OR REPLACE FUNCTION {{.Name}}_time(id {{$id}}) RETURNS timestamptz {{$as}}
  (timestamp '1970-01-01' + {{.Name}}_micros(id) / 1000000 * interval '1 second'
    + {{.Name}}_micros(id) % 1000000 * interval '1 microsecond') AT TIME ZONE 'UTC';

CREATE OR REPLACE FUNCTION {{.Name}}_node(id {{$id}}) RETURNS bigint {{$as}}
  {{.Read "node"}}::bigint;

CREATE OR REPLACE FUNCTION {{.Name}}_seq(id {{$id}}) RETURNS bigint {{$as}}
  {{.Read "seq"}}::bigint;
{{if .Sorted}}
-- A range: WHERE id BETWEEN {{.Name}}_first('2026-11-20Z') AND {{.Name}}_last('2026-11-21Z')
-- has the IDs from the first time up to the second, which is not included.
CREATE OR REPLACE FUNCTION {{.Name}}_at(micros bigint) RETURNS {{$id}} {{$as}}
  {{.First "micros"}};

CREATE OR REPLACE FUNCTION {{.Name}}_before(micros bigint) RETURNS {{$id}} {{$as}}
  {{.Last "micros"}};

CREATE OR REPLACE FUNCTION {{.Name}}_first(t timestamptz) RETURNS {{$id}} {{$as}}
  {{.Name}}_at((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint);

CREATE OR REPLACE FUNCTION {{.Name}}_last(t timestamptz) RETURNS {{$id}} {{$as}}
  {{.Name}}_before((extract(epoch FROM t AT TIME ZONE 'UTC') * 1000000)::bigint);
{{else}}
-- IDs of this layout do not sort by time, so there are no functions for time ranges.
{{end}}
-- Typed text: {{.Name}}_to_typed('order', id), and {{.Name}}_from_typed('order', text) back. A column
-- of it is text COLLATE "C": the rules of some languages sort aa, ch or z elsewhere.
CREATE OR REPLACE FUNCTION {{.Name}}_to_typed(prefix text, id {{$id}}) RETURNS text {{$as}}
  (SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', substring(b FROM 5 * i + 1 FOR 5)::integer + 1, 1), '' ORDER BY i)
  FROM (SELECT {{if .Wide}}B'00' || {{.Name}}_hi(id)::bit(64) || {{.Name}}_lo(id)::bit(64){{else}}B'0' || id::bit(64){{end}} AS b) AS bits, generate_series(0, {{if .Wide}}25{{else}}12{{end}}) AS i);

CREATE OR REPLACE FUNCTION {{.Name}}_from_typed(prefix text, typed text) RETURNS {{$id}} {{$as}}
  (SELECT {{if .Wide}}{{.Name}}_uuid(substring(b FROM 3 FOR 64)::bit(64)::bigint, substring(b FROM 67)::bit(64)::bigint){{else}}substring(b FROM 2)::bit(64)::bigint{{end}}
  FROM (SELECT string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', digit) - 1)::bit(5)::text, '' ORDER BY i)::varbit AS b
    FROM regexp_split_to_table(right(typed, {{if .Wide}}26{{else}}13{{end}}), '') WITH ORDINALITY AS digits (digit, i)) AS bits
  WHERE typed = prefix || '_' || right(typed, {{if .Wide}}26{{else}}13{{end}})
    AND right(typed, {{if .Wide}}26{{else}}13{{end}}) ~ '^[0-{{if .Wide}}7][0-9a-hjkmnp-tv-z]{25}{{else}}9a-f][0-9a-hjkmnp-tv-z]{12}{{end}}$');
{{with .Veil}}
-- Veiled IDs need the extension: CREATE EXTENSION pgcrypto;
-- {{$.Name}}_to_typed('v1', {{$.Name}}_veil(id, key, 'orders')) is the text with the key number 1, and
-- {{$.Name}}_unveil({{$.Name}}_from_typed('v1', text), key, 'orders') the ID. The key is a bytea of 16, 24 or 32 bytes:
-- pass it as a parameter, and do not let the server log parameters.
CREATE OR REPLACE FUNCTION {{$.Name}}_ff1(halves bigint[], key bytea, sequencer text, back boolean) RETURNS bigint[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  tweak bytea := convert_to(sequencer || '/{{.N}}', 'UTF8');
  head bytea := '\x{{.Head}}'::bytea || int4send(length(tweak)) || tweak
    || substring('\x000000000000000000000000000000'::bytea FROM 1 FOR 15 - (length(tweak) + {{.Bytes}}) % 16);
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
      mask := CASE WHEN i % 2 = 0 THEN {{.MaskU}} ELSE {{.MaskV}} END;
      EXECUTE encrypt INTO hashed USING head || set_byte('\x00', 0, i) || substring(int8send(CASE WHEN back THEN a ELSE b END) FROM 9 - {{.Bytes}}), key;
      added := ('x' || encode(substring(hashed FROM length(hashed) - 16 + {{.Out}} - 7 FOR 8), 'hex'))::bit(64)::bigint & mask;
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
{{range $i, $verb := .Verbs}}
{{if $.Wide -}}
-- The halves are the 122 bits of a UUID besides version and variant.
CREATE OR REPLACE FUNCTION {{$.Name}}_{{$verb}}(id uuid, key bytea, sequencer text) RETURNS uuid {{$as}}
  (SELECT {{$.Name}}_uuid(
    ((h[1] << 3) & ~65535) | {{if $i}}28672{{else}}32768{{end}} | ((h[1] >> 1) & 4095),
    (h[1] & 1) << 61 | h[2] | bigint '-9223372036854775808')
  FROM {{$.Name}}_hi(id) AS hi, {{$.Name}}_lo(id) AS lo, {{$.Name}}_ff1(ARRAY[
    ((((hi >> 16) & 281474976710655) << 12) | (hi & 4095)) << 1 | ((lo >> 61) & 1),
    lo & {{$.Veil.MaskV}}], key, sequencer, {{if $i}}true{{else}}false{{end}}) AS h
  WHERE (hi >> 12) & 15 = {{if $i}}8{{else}}7{{end}} AND (lo >> 62) & 3 = 2 AND (hi & ~61440 <> 0 OR lo & 4611686018427387903 <> 0));
{{- else -}}
CREATE OR REPLACE FUNCTION {{$.Name}}_{{$verb}}(id bigint, key bytea, sequencer text) RETURNS bigint {{$as}}
  (SELECT h[1] << {{$.Veil.V}} | h[2]
  FROM {{$.Name}}_ff1(ARRAY[(id >> {{$.Veil.V}}) & {{$.Veil.MaskU}}, id & {{$.Veil.MaskV}}], key, sequencer, {{if $i}}true{{else}}false{{end}}) AS h
  WHERE {{if eq $.Veil.N 53}}id BETWEEN 1 AND 9007199254740991{{else if eq $.Veil.N 63}}id > 0{{else}}id <> 0{{end}});
{{- end}}
{{end}}{{end}}