{{- define "duckdb-digits"}}{{range $i, $at := .Digits}}{{if $i}} || {{end}}substr('0123456789abcdefghjkmnpqrstvwxyz', (((id >> {{$at}}) & {{if $i}}31{{else}}15{{end}}) + 1)::INTEGER, 1){{end}}{{end -}}
-- DuckDB: IDs of the layout {{.Layout}}
-- Columns are BIGINT, UBIGINT or HUGEINT with IDs below 2^63, and times TIMESTAMP in UTC.
-- Text that is not such an ID gives NULL. No macro makes IDs.

CREATE OR REPLACE MACRO {{.Name}}_time(id) AS make_timestamp(({{.Time}})::BIGINT);

CREATE OR REPLACE MACRO {{.Name}}_node(id) AS ({{.Read "node"}})::BIGINT;

CREATE OR REPLACE MACRO {{.Name}}_seq(id) AS ({{.Read "seq"}})::BIGINT;
{{if .Sorted}}
-- A range: WHERE id BETWEEN {{.Name}}_first('2026-11-20') AND {{.Name}}_last('2026-11-21')
-- has the IDs from the first time up to the second, which is not included.
CREATE OR REPLACE MACRO {{.Name}}_first(t) AS {{.First "epoch_us(t::TIMESTAMP)"}};

CREATE OR REPLACE MACRO {{.Name}}_last(t) AS {{.Last "epoch_us(t::TIMESTAMP)"}};
{{else}}
-- IDs of this layout do not sort by time, so there are no macros for time ranges.
{{end}}
-- Typed text: {{.Name}}_to_typed('order', id), and {{.Name}}_from_typed('order', text) back.
CREATE OR REPLACE MACRO {{.Name}}_to_typed(prefix, id) AS prefix || '_' || {{template "duckdb-digits" .}};

CREATE OR REPLACE MACRO {{.Name}}_from_typed(prefix, typed) AS
  CASE WHEN typed = prefix || '_' || right(typed, 13) AND regexp_full_match(right(typed, 13), '[0-7][0-9a-hjkmnp-tv-z]{12}')
  THEN {{range $i, $at := .Digits}}{{if $i}} | {{end}}((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(typed, {{$i}} - 13, 1)) - 1)::BIGINT << {{$at}}){{end}} END;
