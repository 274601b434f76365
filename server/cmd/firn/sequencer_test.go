package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/stores"
)

// An endingOutput ends a context when a text was written.
type endingOutput struct {
	bytes.Buffer
	text string
	end  context.CancelFunc
}

func (o *endingOutput) Write(b []byte) (int, error) {
	n, err := o.Buffer.Write(b)
	if strings.Contains(o.String(), o.text) {
		o.end()
	}
	return n, err
}

// TestWaitingTexts: a command that waits until node IDs are not used any more
// says for what, and until when.
func TestWaitingTexts(t *testing.T) {
	url := testStore(t)
	s := must.Get(stores.Open(t.Context(), url))(t)
	defer s.Close()
	now := time.Now().UTC().Truncate(time.Second)
	record := func(state, owner string, until time.Time) string {
		return fmt.Sprintf(`{"v":3,"nonce":"b7e2905d1c4f86a3370e1d92c85fa6b4","owner":%q,"until":%d,"wall":%d,"state":%q,"host":"ids-1"}`,
			owner, until.UnixMilli(), now.UnixMilli(), state)
	}
	at := func(after time.Duration) string { return regexp.QuoteMeta(textfmt.Stamp(now.Add(after))) }
	const window, ahead = time.Hour, time.Second
	for name, tt := range map[string]struct{ command, record, want string }{
		"held": {"detach", record("held", "o", now.Add(time.Minute)), "node ID 17, held by ids-1 until " + at(time.Minute) + " at the latest"},
		// The process may still use what is left of a window.
		"damaged": {"detach", "no record", `node ID 17, whose record is damaged: a process may use it until 20.*Z`},
		// Its mark is the floor of the fence, which nothing waits for.
		"fenced": {"destroy --yes", record("free", "", now.Add(3*window)), "node ID 17, which was fenced or repaired: a process may use it until " + at(window+ahead)},
		// No process ever had node ID 0, the first that is given away.
		"given": {"nodes 512..1023", record("free", "o", now.Add(window)), "the hand-over at " + at(window+grant.MaxSkew) +
			", when all clocks have passed the times used under the node IDs that are given away"},
	} {
		c := grant.DefaultConfig(s, firn.Default(), nil)
		c.Window, c.MaxAhead = window, ahead
		must.Get(grant.Create(t.Context(), s, name, c, nil))(t)
		must.Get(s.CAS(t.Context(), "v1/"+name+"/n/0017", nil, []byte(tt.record)))(t)
		ctx, end := context.WithCancel(t.Context())
		errs := &endingOutput{text: "note: waiting for", end: end}
		a, _, _ := serveApp(t)
		a.stderr, a.now = errs, func() time.Time { return now }
		verb, rest, _ := strings.Cut(tt.command, " ")
		code := run(ctx, a, strings.Fields("sequencer "+verb+" "+name+" "+rest+" --store "+url))
		end()
		if code != exitInterrupted || !regexp.MustCompile(`(?m)^firn: note: waiting for `+tt.want+`$`).MatchString(errs.String()) ||
			strings.Count(errs.String(), "waiting for") != 2 {
			t.Errorf("%s: exit code %d, want %d; it prints\n%s\nwant a line that it is waiting for %s", name, code, exitInterrupted, errs, tt.want)
		}
	}
}
