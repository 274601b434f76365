package console

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A betweenPage shows the IDs of a time range.
type betweenPage struct {
	From, To   string
	Layout     string
	Column     string
	Format     string
	Formats    []string
	Presets    []string
	Sequencers []seqLayout
	Quick      []quick
	Fault      string
	Found      *found
}

// A seqLayout is a sequencer whose layout can be chosen.
type seqLayout struct{ Name, Layout string }

// A quick is a common time range.
type quick struct{ Name, Link string }

// A found is the answer.
type found struct {
	Layout   firn.Layout
	From, To time.Time
	Long     string
	Texts    []foundText
	SQL      string
	Half     string // the condition without the upper end
	Note     string
	Most     string // how many IDs the range can have
}

// A foundText has the two ends in one encoding.
type foundText struct{ Name, Lo, Hi string }

// column matches the name of a column, optionally with a schema and a table.
var column = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}$`)

var betweenFormats = []firn.Format{firn.Decimal, firn.Hex, firn.Base32, firn.Base62.Fixed(), firn.UUID}

// between shows the IDs of a time range. The page's address has all its input.
func (k *Console) between(v *visit) {
	q := v.r.URL.Query()
	p := betweenPage{From: strings.TrimSpace(q.Get("from")), To: strings.TrimSpace(q.Get("to")), Layout: strings.TrimSpace(q.Get("layout")), Column: strings.TrimSpace(q.Get("column")), Format: q.Get("format")}
	p.Layout = cmp.Or(p.Layout, firn.Default().String())
	p.Column = cmp.Or(p.Column, "id")
	hour := v.now.UTC().Truncate(time.Hour)
	p.From = cmp.Or(p.From, hour.Add(-time.Hour).Format(formTime))
	p.To = cmp.Or(p.To, hour.Format(formTime))
	for preset := range firn.Presets() {
		if !preset.Layout.ReadOnly() && preset.Layout.Ordered() {
			p.Presets = append(p.Presets, preset.Name)
		}
	}
	for _, o := range k.ownLayouts(v) {
		for _, name := range o.names {
			p.Sequencers = append(p.Sequencers, seqLayout{name, o.layout.String()})
		}
	}
	p.Quick = p.quicks(v.now)
	var err error
	if p.Found, err = p.find(); err != nil {
		p.Fault = detail(err) + "."
	}
	v.answer("time", "found", p.address(p.From, p.To), p.Fault, page{Title: "Time to ID", Section: "time", Body: p})
}

// formTime is the format of a time in a form, in UTC.
const formTime = "2006-01-02T15:04"

func (p *betweenPage) address(from, to string) string {
	q := url.Values{"from": {from}, "to": {to}}
	if p.Layout != firn.Default().String() {
		q.Set("layout", p.Layout)
	}
	if p.Column != "id" {
		q.Set("column", p.Column)
	}
	if p.Format != "" {
		q.Set("format", p.Format)
	}
	return "/time?" + q.Encode()
}

// quicks returns the common time ranges.
func (p *betweenPage) quicks(now time.Time) []quick {
	now = now.UTC()
	today := now.Truncate(24 * time.Hour)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	minute := now.Truncate(time.Minute).Add(time.Minute)
	link := func(name string, from, to time.Time) quick {
		return quick{name, p.address(from.Format(formTime), to.Format(formTime))}
	}
	return []quick{
		link("last 15 minutes", minute.Add(-15*time.Minute), minute),
		link("last hour", minute.Add(-time.Hour), minute),
		link("today", today, today.AddDate(0, 0, 1)),
		link("yesterday", today.AddDate(0, 0, -1), today),
		link("last 7 days", today.AddDate(0, 0, -6), today.AddDate(0, 0, 1)),
		link("this month", month, month.AddDate(0, 1, 0)),
	}
}

// readTime parses a time from the form or a link.
func readTime(s string) (time.Time, error) {
	for _, form := range []string{formTime, "2006-01-02T15:04:05", "2006-01-02T15:04:05.999999999", time.DateOnly, time.RFC3339, time.RFC3339Nano} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-11-20T10:00 or 2026-11-20, in UTC", cutText(s))
}

func cutText(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// find computes the answer.
func (p *betweenPage) find() (*found, error) {
	l, err := firn.ParseLayout(p.Layout)
	if err != nil {
		return nil, err
	}
	for _, f := range betweenFormats {
		if f.Fits(l.Bits()) == nil {
			p.Formats = append(p.Formats, f.String())
		}
	}
	if p.Format == "" || !slices.Contains(p.Formats, p.Format) {
		p.Format = firn.Decimal.String()
		if l.Bits() == 128 {
			p.Format = firn.UUID.String()
		}
	}
	from, err := readTime(p.From)
	if err != nil {
		return nil, err
	}
	to, err := readTime(p.To)
	if err != nil {
		return nil, err
	}
	if !from.Before(to) {
		return nil, fmt.Errorf("the range ends before it begins: From must be earlier than To")
	}
	if l.ReadOnly() {
		return nil, fmt.Errorf("IDs of layout %s have %d bits: ranges need 64 or 128 bits", l, l.Bits())
	}
	f := &found{Layout: l, From: from, To: to, Long: left(to, from)}
	for _, format := range betweenFormats {
		if format.Fits(l.Bits()) != nil {
			continue
		}
		e, err := inspect.EndsOf(l, from, to, format)
		if err != nil {
			return nil, err
		}
		f.Texts = append(f.Texts, foundText{format.String(), e.Lo, e.Hi})
		if format.String() != p.Format {
			continue
		}
		if !column.MatchString(p.Column) {
			return nil, fmt.Errorf("%q is not a column name of letters, digits and _, such as id or orders.id", cutText(p.Column))
		}
		quote := "'"
		if format == firn.Decimal {
			quote = ""
		}
		f.SQL = fmt.Sprintf("WHERE %s BETWEEN %s%s%s AND %s%s%s", p.Column, quote, e.Lo, quote, quote, e.Hi, quote)
		f.Half = fmt.Sprintf("WHERE %s >= %s%s%s", p.Column, quote, e.Lo, quote)
		if e.Big && format == firn.Decimal {
			f.Note = "IDs of 2^63 and above do not fit SQL's bigint: use a numeric column."
		}
	}
	if !l.Ordered() {
		f.Note = strings.TrimSpace(f.Note + " IDs of this layout are not ordered by time.")
	}
	f.Most = count(math.Floor(inspect.Age(from, to) * l.IDsPerSecond() * math.Exp2(float64(l.NodeBits()))))
	return f, nil
}
