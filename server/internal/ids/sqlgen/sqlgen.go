// Package sqlgen writes SQL that reads the IDs of a layout inside a database:
// functions for PostgreSQL and MySQL, macros for DuckDB, and expressions for
// SQLite, which has no stored functions. The SQL makes no IDs: nothing in a
// database knows which node ID it may use.
package sqlgen

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// files are the SQL of each database. Names in braces are replaced. The lines
// after one such as "--- veil wide" are for layouts to which all its words
// apply.
//
//go:embed *.sql
var files embed.FS

// Databases returns the names of the databases that Write knows.
func Databases() []string { return []string{"postgres", "mysql", "sqlite", "duckdb"} }

// Write writes the SQL for a layout. The names of functions begin with name and
// an underscore. It is an error if the database cannot read such IDs.
func Write(w io.Writer, database, name string, l firn.Layout) error {
	g := &generator{Layout: l, name: name, database: database, tick: l.Unit().Microseconds(),
		start: l.Epoch().UnixMicro(), divide: "/", least: "least", greatest: "greatest", from: "micros", to: "micros"}
	finest := time.Microsecond
	switch database {
	case "mysql":
		g.divide, g.from = "DIV", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t)"
		g.to = g.from
		g.digits = digits(", ", "SUBSTR("+alphabet+", ((id >> %[2]d) & 31) + 1, 1)")
		g.value = digits(" | ", "(CAST(LOCATE(SUBSTR(typed, %[1]d - 13, 1), "+alphabet+") - 1 AS UNSIGNED) << %[2]d)")
	case "duckdb":
		g.divide, g.from = "//", "epoch_us(t::TIMESTAMP)"
		g.to = g.from
		g.digits = digits(" || ", "substr("+alphabet+", (((id >> %[2]d) & %[3]d) + 1)::INTEGER, 1)")
		g.value = digits(" | ", "((strpos("+alphabet+", substr(typed, %[1]d - 13, 1)) - 1)::BIGINT << %[2]d)")
	case "sqlite":
		g.tick, g.start, g.least, g.greatest = g.tick/1000, g.start/1000, "min", "max"
		g.from, g.to, finest = ":from", ":to", time.Millisecond
		g.digits = digits(" || ", "substr("+alphabet+", ((id >> %[2]d) & %[3]d) + 1, 1)")
		g.value = digits(" | ", "((instr("+alphabet+", substr(:typed, %[1]d - 13, 1)) - 1) << %[2]d)")
	}
	for _, p := range l.Pieces() {
		if p.Field != firn.FieldZero {
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
		return fmt.Errorf("layout %s lasts until the year %d, and times in SQL until %d: its time field is too wide",
			l, l.Last().Year(), lastYear)
	case l.Bits() == 64 && database != "mysql" && g.constant(0)>>63 == 1:
		return fmt.Errorf("IDs of layout %s are 2^63 and above, which do not fit the signed integers of %s", l,
			database)
	}
	text, err := files.ReadFile(database + ".sql")
	if err != nil {
		return err
	}
	names, applies := g.names()
	_, err = strings.NewReplacer(names...).WriteString(w, sections(string(text), applies))
	return err
}

// sections returns the lines of a file that apply to a layout.
func sections(text string, applies map[string]bool) string {
	var b strings.Builder
	on := true
	for line := range strings.Lines(text) {
		if words, ok := strings.CutPrefix(line, "--- "); ok {
			on = !slices.ContainsFunc(strings.Fields(words), func(word string) bool { return !applies[word] })
		} else if on {
			b.WriteString(line)
		}
	}
	return b.String()
}

// lastYear keeps microseconds since 1970 within 63 bits, in PostgreSQL's range.
const lastYear = 200_000

// A generator writes the SQL of a layout.
type generator struct {
	firn.Layout
	name, database  string
	tick, start     int64 // the unit and the epoch in microseconds; in SQLite, milliseconds
	divide          string
	least, greatest string
	from, to        string // the expressions of the times of a range
	digits, value   string // the expressions of an ID's digits in base 32, and of the ID from them
	top             int    // bits of an ID without the zeros on top
}

// names returns the names in a file of SQL, each followed by what replaces it,
// and the words that apply to the layout.
func (g *generator) names() (names []string, applies map[string]bool) {
	id, length := "bigint", "13"
	if g.wide() {
		id, length = "uuid", "26"
	}
	names = []string{"{layout}", g.String(), "{name}", g.name, "{id}", id, "{length}", length, "{time}", g.time(),
		"{node}", g.read(firn.FieldNode), "{seq}", g.read(firn.FieldSeq), "{first}", g.first(g.from), "{last}", g.last(g.to),
		"{digits}", g.digits, "{value}", g.value}
	applies = map[string]bool{"always": true, "wide": g.wide(), "narrow": !g.wide(), "sorted": g.sorted(),
		"unsorted": !g.sorted()}
	if v := g.veil(); v != nil {
		names, applies["veil"] = append(names, v.names()...), true
	}
	return names, applies
}

