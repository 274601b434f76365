package issued

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// Explain says what the logs say about an ID, by a clock: each line of text is
// yielded with the ID, or with "" if it continues the one before.
func (s *Search) Explain(q *Query, v Verdict, now time.Time, yield func(id, text string)) {
	line := func(id, format string, a ...any) { yield(id, fmt.Sprintf(format, a...)) }
	for _, m := range q.Found {
		line(q.Text, "issued to %s at %s", cmp.Or(m.Client, m.Address, "a client"), textfmt.Stamp(m.Time))
		line("", "sequencer %s, address %s, request %s, server %s", m.Sequencer, cmp.Or(m.Address, "unknown"),
			cmp.Or(m.Request, "none"), cmp.Or(m.Server, "unknown"))
	}
	if len(q.Found) > 0 && !slices.ContainsFunc(q.Found, func(m Record) bool { return !m.Forwarded }) {
		line("", "that is another server, for a client of its own: its log has the line with the client, and is "+
			"missing here")
	}
	switch {
	case v.Is == NotIssued && v.Reason != "":
		line(q.Text, "not issued by this sequencer: %s", v.Reason)
	case v.Is == NotIssued:
		line(q.Text, "not issued by these servers while the log covers it: %s", strings.Join(s.Servers(), ", "))
	case v.Is == NotCovered && v.Reason != "":
		line(q.Text, "the log does not cover it: %s", v.Reason)
	case v.Is == NotCovered:
		line(q.Text, "the log does not cover its time")
	}
	for _, x := range v.Readings {
		said := "covered"
		switch {
		case x.Time.After(now.Add(time.Minute)):
			said = "in the future, so it may be mistyped"
		case x.Reasons != nil:
			said = "not covered"
		}
		line("", "its time in layout %s is %s: %s", x.Layout, textfmt.Stamp(x.Time), said)
		for _, reason := range x.Reasons {
			line("", "  %s", reason)
		}
		if x.Stranger != nil {
			line("", "  no line has its node ID, %d: if another server made it, add the logs of that one", *x.Stranger)
		}
	}
	if v.Is == NotCovered && len(v.Readings) > 1 {
		line("", "add --sequencer NAME to read it in the layout of its sequencer alone")
	}
	if v.Is == NotCovered && len(v.Readings) > 0 && !s.Complete {
		line("", "add --complete if no server ran without a log and all logs are here")
	}
}

// An Answer is what the logs say about an ID, in JSON.
type Answer struct {
	ID       string    `json:"id"`
	Verdict  string    `json:"verdict"`
	Reason   string    `json:"reason,omitempty"`
	Readings []Reading `json:"readings,omitempty"`
	Issued   []Record  `json:"issued,omitempty"`
	Servers  []string  `json:"servers"` // whose logs were read
}

// Answer returns what the logs say about an ID for JSON.
func (s *Search) Answer(q *Query, v Verdict) Answer {
	return Answer{q.Text, v.Is, v.Reason, v.Readings, q.Found, s.Servers()}
}
