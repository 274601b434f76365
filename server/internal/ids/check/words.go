package check

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A Stream is how IDs were read for a Report, and what was beside them.
type Stream struct {
	From     form.Form    // how the IDs are written
	Layout   firn.Layout  // that the Report was made by; may be zero
	Places   lines.Places // of the IDs
	Bad      int          // texts that are not IDs
	FirstBad []string     // the first few of them
	Missing  int          // fields that were skipped
	Took     time.Duration
}

// Text returns an ID as it is in the stream.
func (s *Stream) Text(id form.ID) string {
	if _, ok := s.From.Format(); !ok || s.From.Is(firn.Raw) || len(id) == 12 {
		return hex.EncodeToString(id)
	}
	return string(id.Append(nil, s.From))
}

// places names the places of a duplicate.
func (s *Stream) places(d Duplicate) (at []string) {
	for _, p := range d.Places {
		at = append(at, s.Places.Of(p))
	}
	return at
}

// parts returns the parts of a duplicate by the layout, if it has any.
func (s *Stream) parts(d Duplicate) (p firn.Parts, ok bool) {
	if s.Layout.IsZero() {
		return p, false
	}
	p, err := s.Layout.DecomposeBytes(d.ID)
	return p, err == nil
}

// Describe describes a duplicate: where it occurs, and its parts.
func (s *Stream) Describe(d Duplicate) string {
	at := s.places(d)
	if d.Times > uint64(len(d.Places)) {
		at = append(at, "…")
	}
	text := fmt.Sprintf("%s %d times: %s", s.Text(d.ID), d.Times, strings.Join(at, ", "))
	if p, ok := s.parts(d); ok {
		text += fmt.Sprintf("; %s node %d seq %d", inspect.Stamp(p.Time, s.Layout.Unit()), p.Node, p.Seq)
	}
	return text
}

// Notes describes what else there is to know: above all whether the IDs are
// rounded, and which duplicates that explains.
func (r *Report) Notes(missing int) (notes []string) {
	if r.Rounding.How != "" {
		text := fmt.Sprintf("%s of %s: %s", textfmt.Grouped(uint64(r.Rounding.IDs), " "), textfmt.Grouped(r.Count, " "),
			r.Rounding)
		if r.Duplicates > 0 && r.Rounding.Sure {
			text += ". This makes the duplicates, not the generator"
		} else if r.Duplicates > 0 {
			text += ". Rounding would make the duplicates"
		}
		if !r.Rounding.Quiet {
			text += "; " + inspect.Unrounded
		}
		notes = append(notes, text)
	}
	if r.Small > 0 {
		notes = append(notes, inspect.SmallText(r.Small))
	}
	if missing > 0 {
		notes = append(notes, inspect.MissingText(missing))
	}
	return notes
}

// JSON returns the report of a stream for JSON.
func (r *Report) JSON(s *Stream) any {
	duplicated := []any{}
	for _, d := range r.Duplicated {
		v := map[string]any{"id": s.Text(d.ID), "times": d.Times, "at": s.places(d)}
		if p, ok := s.parts(d); ok {
			v["time_ms"], v["node"], v["seq"] = inspect.Millis(p.Time), inspect.Number(p.Node), inspect.Number(p.Seq)
		}
		duplicated = append(duplicated, v)
	}
	v := map[string]any{
		"count": r.Count, "duplicates": r.Duplicates, "duplicated": duplicated, "inversions": r.Inversions,
		"k": r.K, "increasing": r.Increasing, "bad_lines": s.Bad, "bad": append([]string{}, s.FirstBad...),
		"from": s.From.String(), "seconds": s.Took.Round(time.Millisecond).Seconds(),
	}
	if r.Count > 0 {
		v["min"], v["max"] = s.Text(r.Min), s.Text(r.Max)
	}
	if notes := r.Notes(s.Missing); len(notes) > 0 {
		v["missing"], v["notes"] = s.Missing, notes
	}
	if !s.Layout.IsZero() {
		v["layout"], v["foreign"], v["small"] = s.Layout.String(), r.Foreign, r.Small
	}
	if r.Times {
		v["first_ms"], v["last_ms"] = inspect.Millis(r.First), inspect.Millis(r.Last)
		v["lateness_ms"] = float64(r.Lateness) / 1e6
	}
	return v
}
