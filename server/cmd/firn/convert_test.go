package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

// TestFormatNames: completions, help and pages name each format that has a name
// of its own.
func TestFormatNames(t *testing.T) {
	texts := map[string]string{"completions": strings.Join(formatNames, " "), "firn convert --help": newConvert(new(app)).Long}
	for _, file := range []string{"../../internal/protocol/httpapi/openapi.yaml", "../../../docs/http.md"} {
		text, err := os.ReadFile(file)
		if err != nil && !strings.Contains(file, "docs") { // the module may stand alone
			t.Fatal(err)
		}
		if err == nil {
			texts[file] = string(text)
		}
	}
	for _, f := range []firn.Format{firn.Decimal, firn.Hex, firn.Binary, firn.Base32, firn.Base36, firn.Base58, firn.Base62, firn.UUID, firn.Raw} {
		for where, text := range texts {
			if !regexp.MustCompile(`\b` + f.String() + `\b`).MatchString(text) {
				t.Errorf("%s: no format %v", where, f)
			}
		}
	}
}
