// Package sqlgen writes SQL that reads the IDs of a layout inside a database:
// functions for PostgreSQL and MySQL, macros for DuckDB, and expressions for
// SQLite, which has no stored functions. The SQL makes no IDs: nothing in a database knows which
// node ID it may use.
package sqlgen

import (
	"embed"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/firnid/firn"
)

//go:embed *.sql
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.sql"))

// Databases returns the names of the databases that Write knows.
func Databases() []string { return []string{"postgres", "mysql", "sqlite", "duckdb"} }

// Write writes the SQL for a layout. The names of functions begin with name and
// an underscore. It is an error if the database cannot read such IDs.
func Write(w io.Writer, database, name string, l firn.Layout) error {
	g := &generator{Layout: l, Name: name, database: database, Tick: l.Unit().Microseconds(),
		Start: l.Epoch().UnixMicro(), Divide: "/", Least: "least", Greatest: "greatest"}
	finest := time.Microsecond
	switch database {
	case "mysql":
		g.Divide = "DIV"
	case "duckdb":
		g.Divide = "//"
	case "sqlite":
		g.Tick, g.Start, g.Least, g.Greatest = g.Tick/1000, g.Start/1000, "min", "max"
		finest = time.Millisecond
	}
	for _, p := range l.Pieces() {
		if p.Field != "zero" {
			g.top = max(g.top, p.Pos+p.Width)
		}
	}
	switch {
	case l.ReadOnly():
		return fmt.Errorf("IDs of layout %s have %d bits: SQL reads those of 64, and in PostgreSQL of 128", l, l.Bits())
	case l.Bits() == 128 && database != "postgres":
		return fmt.Errorf("IDs of layout %s have 128 bits: only PostgreSQL has a type and functions for them", l)
	case l.Unit()%finest != 0:
		return fmt.Errorf("layout %s has ticks of %v: %s needs whole multiples of %v", l, l.Unit(), database, finest)
	case l.Last().Year() > lastYear:
		return fmt.Errorf("layout %s lasts until the year %d, and times in SQL until %d: its time field is too wide", l, l.Last().Year(), lastYear)
	case l.Bits() == 64 && database != "mysql" && g.constant(0)>>63 == 1:
		return fmt.Errorf("IDs of layout %s are 2^63 and above, which do not fit the signed integers of %s", l,
			database)
	}
	return templates.ExecuteTemplate(w, database+".sql", g)
}

// lastYear keeps microseconds since 1970 within 63 bits, in PostgreSQL's range.
const lastYear = 200_000

// A generator is the data of a template.
type generator struct {
	firn.Layout
	Name            string
	Tick, Start     int64 // the unit and the epoch in microseconds; in SQLite, milliseconds
	Divide          string
	Least, Greatest string

	database string
	top      int // bits of an ID without the zeros on top
}

// Wide reports whether IDs have 128 bits.
func (g *generator) Wide() bool { return g.Bits() == 128 }

// Sorted reports whether IDs of a time range are a range of IDs.
func (g *generator) Sorted() bool {
	from, to := g.Epoch(), g.Epoch().Add(g.Unit())
	_, _, err := g.Range(from, to)
	if g.Wide() {
		_, _, err = g.Range128(from, to)
	}
	return err == nil
}

// A run is a run of bits in one word of 64 bits of an ID, in the order of its
// field.
type run struct {
	word     int // 0 for the lowest 64 bits of an ID, 1 for those above
	pos, low int // in the word, and in the field
	width    int
}

// runs returns the bits of a field. A reversed piece becomes runs of one bit.
func (g *generator) runs(field string) (list []run) {
	for _, p := range g.Pieces() {
		if p.Field != field {
			continue
		}
		for at := 0; at < p.Width; {
			pos := p.Pos + at
			width, low := min(p.Width-at, 64-pos%64), at
			if p.Reversed {
				width, low = 1, p.Width-1-at
			}
			list = append(list, run{pos / 64, pos % 64, p.Low + low, width})
			at += width
		}
	}
	return list
}

// constant returns the constant bits of a word.
func (g *generator) constant(word int) (v uint64) {
	for _, p := range g.Pieces() {
		for i := range p.Width {
			if p.Field == "const" && (p.Pos+i)/64 == word {
				v |= p.Const >> i & 1 << ((p.Pos + i) % 64)
			}
		}
	}
	return v
}

// otherBits returns the bits of a word that belong to node, sequence and random
// fields.
func (g *generator) otherBits(word int) (v uint64) {
	for _, field := range []string{"node", "seq", "rand"} {
		for _, r := range g.runs(field) {
			if r.word == word {
				v |= mask(r.width) << r.pos
			}
		}
	}
	return v
}

func mask(width int) uint64 { return 1<<width - 1 }

// word returns the expression of a word of the ID in the column id.
func (g *generator) word(word int) string {
	switch {
	case !g.Wide():
		return "id"
	case word == 1:
		return g.Name + "_hi(id)"
	}
	return g.Name + "_lo(id)"
}

