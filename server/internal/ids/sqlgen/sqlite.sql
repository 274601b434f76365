{{- define "base32"}}{{range $i, $at := .Digits}}{{if $i}} || {{end}}substr('0123456789abcdefghjkmnpqrstvwxyz', ((id >> {{$at}}) & {{if $i}}31{{else}}15{{end}}) + 1, 1){{end}}{{end -}}
-- SQLite: IDs of the layout {{.Layout}}
-- SQLite has no stored functions. These are columns that it computes when they are read, and
-- conditions to copy. Replace orders, the table, and id, its column of IDs.

ALTER TABLE orders ADD COLUMN id_time TEXT AS (strftime('%Y-%m-%dT%H:%M:%fZ', ({{.Time}}) / 1000.0, 'unixepoch'));
ALTER TABLE orders ADD COLUMN id_node INTEGER AS ({{.Read "node"}});
ALTER TABLE orders ADD COLUMN id_seq INTEGER AS ({{.Read "seq"}});
-- The digits of typed text: 'order_' || id_base32
ALTER TABLE orders ADD COLUMN id_base32 TEXT AS ({{template "base32" .}});
{{if .Sorted}}
-- The rows of a time range, in Unix milliseconds: from :from up to :to, which is not included.
SELECT * FROM orders WHERE id BETWEEN {{.First ":from"}} AND {{.Last ":to"}};
{{else}}
-- IDs of this layout do not sort by time, so there is no condition for time ranges.
{{end}}
-- The row of a typed text. Text of another form or prefix is NULL, which finds no row.
SELECT * FROM orders WHERE id = CASE WHEN :typed = :prefix || '_' || substr(:typed, -13)
  AND substr(:typed, -13) GLOB '[0-9a-f]{{range $i, $at := .Digits}}{{if $i}}[0-9a-hjkmnp-tv-z]{{end}}{{end}}'
  THEN {{range $i, $at := .Digits}}{{if $i}} | {{end}}((instr('0123456789abcdefghjkmnpqrstvwxyz', substr(:typed, {{$i}} - 13, 1)) - 1) << {{$at}}){{end}} END;
