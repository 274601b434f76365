package main

import (
	"fmt"
	"io"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// maxPartitions bounds how many partitions are printed at once.
const maxPartitions = 10_000

// A period is the time of a partition.
type period struct{ years, months, days int }

var periods = map[string]period{"day": {0, 0, 1}, "month": {0, 1, 0}, "year": {1, 0, 0}}

// begin returns the beginning of the period that contains t, in UTC.
func (p period) begin(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	switch {
	case p.years > 0:
		month, day = time.January, 1
	case p.months > 0:
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func (p period) next(t time.Time) time.Time { return t.AddDate(p.years, p.months, p.days) }

// name returns the name of a table for the period that begins at t.
func (p period) name(table string, t time.Time) string {
	switch {
	case p.years > 0:
		return table + t.Format("_2006")
	case p.months > 0:
		return table + t.Format("_2006_01")
	}
	return table + t.Format("_2006_01_02")
}

// printPartitions prints a statement of PostgreSQL for each period that
// overlaps the range.
func printPartitions(out io.Writer, l firn.Layout, from, to time.Time, every, table string, f form.Form) error {
	lowest := func(from time.Time) (string, error) {
		ends, err := inspect.EndsOf(l, from, from.AddDate(1, 0, 0), &f)
		if err != nil {
			return "", err
		}
		return sqlValue(ends.Lo, f)
	}
	p := periods[every]
	if from.Before(l.Epoch()) {
		from = l.Epoch()
	}
	at := p.begin(from)
	lo, err := lowest(at)
	for n := 0; err == nil && at.Before(to); n++ {
		if n == maxPartitions {
			return misuse("use a shorter range or longer partitions", "the range has more than %d partitions", maxPartitions)
		}
		end := p.next(at)
		hi := "MAXVALUE"
		if !end.After(l.Last()) {
			hi, err = lowest(end)
		}
		fmt.Fprintf(out, "CREATE TABLE IF NOT EXISTS %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s);\n", p.name(table, at), table, lo, hi)
		if hi == "MAXVALUE" {
			break
		}
		at, lo = end, hi
	}
	return err
}
