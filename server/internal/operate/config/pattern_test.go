package config

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// The rows come from Hazelcast itself.
func TestMatchConformance(t *testing.T) {
	data := must.Get(os.ReadFile("../../../../testdata/vectors/hazelcast-wildcard.json"))(t)
	var rows []struct {
		ID, Kind, Name string
		Patterns       []string
		Match          *string
		Error          *struct{ Class, Message string }
	}
	must.Do(t, json.Unmarshal(data, &rows))
	for _, row := range rows {
		got, ok, err := Match(row.Patterns, row.Name)
		if (err != nil) != (row.Error != nil) || ok != (row.Match != nil) || ok && got != *row.Match {
			t.Errorf("%s: Match(%q, %q) = %q, %v, %v, want %+v", row.ID, row.Patterns, row.Name, got, ok, err, row)
		}
	}
	t.Logf("vectors: hazelcast-wildcard.json %d rows", len(rows))
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		name     string
		patterns []string
		want     string
		ok       bool
	}{
		{"a", []string{"*", "a"}, "a", true},
		{"a", []string{"a*", "*a", "a"}, "a", true}, // an exact match wins over any ambiguity
		{"a*", []string{"a*"}, "a*", true},
		{"aba", []string{"ab*ba"}, "", false},
		{"abba", []string{"ab*ba", "a*"}, "ab*ba", true},
		{"orders", []string{"*", "*"}, "*", true}, // a repeated pattern is not ambiguous
		{"orders", []string{"a*", "o*s", "or*s", "o*rs"}, "", false},
		{"orders", []string{"o*", "*s", "or*"}, "or*", true}, // a longer pattern wins over two ambiguous ones
		{"x", nil, "", false},
		{"", []string{"*"}, "*", true},
	} {
		got, ok, err := Match(test.patterns, test.name)
		wantErr := test.name == "orders" && len(test.patterns) == 4
		if got != test.want || ok != test.ok || (err != nil) != wantErr {
			t.Errorf("Match(%q, %q) = %q, %v, %v, want %q, %v, error %v", test.patterns, test.name, got, ok, err, test.want, test.ok, wantErr)
		}
	}
}