// Read returns the expression of a field of the ID in the column id.
func (g *generator) Read(field string) string {
	var terms []string
	for _, r := range g.runs(field) {
		terms = append(terms, shifted(masked(g.word(r.word), r.pos, r.width), r.low))
	}
	switch text := strings.Join(terms, " | "); len(terms) {
	case 0:
		return "0"
	case 1:
		return text
	default:
		return "(" + text + ")"
	}
}

// masked returns the bits of an expression from a position on.
func masked(x string, pos, width int) string {
	if pos > 0 {
		x = fmt.Sprintf("(%s >> %d)", x, pos)
	}
	if width == 64 {
		return x
	}
	return fmt.Sprintf("(%s & %d)", x, mask(width))
}

func shifted(x string, by int) string {
	if by == 0 {
		return x
	}
	return fmt.Sprintf("(%s << %d)", x, by)
}

// Time returns the expression of the time of the ID in the column id, in units
// of Start since 1970.
func (g *generator) Time() string {
	tick := g.Read("time")
	if g.database == "mysql" {
		tick = "CAST(" + tick + " AS SIGNED)" // epochs before 1970 are negative
	}
	return fmt.Sprintf("%s * %d + %d", tick, g.Tick, g.Start)
}

// First returns the expression of the lowest ID with a time of at least t, which
// is an expression in units of Start. It is NULL after the last tick.
func (g *generator) First(t string) string {
	tick := fmt.Sprintf("((%s(%s - %d, 0) + %d) %s %d)", g.Greatest, t, g.Start, g.Tick-1, g.Divide, g.Tick)
	return fmt.Sprintf("CASE WHEN %s <= %d THEN %s END", tick, g.lastTick(), g.place(tick, false))
}

// Last returns the expression of the highest ID with a time before t. It is NULL
// up to the epoch.
func (g *generator) Last(t string) string {
	tick := fmt.Sprintf("%s((%s - %d) %s %d, %d)", g.Least, t, g.Start+1, g.Divide, g.Tick, g.lastTick())
	return fmt.Sprintf("CASE WHEN %s > %d THEN %s END", t, g.Start, g.place(tick, true))
}

// lastTick returns the last tick whose IDs fit the database's integers.
func (g *generator) lastTick() uint64 {
	width := g.TimeBits()
	for _, r := range g.runs("time") {
		if g.database != "mysql" && !g.Wide() && r.pos+r.width == 64 {
			width-- // the top bit of a time on top
		}
	}
	return mask(width)
}

// place returns the expression of the ID of a tick, with all other bits 0 or 1.
func (g *generator) place(tick string, ones bool) string {
	words := make([]string, g.Bits()/64)
	for i := range words {
		var terms []string
		for _, r := range g.runs("time") {
			if r.word == i {
				terms = append(terms, shifted(masked(tick, r.low, r.width), r.pos))
			}
		}
		fixed := g.constant(i)
		if ones {
			fixed |= g.otherBits(i)
		}
		if fixed > 0 || len(terms) == 0 {
			terms = append(terms, g.number(fixed))
		}
		words[i] = strings.Join(terms, " | ")
	}
	if g.Wide() {
		return fmt.Sprintf("%s_uuid(%s, %s)", g.Name, words[1], words[0])
	}
	return words[0]
}

// number returns a number of 64 bits, as signed as the database's integers.
func (g *generator) number(v uint64) string {
	if v>>63 == 1 && g.database != "mysql" {
		return "bigint '" + strconv.FormatInt(int64(v), 10) + "'"
	}
	return strconv.FormatUint(v, 10)
}

// Digits returns the positions of an ID's 13 digits in base 32, the highest
// first.
func (g *generator) Digits() (list []int) {
	for at := 60; at >= 0; at -= 5 {
		list = append(list, at)
	}
	return list
}

// A Veil has the numbers of FF1 for a layout; see docs/veil.md.
type Veil struct {
	N, U, V int    // bits of an ID and of its halves
	Bytes   int    // of a half
	Out     int    // bytes of a round that are used
	MaskU   uint64 // of the halves
	MaskV   uint64
	Head    string // the first bytes of the message, in hexadecimal
}

// Verbs returns the names of the functions that veil and unveil.
func (*Veil) Verbs() []string { return []string{"veil", "unveil"} }

// Veil returns nil if IDs of the layout cannot be veiled.
func (g *generator) Veil() *Veil {
	var v Veil
	switch {
	case g.Preset() == "uuidv7":
		v.N = 122
	case g.Wide():
		return nil
	case g.top <= 53:
		v.N = 53
	default:
		v.N = max(g.top, 63)
	}
	v.U = v.N / 2
	v.V = v.N - v.U
	v.MaskU, v.MaskV = mask(v.U), mask(v.V)
	v.Bytes = (bits.Len64(v.MaskV) + 7) / 8
	v.Out = 4*((v.Bytes+3)/4) + 4
	v.Head = fmt.Sprintf("0102010000020a%02x%08x", v.U, v.N)
	return &v
}