// alphabet is the digits of base 32.
const alphabet = "'0123456789abcdefghjkmnpqrstvwxyz'"

// digits joins an expression for each of the 13 digits of an ID in base 32, the
// highest first. Its values are the digit's number, position and mask.
func digits(separator, expression string) string {
	var list []string
	for i := range 13 {
		list = append(list, fmt.Sprintf(expression, i, 60-5*i, min(31, mask(4+5*i))))
	}
	return strings.Join(list, separator)
}

// wide reports whether IDs have 128 bits.
func (g *generator) wide() bool { return g.Bits() == 128 }

// sorted reports whether IDs of a time range are a range of IDs.
func (g *generator) sorted() bool {
	from, to := g.Epoch(), g.Epoch().Add(g.Unit())
	_, _, err := g.Range(from, to)
	if g.wide() {
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
func (g *generator) runs(field firn.Field) (list []run) {
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
			if p.Field == firn.FieldConst && (p.Pos+i)/64 == word {
				v |= p.Const >> i & 1 << ((p.Pos + i) % 64)
			}
		}
	}
	return v
}

// otherBits returns the bits of a word that belong to node, sequence and random
// fields.
func (g *generator) otherBits(word int) (v uint64) {
	for _, field := range []firn.Field{firn.FieldNode, firn.FieldSeq, firn.FieldRand} {
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
	case !g.wide():
		return "id"
	case word == 1:
		return g.name + "_hi(id)"
	}
	return g.name + "_lo(id)"
}

// read returns the expression of a field of the ID in the column id.
func (g *generator) read(field firn.Field) string {
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

// time returns the expression of the time of the ID in the column id, in units
// of start since 1970.
func (g *generator) time() string {
	tick := g.read(firn.FieldTime)
	if g.database == "mysql" {
		tick = "CAST(" + tick + " AS SIGNED)" // epochs before 1970 are negative
	}
	return fmt.Sprintf("%s * %d + %d", tick, g.tick, g.start)
}

// first returns the expression of the lowest ID with a time of at least t,
// which is an expression in units of start. It is NULL after the last tick.
func (g *generator) first(t string) string {
	tick := fmt.Sprintf("((%s(%s - %d, 0) + %d) %s %d)", g.greatest, t, g.start, g.tick-1, g.divide, g.tick)
	return fmt.Sprintf("CASE WHEN %s <= %d THEN %s END", tick, g.lastTick(), g.place(tick, false))
}

// last returns the expression of the highest ID with a time before t. It is
// NULL up to the epoch.
func (g *generator) last(t string) string {
	tick := fmt.Sprintf("%s((%s - %d) %s %d, %d)", g.least, t, g.start+1, g.divide, g.tick, g.lastTick())
	return fmt.Sprintf("CASE WHEN %s > %d THEN %s END", t, g.start, g.place(tick, true))
}

// lastTick returns the last tick whose IDs fit the database's integers.
func (g *generator) lastTick() uint64 {
	width := g.TimeBits()
	for _, r := range g.runs(firn.FieldTime) {
		if g.database != "mysql" && !g.wide() && r.pos+r.width == 64 {
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
		for _, r := range g.runs(firn.FieldTime) {
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
	if g.wide() {
		return fmt.Sprintf("%s_uuid(%s, %s)", g.name, words[1], words[0])
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

// A veil has the numbers of FF1 for a layout; see docs/veil.md.
type veil struct{ n, u, v int } // bits of an ID and of its halves

// veil returns nil if IDs of the layout cannot be veiled.
func (g *generator) veil() *veil {
	n := max(g.top, 63)
	switch {
	case g.Preset() == "uuidv7":
		n = 122
	case g.wide():
		return nil
	case g.top <= 53:
		n = 53
	}
	return &veil{n, n / 2, n - n/2}
}

// names returns names in a file of SQL, each followed by what replaces it.
func (v *veil) names() []string {
	bytes := (v.v + 7) / 8 // of a half
	veilable := "id <> 0"
	switch v.n {
	case 53:
		veilable = "id BETWEEN 1 AND 9007199254740991"
	case 63:
		veilable = "id > 0"
	}
	return []string{"{N}", strconv.Itoa(v.n), "{V}", strconv.Itoa(v.v), "{bytes}", strconv.Itoa(bytes),
		"{veilable}", veilable,
		"{maskU}", strconv.FormatUint(mask(v.u), 10), "{maskV}", strconv.FormatUint(mask(v.v), 10),
		"{out}", strconv.Itoa(4*((bytes+3)/4) + 4), // bytes of a round that are used
		"{head}", fmt.Sprintf("0102010000020a%02x%08x", v.u, v.n)} // the first bytes of the message
}
