package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// roundedNow is the clock of these tests.
var roundedNow = time.Date(2026, 11, 27, 22, 0, 0, 0, time.UTC)

// A columnUser runs commands on columns of IDs.
type columnUser struct {
	t     *testing.T
	store string
	http  *httpapi.Handler
}

// run runs a command with the column as its input.
func (u *columnUser) run(column string, args ...string) (code int, out string) {
	var both bytes.Buffer
	now := func() time.Time { return roundedNow }
	code = run(u.t.Context(), &app{
		stdin: strings.NewReader(column), stdout: &output{Writer: &both}, stderr: &both, now: now,
		getenv: func(key string) string { return map[string]string{storeEnv: u.store}[key] }, container: func() string { return "" },
	}, args)
	return code, both.String()
}

// TestRoundedColumns rounds IDs in every way. No command
// plans with the IDs then, and each names the cause; and all take the exact IDs.
func TestRoundedColumns(t *testing.T) {
	u := &columnUser{
		t: t, store: "dir:" + filepath.Join(t.TempDir(), "store") + "?create=true&volatile=true",
		http: httpapi.NewHandler(httpapi.Config{Backend: servicetest.NewStatic(t, "default")}),
	}
	float := func(v uint64) float64 { return float64(v) }
	text := func(verb byte, digits int) func(uint64) string {
		return func(v uint64) string { return strconv.FormatFloat(float(v), verb, digits, 64) }
	}
	rounders := []struct {
		name, names string // names is what each command says
		round       func(uint64) string
	}{
		{"exact", "", func(v uint64) string { return strconv.FormatUint(v, 10) }},
		{"Excel's text", "", func(v uint64) string { return fmt.Sprintf(`="%d"`, v) }},
		{"an apostrophe", "", func(v uint64) string { return fmt.Sprintf("'%d", v) }},
		{"a plus sign", "", func(v uint64) string { return fmt.Sprintf("+%d", v) }},
		{"integers of floats", "float", func(v uint64) string { return strconv.FormatUint(uint64(float(v)), 10) }},
		{"JavaScript", "rounded ", text('f', -1)},
		{"15 digits, cut off", "rounded ", func(v uint64) string {
			s := fmt.Sprint(v)
			return s[:min(15, len(s))] + strings.Repeat("0", max(0, len(s)-15))
		}},
		{"a scientific number", "floating-point", text('E', 5)},
		{"a decimal point", "floating-point", text('f', 1)},
	}
	for _, digits := range []int{15, 16, 17} {
		rounders = append(rounders, struct {
			name, names string
			round       func(uint64) string
		}{fmt.Sprint(digits, " digits"), "rounded ", func(v uint64) string {
			mantissa, exponent, _ := strings.Cut(text('e', digits-1)(v), "e+")
			zeros, _ := strconv.Atoi(exponent)
			return strings.Replace(mantissa, ".", "", 1) + strings.Repeat("0", max(0, zeros-digits+1))
		}})
	}
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	// Those of other layouts are judged in the same way: see package inspect.
	for _, name := range []string{"default", "hazelcast", "twitter", "instagram", "sonyflake"} {
		l := firn.MustParseLayout(name)
		if code, out := u.run("", "sequencer", "create", name, "--layout", name); code != 0 {
			t.Fatal(out)
		}
		for _, busy := range []bool{true, false} {
			ids := someColumn(t, r, l, busy)
			for _, how := range rounders {
				var column strings.Builder
				changed := 0
				for _, v := range ids {
					text := how.round(v)
					if strings.Trim(text, `+='"`) != strconv.FormatUint(v, 10) {
						changed++
					}
					column.WriteString(text + "\n")
				}
				if how.names != "" && changed < len(ids)/4 {
					continue // a quiet system's IDs are floats already
				}
				refused += u.want(column.String(), l, fmt.Sprintf("%s, busy %t, %s", name, busy, how.name), how.names)
			}
		}
	}
	if refused < 70 {
		t.Errorf("%d columns were refused", refused)
	}
}

// someColumn makes IDs of three nodes, busy or not.
func someColumn(t *testing.T, r *rand.Rand, l firn.Layout, busy bool) (ids []uint64) {
	for tick := range 20 {
		last := uint64(0)
		if busy {
			last = r.Uint64N(100) & l.MaxSeq()
		}
		at := roundedNow.Add(time.Duration(tick-40) * 7 * l.Unit())
		for seq := range last + 1 {
			id := must.Get(l.Compose(firn.Parts{Time: at, Node: (700 + uint64(tick)%3) & l.MaxNode(), Seq: seq}))(t)
			ids = append(ids, uint64(id))
		}
	}
	return ids
}

// want wants all commands to take a column, or to name the cause. It returns 1
// if adopt refused it.
func (u *columnUser) want(column string, l firn.Layout, name, names string) (refused int) {
	u.t.Helper()
	layout := l.String()
	answer := httptest.NewRecorder()
	request := httptest.NewRequest("POST", "/v1/inspect?layout="+layout, strings.NewReader(column))
	request.Host = "localhost"
	u.http.ServeHTTP(answer, request)
	outs := map[string]string{"POST /v1/inspect": answer.Body.String()}
	codes := make(map[string]int)
	for _, args := range [][]string{
		{"adopt", "orders", "--layout", layout, "--stopped"}, {"adopt", l.Preset(), "--shadow"},
		{"check"}, {"check", "--layout", layout}, {"inspect", "--summary", "-"},
	} {
		command := strings.Join(args, " ")
		codes[command], outs[command] = u.run(column, args...)
	}
	for command, out := range outs {
		switch {
		case names == "" && (strings.Contains(out, "rounded ") && !strings.Contains(out, "quiet") || strings.Contains(command, "stopped") && codes[command] != 0):
			u.t.Errorf("%s: %s ends with %d:\n%s", name, command, codes[command], out)
		case names == "float" || names == "":
			// Floats that are a small node ID at the end are only in doubt.
		case strings.HasPrefix(command, "adopt orders") && (codes[command] != 1 || strings.Contains(out, "firn sequencer create")):
			u.t.Errorf("%s: %s ends with %d:\n%s", name, command, codes[command], out)
		}
		if !strings.Contains(out, names) && !(command == "POST /v1/inspect" && names == "floating-point") {
			u.t.Errorf("%s: %s does not name the cause:\n%.500s", name, command, out)
		}
	}
	if codes["adopt orders --layout "+layout+" --stopped"] == 1 {
		return 1
	}
	return 0
}
