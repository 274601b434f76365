package inspect

import (
	"fmt"
	"strings"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// Anomalies describes what a column of IDs should not have. bad is how many of
// its texts are not IDs.
func (r *Report) Anomalies(bad int) (list []string) {
	add := func(n int, format string) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, textfmt.Grouped(uint64(n), " ")))
		}
	}
	add(bad, "not IDs: %s")
	if !r.Rounding.Quiet {
		add(r.Rounding.IDs, strings.ReplaceAll(r.Rounding.String(), "%", "%%")+": %s")
	}
	add(r.Repeats, "equal to the previous ID: %s (firn check finds all duplicates)")
	if r.Known {
		add(r.Count-r.Small-r.Fits, "not of this layout: %s")
		add(r.Future, "in the future: %s")
		add(r.Late, "earlier than the previous ID: %s (normal for several nodes, or an unsorted column)")
	}
	return list
}

// Notes describes what is no fault, or may be none. missing is how many fields
// were skipped.
func (r *Report) Notes(missing int) (list []string) {
	if r.Rounding.Quiet {
		list = append(list, r.Rounding.String())
	}
	if r.Small > 0 {
		list = append(list, SmallText(uint64(r.Small)))
	}
	if missing > 0 {
		list = append(list, MissingText(missing))
	}
	return list
}

// SmallText describes IDs that were set aside.
func SmallText(n uint64) string {
	return "set aside, small numbers such as those of an older counter: " + textfmt.Grouped(n, " ")
}

// MissingText describes fields that were skipped.
func MissingText(n int) string { return "skipped, NULL or empty: " + textfmt.Grouped(uint64(n), " ") }

// JSON returns the report of a column for JSON; see Anomalies and Notes.
func (r *Report) JSON(bad, missing int) any {
	v := map[string]any{
		"count": r.Count, "bad": bad, "repeats": r.Repeats, "rounded": 0, "known": r.Known,
		"anomalies": append([]string{}, r.Anomalies(bad)...),
	}
	if !r.Rounding.Quiet {
		v["rounded"] = r.Rounding.IDs
	}
	if notes := r.Notes(missing); len(notes) > 0 {
		v["missing"], v["small"], v["notes"] = missing, r.Small, notes
	}
	if r.Known {
		v["layout"], v["fits"] = r.Name, r.Fits
	}
	if r.HasTime {
		v["first_ms"], v["last_ms"] = Millis(r.First), Millis(r.Last)
		v["nodes"], v["late"], v["future"] = r.Nodes, r.Late, r.Future
		if r.Rate > 0 {
			v["rate"] = r.Rate
		}
	}
	return v
}
