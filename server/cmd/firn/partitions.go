package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
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
	layout := "_2006_01_02"
	switch {
	case p.years > 0:
		layout = "_2006"
	case p.months > 0:
		layout = "_2006_01"
	}
	if open, quoted := strings.CutSuffix(table, `"`); quoted {
		return open + t.Format(layout) + `"`
	}
	return table + t.Format(layout)
}

var tableName = regexp.MustCompile(`^(?:(?:[\pL_][\pL\pN_$]*|"[^"]+")\.)?([\pL_][\pL\pN_$]*|"[^"]+")$`)

// parseTable parses the name of a table. PostgreSQL cuts names after 63 bytes,
// which would give all partitions of a longer one the same name.
func parseTable(s string) (string, error) {
	const most = 63 - len("_2006_01_02")
	parts := tableName.FindStringSubmatch(s)
	switch {
	case parts == nil:
		return s, errors.New(`it must be a name, as in SQL: orders, shop.orders or '"Order"'`)
	case len(strings.Trim(parts[1], `"`)) > most:
		return s, fmt.Errorf("the name must have at most %d bytes, so that those of partitions fit PostgreSQL's 63", most)
	}
	return s, nil
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
