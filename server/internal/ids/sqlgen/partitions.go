package sqlgen

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// Value returns an ID as SQL.
func Value(id form.ID, f form.Form) string {
	text := string(id.Append(nil, f))
	if f.Is(firn.Decimal) {
		return text
	}
	return "'" + text + "'"
}

// maxPartitions bounds how many partitions are written at once.
const maxPartitions = 10_000

// A Period is the time of a partition, in UTC.
type Period struct {
	years, months, days int
	layout              string // of its beginning
}

// Periods are the periods by name.
func Periods() map[string]Period {
	return map[string]Period{"day": {0, 0, 1, "2006_01_02"}, "month": {0, 1, 0, "2006_01"}, "year": {1, 0, 0, "2006"}}
}

// begin returns the beginning of the period that contains t.
func (p *Period) begin(t time.Time) (time.Time, error) {
	return time.Parse(p.layout, t.UTC().Format(p.layout))
}

func (p *Period) next(t time.Time) time.Time { return t.AddDate(p.years, p.months, p.days) }

// name returns the name of a table for the period that begins at t.
func (p *Period) name(table string, t time.Time) string {
	open, isQuoted := strings.CutSuffix(table, `"`)
	if isQuoted {
		return open + "_" + t.Format(p.layout) + `"`
	}
	return table + "_" + t.Format(p.layout)
}

var tableName = regexp.MustCompile(`^(?:(?:[\pL_][\pL\pN_$]*|"[^"]+")\.)?([\pL_][\pL\pN_$]*|"[^"]+")$`)

// ParseTable parses the name of a table. PostgreSQL cuts names after 63 bytes,
// which would give all partitions of a longer one the same name.
func ParseTable(s string) (string, error) {
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

// Partitions writes a statement of PostgreSQL for each period that overlaps the
// time from from up to to.
func (p *Period) Partitions(w io.Writer, l firn.Layout, from, to time.Time, table string, f form.Form) error {
	lowest := func(from time.Time) (string, error) {
		lo, _, err := form.Range(l, from, from.AddDate(1, 0, 0))
		if err != nil {
			return "", err
		}
		return Value(lo, f), nil
	}
	if from.Before(l.Epoch()) {
		from = l.Epoch()
	}
	at, err := p.begin(from)
	if err != nil {
		return fmt.Errorf("no partition can begin at %s", textfmt.Stamp(from))
	}
	lo, err := lowest(at)
	for n := 0; err == nil && at.Before(to); n++ {
		if n == maxPartitions {
			return fmt.Errorf("the range has more than %d partitions: use a shorter one, or longer partitions",
				maxPartitions)
		}
		end := p.next(at)
		hi := "MAXVALUE"
		if !end.After(l.Last()) {
			hi, err = lowest(end)
		}
		fmt.Fprintf(w, "CREATE TABLE IF NOT EXISTS %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s);\n",
			p.name(table, at), table, lo, hi)
		if hi == "MAXVALUE" {
			break
		}
		at, lo = end, hi
	}
	return err
}
