package main

import (
	"context"
	"fmt"

	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/records"
)

// inspectSummary reports on all IDs together.
func inspectSummary(ctx context.Context, in *idInput, args []string, out *records.Writer, o inspect.Options, asJSON bool) error {
	s := inspect.NewSummary(o, in.a.now())
	var t tally
	err := in.each(ctx, args, out, func(where place, text string, bad error) error {
		t.all++
		if bad == nil {
			bad = s.Add(text)
		}
		if bad != nil {
			return t.complain(in.a, out, where, bad)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := s.Report()
	if asJSON {
		fmt.Fprintf(out, "%s\n", appendSummary(nil, r, t))
	} else {
		printSummary(in.a, out, r, t)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return t.result(in.a, "IDs")
}

// anomalies describes the anomalies of a column of IDs.
func anomalies(r inspect.Report, bad int) (list []string) {
	add := func(n int, what string) {
		if n > 0 {
			list = append(list, fmt.Sprintf(what, group(uint64(n))))
		}
	}
	add(bad, "not IDs: %s")
	add(r.Rounded, "rounded by a floating-point number, without their last digits: %s")
	add(r.Repeats, "equal to the previous ID: %s (firn check finds all duplicates)")
	if r.Known {
		add(r.Count-r.Fits, "not of this layout: %s")
		add(r.Future, "in the future: %s")
		add(r.Late, "earlier than the previous ID: %s (normal for several nodes, or an unsorted column)")
	}
	return list
}

// rateOf returns the mean number of IDs per second; ok is false if there is no
// time span.
func rateOf(r inspect.Report) (perSecond float64, ok bool) {
	seconds := inspect.Age(r.First, r.Last)
	if !r.HasTime || seconds <= 0 {
		return 0, false
	}
	return float64(r.Fits) / seconds, true
}

func printSummary(a *app, out *records.Writer, r inspect.Report, t tally) {
	l := a.lookOf(a.stdout)
	var x rows
	x.add("IDs", "%s", l.bold(number(l, uint64(r.Count))))
	switch {
	case r.Count == 0:
	case !r.Known:
		x.add("layout", "%s", l.yellow("no known layout"))
	default:
		x.add("layout", "%s  fits %s of %s", l.bold(r.Name), number(l, uint64(r.Fits)), number(l, uint64(r.Count)))
	}
	if r.HasTime {
		x.add("first", "%s", inspect.Stamp(r.First, r.Unit()))
		x.add("last", "%s", inspect.Stamp(r.Last, r.Unit()))
		x.add("span", "%s", inspect.Span(inspect.Age(r.First, r.Last)))
		if perSecond, ok := rateOf(r); ok {
			x.add("rate", "%.3g IDs per second", perSecond)
		}
		more := ""
		if r.NodesMore {
			more = "more than "
		}
		x.add("nodes", "%s%s", more, number(l, uint64(r.Nodes)))
	}
	list := anomalies(r, t.bad)
	for _, text := range list {
		x.add("anomaly", "%s", l.yellow(text))
	}
	if len(list) == 0 && r.Count > 0 {
		x.add("anomalies", "%s", l.green("none"))
	}
	x.print(out, l)
}

// appendSummary appends the summary as a JSON object.
func appendSummary(b []byte, r inspect.Report, t tally) []byte {
	b = fmt.Appendf(b, `{"count":%d,"bad":%d,"rounded":%d,"repeats":%d,"known":%t`, r.Count, t.bad, r.Rounded, r.Repeats, r.Known)
	if r.Known {
		b = inspect.AppendString(append(b, `,"layout":`...), r.Name)
		b = fmt.Appendf(b, `,"fits":%d`, r.Fits)
	}
	if r.HasTime {
		b = inspect.AppendMillis(append(b, `,"first_ms":`...), r.First)
		b = inspect.AppendMillis(append(b, `,"last_ms":`...), r.Last)
		b = fmt.Appendf(b, `,"nodes":%d,"late":%d,"future":%d`, r.Nodes, r.Late, r.Future)
		if perSecond, ok := rateOf(r); ok {
			b = fmt.Appendf(b, `,"rate":%.6g`, perSecond)
		}
	}
	return append(inspect.AppendStrings(append(b, `,"anomalies":`...), anomalies(r, t.bad)), '}')
}
