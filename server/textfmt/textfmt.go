// Package textfmt writes times and sequencers as all of Firn shows them: in
// answers of HTTP, in what the command prints, and on pages. It reads times as
// the command takes them. Texts of IDs are those of package firn.
package textfmt

import (
	"time"

	"github.com/firnid/firn/grant"
)

// SequencerJSON is a sequencer on the wire. Durations are as Go writes them,
// times as Stamp does.
type SequencerJSON struct {
	Name        string `json:"name"`
	State       string `json:"state"`
	Layout      string `json:"layout"`
	MaxAhead    string `json:"max_ahead"`
	Window      string `json:"window"`
	Incarnation uint64 `json:"incarnation"`
	Floor       string `json:"floor,omitempty"`
	Created     string `json:"created"`
	Longest     string `json:"longest_window,omitempty"` // that it ever had
	Version     int    `json:"version,omitempty"`        // of its records
	Error       string `json:"error,omitempty"`
}

// InJSON is a sequencer as it goes on the wire.
func InJSON(i grant.Info) SequencerJSON {
	j := SequencerJSON{
		Name: i.Name, State: i.State.String(), Layout: i.Config.Layout.String(),
		MaxAhead: i.Config.MaxAhead.String(), Window: i.Config.Window.String(),
		Incarnation: i.Incarnation, Created: Stamp(i.Created),
		Longest: i.LongestWindow.String(), Version: i.Version,
	}
	if !i.Floor.IsZero() {
		j.Floor = Stamp(i.Floor)
	}
	return j
}

// Stamp is a time in RFC 3339 and UTC, to the millisecond, which is what
// records have.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
