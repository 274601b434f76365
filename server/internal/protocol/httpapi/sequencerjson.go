package httpapi

import (
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// SequencerJSON is a sequencer in JSON, for HTTP and firn sequencer --json, as
// docs/http.md promises. Durations have Go's format, times that of
// textfmt.Stamp.
type SequencerJSON struct {
	Name        string     `json:"name"`
	State       string     `json:"state"`
	Layout      string     `json:"layout"`
	MaxAhead    string     `json:"max_ahead"`
	Window      string     `json:"window"`
	Incarnation uint64     `json:"incarnation"`
	Floor       string     `json:"floor,omitempty"`
	Created     string     `json:"created"`
	Longest     string     `json:"longest_window,omitempty"` // longest window that it ever had
	Nodes       string     `json:"node_range,omitempty"`     // LO..HI, if members may not take all
	Prefix      string     `json:"prefix,omitempty"`         // of typed text
	MovedTo     string     `json:"moved_to,omitempty"`       // URL of the store that has it now
	LastChange  ChangeJSON `json:"last_change,omitzero"`     // of its record
	Error       string     `json:"error,omitempty"`
}

// ChangeJSON is a grant.Change in JSON.
type ChangeJSON struct {
	What string `json:"what"` // such as detach
	By   string `json:"by"`
	At   string `json:"at"`
}

// NewSequencerJSON converts what a store says about a sequencer.
func NewSequencerJSON(i grant.Info) SequencerJSON {
	j := SequencerJSON{
		Name: i.Name, State: i.State.String(), Layout: i.Config.Layout.String(),
		MaxAhead: i.Config.MaxAhead.String(), Window: i.Config.Window.String(),
		Incarnation: i.Incarnation, Created: textfmt.Stamp(i.Created),
		Longest: i.LongestWindow.String(), Prefix: i.Config.Prefix, MovedTo: i.MovedTo,
	}
	if i.Config.Nodes != nil {
		j.Nodes = i.Config.Nodes.String()
	}
	if !i.Floor.IsZero() {
		j.Floor = textfmt.Stamp(i.Floor)
	}
	if c := i.LastChange; c != (grant.Change{}) {
		j.LastChange = ChangeJSON{c.What, c.By, textfmt.Stamp(c.At)}
	}
	return j
}
