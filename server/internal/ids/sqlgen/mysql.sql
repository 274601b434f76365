{{- define "digits"}}{{range $i, $at := .Digits}}{{if $i}} | {{end}}(CAST(LOCATE(SUBSTR(typed, {{$i}} - 13, 1), '0123456789abcdefghjkmnpqrstvwxyz') - 1 AS UNSIGNED) << {{$at}}){{end}}{{end -}}
{{- $as := "DETERMINISTIC NO SQL RETURN" -}}
-- MySQL and MariaDB: IDs of the layout {{.Layout}}
-- Columns are BIGINT UNSIGNED, and times DATETIME(6) in UTC. Text that is not such an ID gives
-- NULL. No function makes IDs.

DROP FUNCTION IF EXISTS {{.Name}}_time;
CREATE FUNCTION {{.Name}}_time(id BIGINT UNSIGNED) RETURNS DATETIME(6) {{$as}}
  TIMESTAMPADD(MICROSECOND, {{.Time}}, '1970-01-01 00:00:00.000000');

DROP FUNCTION IF EXISTS {{.Name}}_node;
CREATE FUNCTION {{.Name}}_node(id BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED {{$as}}
  {{.Read "node"}};

DROP FUNCTION IF EXISTS {{.Name}}_seq;
CREATE FUNCTION {{.Name}}_seq(id BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED {{$as}}
  {{.Read "seq"}};
{{if .Sorted}}
-- A range: WHERE id BETWEEN {{.Name}}_first('2026-11-20') AND {{.Name}}_last('2026-11-21')
-- has the IDs from the first time up to the second, which is not included.
DROP FUNCTION IF EXISTS {{.Name}}_first;
CREATE FUNCTION {{.Name}}_first(t DATETIME(6)) RETURNS BIGINT UNSIGNED {{$as}}
  {{.First "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t)"}};

DROP FUNCTION IF EXISTS {{.Name}}_last;
CREATE FUNCTION {{.Name}}_last(t DATETIME(6)) RETURNS BIGINT UNSIGNED {{$as}}
  {{.Last "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t)"}};
{{else}}
-- IDs of this layout do not sort by time, so there are no functions for time ranges.
{{end}}
-- Typed text: {{.Name}}_to_typed('order', id), and {{.Name}}_from_typed('order', text) back. A column
-- of it is VARCHAR(77) CHARACTER SET ascii COLLATE ascii_bin: 73 other collations lose its order.
DROP FUNCTION IF EXISTS {{.Name}}_to_typed;
CREATE FUNCTION {{.Name}}_to_typed(prefix VARCHAR(63) CHARACTER SET utf8mb4, id BIGINT UNSIGNED) RETURNS VARCHAR(77) CHARACTER SET ascii COLLATE ascii_bin {{$as}}
  CONCAT(prefix, '_'{{range .Digits}}, SUBSTR('0123456789abcdefghjkmnpqrstvwxyz', ((id >> {{.}}) & 31) + 1, 1){{end}});

DROP FUNCTION IF EXISTS {{.Name}}_from_typed;
CREATE FUNCTION {{.Name}}_from_typed(prefix VARCHAR(63) CHARACTER SET utf8mb4, typed VARCHAR(255) CHARACTER SET utf8mb4) RETURNS BIGINT UNSIGNED {{$as}}
  CASE WHEN CAST(typed AS BINARY) = CAST(CONCAT(prefix, '_', RIGHT(typed, 13)) AS BINARY)
    AND RIGHT(typed, 13) COLLATE utf8mb4_bin REGEXP '^[0-9a-f][0-9a-hjkmnp-tv-z]{12}$'
  THEN {{template "digits" .}} END;
