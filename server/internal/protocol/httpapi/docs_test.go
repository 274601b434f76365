package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

func readDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/http.md")
	if os.IsNotExist(err) {
		if _, err := os.Stat("../../../../go.work"); err != nil {
			t.Skip("the module stands alone, without the repository's docs")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocsProblems: the page lists exactly the kinds of problems, with their
// statuses.
func TestDocsProblems(t *testing.T) {
	statuses := make(map[string]int)
	for k := range service.NumKinds {
		statuses[k.String()] = k.Status()
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `urn:firn:problem:([^`]+)` \\| ([0-9]+) \\| .+ \\|$").FindAllStringSubmatch(readDocs(t), -1) {
		listed[m[1]] = true
		if got := fmt.Sprint(statuses[m[1]]); got != m[2] {
			t.Errorf("docs/http.md says that %s is %s: it is %s", m[1], m[2], got)
		}
	}
	for name := range statuses {
		if !listed[name] {
			t.Errorf("docs/http.md does not list %s", name)
		}
	}
}

// TestDocsLimits: the pages have the actual limits.
func TestDocsLimits(t *testing.T) {
	security, err := os.ReadFile("../../../../docs/security.md")
	text := readDocs(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| IDs of a request | %d,%03d | `--max-ids-per-call` |", service.MaxCount/1000, service.MaxCount%1000),
		fmt.Sprintf("| time until the turn of a request for IDs | %v s,", service.DefaultLimit.Seconds()),
		fmt.Sprintf("| header | %d KiB | `--max-header` |", service.DefaultHeader>>10),
		fmt.Sprintf("| time for a request, and for the message of a gRPC call | %v s | `--read-timeout` |", service.DefaultRead.Seconds()),
		fmt.Sprintf("| time to read a piece of an answer | %v s | `--write-timeout` |", service.DefaultWrite.Seconds()),
		fmt.Sprintf("| sequencers that are open | %d,%03d | `--max-sequencers` |", service.DefaultMaxNames/1000, service.DefaultMaxNames%1000),
		fmt.Sprintf("| idle connection of HTTP and gRPC | %v min | `--idle-timeout` |", service.DefaultIdle.Minutes()),
	} {
		if !strings.Contains(string(security), want) {
			t.Errorf("docs/security.md does not say %q", want)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("keeps %d,%03d names", service.DefaultMaxNames/1000, service.DefaultMaxNames%1000),
		fmt.Sprintf("such as writes for %v s because its disk is full", silentMost.Seconds()),
		fmt.Sprintf("%d in a millisecond", firn.Default().MaxSeq()+1),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/http.md does not say %q", want)
		}
	}
}
