package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the table of keys in docs/config.md")

// TestConfigDocs: docs/config.md has every key as it is, and no other, and every flag that
// a file can say is a key.
func TestConfigDocs(t *testing.T) {
	const page = "../../../docs/config.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	_, flags := servingFlags()
	var b strings.Builder
	b.WriteString("| key | flag | default | meaning |\n|---|---|---|---|\n")
	keyOf := make(map[string]bool)
	traces, err := os.ReadFile("../../../docs/tracing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range configKeys {
		if row := "| `" + k.key + "` | `--" + k.flag + "` |"; strings.HasPrefix(k.key, "tracing.") && !strings.Contains(string(traces), row) {
			t.Errorf("docs/tracing.md does not have %s", row)
		}
		f := flags.Lookup(k.flag)
		if f == nil {
			t.Fatalf("the key %s has no flag --%s", k.key, k.flag)
		}
		keyOf[k.flag] = true
		_, usage := pflag.UnquoteUsage(f)
		byDefault := strings.Trim(f.DefValue, `"[]`)
		if byDefault != "" {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s |\n", k.key, k.flag, byDefault, usage)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !keyOf[f.Name] && f.Name != "allow-local-mac" && f.Name != "help" { // it is of one machine
			t.Errorf("the flag --%s has no key", f.Name)
		}
	})
	text := string(data)
	from := strings.Index(text, "| key | flag |")
	if from < 0 {
		t.Fatal("docs/config.md has no table of keys")
	}
	to := from + strings.Index(text[from:], "\n\n") + 1
	if text[from:to] == b.String() {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(text[:from]+b.String()+text[to:]), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/config.md is not as the keys are: go test ./cmd/firn -run TestConfigDocs -update")
}
