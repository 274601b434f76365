package httpapi

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

var update = flag.Bool("update", false, "rewrite the answers in docs/http.md")

const docsFile = "../../../../docs/http.md"

func readDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
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

// TestDocs: every command in docs/http.md prints what the page shows. The
// server and the commands run in a synctest bubble at noon of a fixed day, so
// that the answers are always the same.
func TestDocs(t *testing.T) {
	text := readDocs(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(day))
		s, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout("default,even=0")}) // the same IDs each time
		if err != nil {
			t.Fatal(err)
		}
		server := NewServer(NewHandler(Config{Backend: s}))
		listener := nettest.NewPipes()
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()

		var out strings.Builder
		commands, inside := 0, false
		for line := range strings.Lines(text) {
			switch {
			case line == "```console\n":
				inside = true
			case line == "```\n":
				inside = false
			case inside && strings.HasPrefix(line, "$ "):
				commands++
				out.WriteString(line)
				answer, err := runCurl(listener, strings.TrimSpace(line[2:]))
				if err != nil {
					t.Errorf("%s%v", line, err)
				}
				out.WriteString(answer)
				continue
			case inside:
				continue
			}
			out.WriteString(line)
		}
		server.Close()
		<-served
		if commands < 6 {
			t.Errorf("found %d commands, want at least 6: is the page still there?", commands)
		}
		switch {
		case out.String() == text:
		case *update:
			if err := os.WriteFile(docsFile, []byte(out.String()), 0o644); err != nil {
				t.Error(err)
			}
		default:
			want := strings.Split(out.String(), "\n")
			for i, got := range strings.Split(text, "\n") {
				if i >= len(want) || got != want[i] {
					t.Fatalf("line %d is\n%s\nwant\n%s\n(go test ./httpapi -run TestDocs -update rewrites the page)", i+1, got, want[min(i, len(want)-1)])
				}
			}
			t.Error("the page ends too early")
		}
	})
}

// words are those of a command, some in single quotes.
var words = regexp.MustCompile(`'[^']*'|[^ ']+`)

// runCurl runs a curl command with the flags that the page uses.
func runCurl(listener *nettest.Pipes, command string) (string, error) {
	command, isDump := strings.CutSuffix(command, " | od -An -tx1")
	method, target := "GET", ""
	header := http.Header{"Accept": {"*/*"}, "X-Request-Id": {"9s2m7kq0v4xh1t3c"}} // otherwise a new one each time
	flag := ""
	for i, word := range words.FindAllString(command, -1) {
		if strings.ContainsAny(word, "$|&;<>?") && word[0] != '\'' {
			return "", fmt.Errorf("%s needs quotes", word)
		}
		word = strings.Trim(word, "'")
		switch {
		case flag == "-H":
			name, value, _ := strings.Cut(word, ": ")
			header.Set(name, value)
			flag = ""
		case flag == "-d" && word == "":
			method, flag = "POST", ""
		case word == "-H", word == "-d":
			flag = word
		case i == 0 && word == "curl", word == "-s":
		case target == "" && strings.HasPrefix(word, "http"):
			target = word
		default:
			return "", fmt.Errorf("the test does not know the word %q", word)
		}
	}
	r, err := http.NewRequest(method, target, nil)
	if err != nil {
		return "", err
	}
	r.Header = header
	conn := listener.Dial()
	defer conn.Close()
	go r.Write(conn)
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(resp.Body)
	if !isDump {
		return string(content), err
	}
	out := ""
	for line := range slices.Chunk(content, 16) { // as od does
		out += fmt.Sprintf(" % x\n", line)
	}
	return out, err
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
