package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSample tests every mutant of a small package: testdata/sample/results.txt
// lists them and the results.
func TestSample(t *testing.T) {
	t.Setenv("GOWORK", "off")
	want, err := os.ReadFile("testdata/sample/results.txt")
	if err != nil {
		t.Fatal(err)
	}
	survivors, err := filepath.Abs("testdata/sample/survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata/sample")
	source, err := os.ReadFile("sample.go")
	if err != nil {
		t.Fatal(err)
	}
	o := options{dir: t.TempDir(), survivors: survivors, parallel: 2}
	if err := o.run(t.Context(), []string{"."}); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(o.file("results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []outcome
	if err := json.Unmarshal(b, &outcomes); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, out := range outcomes {
		got.WriteString(out.Result + " " + out.Mutant + "\n")
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
	if after, err := os.ReadFile("sample.go"); err != nil || !bytes.Equal(after, source) {
		t.Errorf("the source was changed, or %v", err)
	}

	// Without the explanations, with one for a mutant that no longer exists,
	// and with one for a caught mutant.
	o.again, o.survivors = true, ""
	if err := o.run(t.Context(), []string{"."}); err == nil {
		t.Error("survivors that are not explained are no error")
	}
	text, err := os.ReadFile(survivors)
	if err != nil {
		t.Fatal(err)
	}
	o.survivors = filepath.Join(o.dir, "survivors.txt")
	for what, more := range map[string]string{
		"of a mutant that is gone":        "sample.go Gone: true x\n\tIt was there.\n",
		"of caught mutants beside others": "~ sample.go Sum: .* n%2 != 0\n\tIt is wrong.\n",
	} {
		if err := os.WriteFile(o.survivors, append(text[:len(text):len(text)], "\n"+more...), 0o644); err != nil {
			t.Fatal(err)
		}
		o.again = false
		if err := o.run(t.Context(), []string{"."}); err == nil {
			t.Errorf("an explanation %s is no error", what)
		}
	}
}

// TestSlices: runs that end early test every mutant in turn.
func TestSlices(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Chdir("testdata/sample")
	o := options{dir: t.TempDir(), survivors: "survivors.txt", parallel: 1, time: 1, only: "Cut:"} // one mutant in each run
	tested := func() int {
		b, err := os.ReadFile(o.file("results.json"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte(`"Mutant"`))
	}
	for n := 1; n <= 7; n++ {
		if err := o.run(t.Context(), []string{"."}); err != nil {
			t.Fatal(err)
		}
		if got, want := tested(), min(n, 5); got != want {
			t.Errorf("after %d runs %d mutants were tested, want %d", n, got, want)
		}
	}
}

func TestReadSurvivors(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n\twhy\n\tit is\nc: d\n~ e: .\n\tso\n": "",
		"\twhy\n":                "a reason without a mutant",
		"a: b\n":                 "no reason: a: b",
		"a: b\n\tx\na: b\n\ty\n": "explained twice: a: b",
		"~ a: (b\n\tx\n":         "missing closing )",
	} {
		file := filepath.Join(t.TempDir(), "survivors.txt")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		explained, err := readSurvivors(file)
		switch {
		case want == "":
			for key, reason := range map[string]string{"a: b": "why it is", "c: d": "so", "e: f": "so", "e: g": "so", "e: fg": "", "de: f": "", "a: c": ""} {
				if got := explained.of(key); err != nil || got != reason {
					t.Errorf("readSurvivors(%q) explains %s by %q, %v; want %q", text, key, got, err, reason)
				}
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("readSurvivors(%q): error %v, want %q", text, err, want)
		}
	}
}
