package inspect

import (
	"slices"
	"strings"
	"testing"
)

// findAll reads a whole text.
func findAll(c *Column, text string) (ids []string, err error) {
	for line := range strings.Lines(text) {
		id, ok, e := c.Find(strings.TrimSuffix(line, "\n"))
		if e != nil {
			return ids, e
		}
		if ok {
			ids = append(ids, id)
		}
	}
	if id, ok := c.End(); ok {
		ids = append(ids, id)
	}
	return ids, nil
}

// TestColumn reads columns as other programs write them. 5 and 6 are the IDs.
func TestColumn(t *testing.T) {
	for _, tt := range []struct{ about, name, from, text, header string }{
		{"plain", "", "auto", "5\n6\n", ""},
		{"spaces, tabs, carriage returns", "", "auto", "  5\t\r\n\n \n\t6  ", ""},
		{"a byte order mark", "", "auto", "\ufeff5\n6", ""},
		{"a no-break space", "", "auto", "\u00a05\u00a0\n6", ""},
		{"quotes", "", "auto", "\"5\"\n'6'", ""},
		{"a list of SQL", "", "auto", "(\n'5',\n'6'\n);", ""},
		{"a list of JSON", "", "auto", "[\n  \"5\",\n  \"6\"\n]\n", ""},
		{"nulls", "", "auto", "NULL\n5\n\\N\n6", ""},
		{"a header", "", "auto", "order_id\n5\n6", "order_id"},
		{"a header with a space", "", "auto", "Order ID\n5\n6", "Order ID"},
		{"a header in quotes", "", "auto", "\"orderId\"\n\"5\"\n\"6\"", "orderId"},
		{"a header of psql without a name", "", "auto", "?column?\n5\n6", "?column?"},
		{"a header that could be base 62", "", "auto", "customerid\n5\n6", "customerid"},
		{"a header of another alphabet", "", "auto", "номер\n5\n6", "номер"},
		{"a header of an encoding that fits it", "", "base62", "id\n5\n6", "id"},
		{"a header again", "", "auto", "id\n5\nid\n6", "id"},
		{"psql", "", "auto", " id \n----\n 5\n 6\n(2 rows)\n", "id"},
		{"psql in German", "", "auto", " id \n----\n 5\n 6\n(2 Zeilen)\n", "id"},
		{"psql with lines", "", "auto", "┌────┐\n│ id │\n├────┤\n│ 5  │\n│ 6  │\n└────┘\n(2 rows)", "id"},
		{"mysql", "", "auto", "+----+\n| id |\n+----+\n| 5 |\n| 6 |\n+----+\n2 rows in set (0.00 sec)", "id"},
		{"sqlite", "", "auto", "id\n--\n5\n6", "id"},
		{"Markdown", "", "auto", "| id |\n|:---|\n| 5 |\n| 6 |", "id"},
		{"CSV by name", "id", "auto", "name,id\na,5\nb,6", "id"},
		{"CSV by number, no header", "2", "auto", "a,5\nb,6", ""},
		{"CSV by number", "2", "auto", "name,id\na,5\nb,6", "id"},
		{"CSV of one column", "id", "auto", "id\n5\n6", "id"},
		{"CSV in quotes", "id", "auto", "\"name\",\"id\"\n\"a,\"\"x\"\", b\",\"5\"\n\"b\nc\",\"6\"", "id"},
		{"tabs", "id", "auto", "a b\tid\n1,2\t5\n\t6", "id"},
		{"semicolons", "id", "auto", "price;id\n1,5;5\n2,5;6", "id"},
		{"psql by name", "id", "auto", " name | id \n------+----\n a    |  5\n      |  6\n(2 rows)", "id"},
		{"psql unaligned", "id", "auto", "name|id\n|5\nb|6\n(2 rows)", "id"},
		{"mysql by name", "id", "auto", "+---+----+\n| n | id |\n+---+----+\n| a | 5 |\n|   | 6 |\n+---+----+", "id"},
		{"a cell without a value", "id", "auto", "name,id\na,5\nb,\nc,6", "id"},
	} {
		from, err := ParseEncoding(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		c := Column{Name: tt.name, From: from}
		got, err := findAll(&c, tt.text)
		if err != nil || !slices.Equal(got, []string{"5", "6"}) || c.Header != tt.header {
			t.Errorf("%s: %q, header %q, %v; want 5 and 6, header %q", tt.about, got, c.Header, err, tt.header)
		}
	}
}

// TestColumnKeeps wants texts that are not furniture, to be reported.
func TestColumnKeeps(t *testing.T) {
	for _, tt := range []struct{ from, text, want string }{
		{"auto", "foo", "foo"},
		{"auto", "foo\nbar", "bar"},
		{"auto", "(", ""},
		{"auto", "(5)", "5"},
		{"auto", "-5", "-5"},
		{"auto", "5\nfoo", "5 foo"},
		{"auto", "8fl90WeizA\n8fl90WeizB", "8fl90WeizA 8fl90WeizB"},
		{"auto", "AbcDefGhiJk\n8fl90WeizB", "AbcDefGhiJk 8fl90WeizB"},
		{"base62", "customer\n8fl90WeizB", "customer 8fl90WeizB"},
		{"auto", "0190163d-8694-739b-aea5-966c26f8ad91", "0190163d-8694-739b-aea5-966c26f8ad91"},
		{"auto", "{0190163d-8694-739b-aea5-966c26f8ad91}", "0190163d-8694-739b-aea5-966c26f8ad91"},
	} {
		from, err := ParseEncoding(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		got, err := findAll(&Column{From: from}, tt.text)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func FuzzColumn(f *testing.F) {
	f.Add("id", "name,id\n\"a\",5\n")
	f.Add("2", "| a | b |\n+--+\n")
	f.Add("", "(\n'5',\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		ids, _ := findAll(&Column{Name: name}, text)
		for _, id := range ids {
			if id == "" || strings.Trim(id, " \t\r\n") != id {
				t.Errorf("column %q of %q: the ID %q", name, text, id)
			}
		}
	})
}

// TestPasted finds IDs in what people paste.
func TestPasted(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", " 1\n2\r\n3 ": "1 2 3", `["1","2"]`: "1 2", "1, 2; 3": "1 2 3", "| 1 | 2 |": "1 2", "('1'),('2')": "1 2",
		"\ufeff1\u00a02": "1 2", "0190163d-8694-739b-aea5-966c26f8ad91": "0190163d-8694-739b-aea5-966c26f8ad91", "": "", "<1>": "1",
		"1 2\n3\n4, 5": "1 2 3 4 5", "order_id\n5\nNULL\n6": "5 6", " id \n----\n 5\n 6\n(2 rows)\n": "5 6", "foo": "foo", "1\n2\n3\n4\n5\n6\n7": "1 2 3 4 5 6",
		"[\n  \"5\",\n  \"6\"\n]": "5 6",
	} {
		if got := strings.Join(Pasted(text, 6), " "); got != want {
			t.Errorf("Pasted(%q) = %q, want %q", text, got, want)
		}
	}
}
