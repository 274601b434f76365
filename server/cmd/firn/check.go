package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/textfmt"
)

func newCheck(a *app) *cobra.Command {
	var (
		layout firn.Layout
		from   inspect.Encoding
		size   = "auto"
		memory = uint64(1 << 30)
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check [--layout LAYOUT] [--from FORMAT] [FILE…]",
		Short: "Look for duplicates in a stream of IDs, and at its order",
		Long: `Check reads IDs, one per line, or as bytes with --from raw, from files or from
the standard input (-, or no argument), and reports exactly:

  duplicates  IDs that came before already, with the first few and their lines
  inversions  IDs that came after a greater one: normal where several nodes
              write into one stream, but one generator alone makes none
  k           the largest distance of an ID from its sorted position; with
              --layout also how late an ID came, in time

The exit code is 0 where there are no duplicates, and 1 where there are, or
where a line is no ID, or none of the layout.

IDs that strictly increase take no memory, and a temporary file only where they
are very many. Others take some 10 bytes each (18 with 128 bits) from the first
inversion on, up to --memory.`,
		Example: `  firn next -n 1000000 | firn check
  firn check --layout twitter ids.txt
  psql -Atc 'select id from orders' | firn check --layout default --json
  firn check --from raw --bits 64 ids.bin`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := checker{a: a, layout: layout, from: from, asJSON: asJSON}
			switch size {
			case "auto":
				if !layout.IsZero() {
					c.bits = layout.Bits()
				}
			case "64", "128":
				c.bits, _ = strconv.Atoi(size)
				if !layout.IsZero() && layout.Bits() != c.bits {
					return misuse("leave --bits out", "--bits %d: IDs of layout %s have %d", c.bits, layout, layout.Bits())
				}
			default:
				return misuse("", "--bits %q: it is auto, 64 or 128", size)
			}
			if !layout.IsZero() && layout.Bits() > 128 {
				return misuse("", "IDs of layout %s have %d bits: check reads those of up to 128", layout, layout.Bits())
			}
			if f, ok := from.Format(); ok && f == firn.Raw && c.bits == 0 {
				return misuse("--bits 64, --bits 128 or --layout", "--from raw: bytes do not say where an ID ends")
			}
			if memory == 0 {
				return misuse("write a size such as 512MiB or 2GiB", "--memory 0: nothing can be sorted in no memory")
			}
			c.order.limit = memory
			// The collector would else let the heap grow to twice of what is kept.
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(memory) + 64<<20))
			if len(args) == 0 {
				args = []string{"-"}
				if f, ok := a.stdin.(*os.File); ok && a.lookOf(f).terminal && a.lookOf(a.stderr).terminal {
					a.note("reading IDs from the terminal; end with ctrl-D")
				}
			}
			err := c.run(cmd.Context(), args)
			return errors.Join(err, c.order.close())
		},
	}
	layoutVar(cmd, &layout, "layout of the IDs, for times (default none)")
	encodingVar(cmd, &from)
	cmd.Flags().StringVar(&size, "bits", size, "`SIZE` of the IDs: auto, 64 or 128; --from raw needs it")
	sizeVar(cmd, &memory, "memory", "most memory that sorting may take")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	complete(cmd, "bits", func() []string { return []string{"auto", "64", "128"} })
	return cmd
}

// A checker reads IDs and reports what it found.
type checker struct {
	a      *app
	layout firn.Layout
	from   inspect.Encoding
	bits   int // 0: what the text says
	asJSON bool

	order     order
	min, max  key
	late      uint64 // IDs that came after a greater one
	latest    key    // the one that was furthest behind in its own time
	lateTicks uint64 // by how much
	maxTick   uint64 // the time of max, where maxTickOf is max
	maxTickOf key

	other      uint64 // IDs that are not of the layout
	otherFirst string
	hasLayout  bool
	fixed      key // bits that all IDs of the layout share …
	fixedTo    key // … and their values
	ordered    bool
	times      []firn.Piece // of the layout
	first      time.Time    // where the order of the IDs does not tell
	lastTime   time.Time

	bad      uint64 // lines that are no IDs
	badFirst []string

	parts   []part
	began   time.Time
	shown   time.Time // when progress was last shown
	display bool
	wide    bool // an ID needed more than 64 bits
}

// A part is IDs that stand on consecutive lines of one file.
type part struct {
	place uint64 // of its first ID in the stream
	file  string
	line  int // of that ID
}

// maxParts bounds what is kept to find the lines again.
const maxParts = 100_000

func (c *checker) run(ctx context.Context, args []string) error {
	c.began = time.Now()
	c.shown = c.began
	c.display = c.a.lookOf(c.a.stderr).terminal && c.a.getenv("TERM") != "dumb"
	c.readLayout()
	for _, name := range args {
		if err := c.file(ctx, name); err != nil {
			c.clear()
			var m *memoryError
			if errors.As(err, &m) {
				return failed(fmt.Sprintf("--memory %s allows twice as much; IDs that are sorted before take none", textfmt.Size(2*m.limit)), "%w", m)
			}
			return err
		}
	}
	f, err := c.order.find(ctx, func(done uint64) error {
		c.progress("sorting", done, c.order.count)
		return nil
	})
	c.clear()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.a.stdout)
	if c.asJSON {
		out.Write(append(c.appendJSON(nil, f), '\n'))
	} else {
		c.report(out, f)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if f.repeats > 0 || c.bad > 0 || c.other > 0 {
		return answerNo()
	}
	return nil
}

// readLayout finds the bits that are the same in all IDs.
func (c *checker) readLayout() {
	c.hasLayout = c.layout != firn.Layout{}
	if !c.hasLayout {
		return
	}
	c.ordered = c.layout.Ordered()
	for _, p := range c.layout.Pieces() {
		if p.Field == "time" {
			c.times = append(c.times, p)
		}
		if p.Field != "zero" && p.Field != "const" {
			continue
		}
		for i := range p.Width {
			at := p.Pos + i
			bit := key{0, 1 << at}
			if at >= 64 {
				bit = key{1 << (at - 64), 0}
			}
			c.fixed = c.fixed.plus(bit)
			if i < 64 && p.Const>>i&1 == 1 {
				c.fixedTo = c.fixedTo.plus(bit)
			}
		}
	}
}

// file reads one file, or the standard input.
func (c *checker) file(ctx context.Context, name string) error {
	var r io.Reader = c.a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return failed("", "%w", err)
		}
		defer f.Close()
		r = f
	} else {
		name = ""
	}
	if f, ok := c.from.Format(); ok && f == firn.Raw {
		return c.bytes(ctx, r, name)
	}
	// The goroutine that reads ahead ends with this file.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := newLines(ctx, r, nil)
	inRow := false // whether the line before was an ID
	for {
		text, bad, ok := in.next()
		if !ok {
			return in.err
		}
		if bad == nil && text == "" {
			inRow = false
			continue
		}
		var k key
		if bad == nil {
			k, bad = c.parse(text)
		}
		if bad != nil {
			var e *exitError
			if errors.As(bad, &e) {
				return bad
			}
			c.bad++
			if len(c.badFirst) < 3 {
				c.badFirst = append(c.badFirst, lineName(name, in.number)+": "+strings.TrimPrefix(bad.Error(), "firn: "))
			}
			inRow = false
			continue
		}
		if !inRow && len(c.parts) < maxParts {
			c.parts = append(c.parts, part{c.order.count, name, in.number})
			inRow = true
		}
		if err := c.add(k); err != nil {
			return err
		}
	}
}

// bytes reads IDs that follow each other as bytes; an ID's number takes the
// place of its line.
func (c *checker) bytes(ctx context.Context, r io.Reader, name string) error {
	in := bufio.NewReaderSize(r, chunkSize)
	c.parts = append(c.parts, part{c.order.count, name, 1})
	size := c.bits / 8
	b := make([]byte, 16)
	for n := 0; ; n++ {
		switch k, err := io.ReadFull(in, b[16-size:]); {
		case err == io.EOF:
			return nil
		case err == io.ErrUnexpectedEOF:
			return failed("", "the input ends after %d bytes of ID %d, which should have %d", k, n+1, size)
		case err != nil:
			return failed("", "read the input: %w", err)
		}
		if n&(1<<16-1) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.add(key{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}); err != nil {
			return err
		}
	}
}

// parse reads one text. The first that can be read says how all are written.
func (c *checker) parse(text string) (key, error) {
	if c.from.IsAuto() {
		b, e, err := inspect.Decode(text, c.from, c.bits)
		if err != nil {
			var doubt *inspect.AmbiguousError
			if errors.As(err, &doubt) {
				return key{}, misuse("--from "+doubt.Names[0], "%w", err)
			}
			return key{}, err
		}
		if len(b) > 16 {
			return key{}, misuse("", "%s is an ID of %d bits: check reads those of up to 128", inspect.Quote(text), 8*len(b))
		}
		c.from = e
	}
	f, ok := c.from.Format()
	if !ok {
		b, _, err := inspect.Decode(text, c.from, c.bits)
		if err != nil || len(b) > 16 {
			return key{}, err
		}
		wide := make([]byte, 16)
		copy(wide[16-len(b):], b)
		return key{binary.BigEndian.Uint64(wide), binary.BigEndian.Uint64(wide[8:])}, nil
	}
	if c.bits != 128 && !c.wide && f != firn.UUID {
		id, err := f.Parse(text)
		if err == nil {
			return key{0, uint64(id)}, nil
		}
		if c.bits == 64 {
			return key{}, err
		}
	}
	id, err := f.Parse128(text)
	if err != nil {
		return key{}, err
	}
	hi, lo := id.Uint64s()
	c.wide = c.wide || hi != 0
	return key{hi, lo}, nil
}

// add takes the next ID.
func (c *checker) add(k key) error {
	n := c.order.count
	switch {
	case n == 0:
		c.min, c.max = k, k
	case c.max.less(k):
		c.max = k
	case k.less(c.max):
		c.late++
		if k.less(c.min) {
			c.min = k
		}
		if c.ordered {
			c.measure(k)
		}
	}
	if c.hasLayout {
		c.look(k)
	}
	if n&(1<<18-1) == 0 {
		c.progress("", n, 0)
	}
	return c.order.add(k)
}

// measure compares the time of an ID with that of the greatest before it.
func (c *checker) measure(k key) {
	if c.maxTickOf != c.max {
		c.maxTick, c.maxTickOf = c.tick(c.max), c.max
	}
	// Ticks and not times: this is for every ID where a stream has no order.
	if late := c.maxTick - c.tick(k); late > c.lateTicks && late <= c.maxTick {
		c.lateTicks, c.latest = late, k
	}
}

// tick is the time field of an ID.
func (c *checker) tick(k key) uint64 {
	var tick uint64
	for _, p := range c.times {
		v := k.shr(p.Pos).lo
		if p.Width < 64 {
			v &= 1<<p.Width - 1
		}
		tick |= v << p.Low
	}
	return tick
}

// lateness is the most that an ID was behind, in its own time.
func (c *checker) lateness() time.Duration {
	hi, lo := bits.Mul64(c.lateTicks, uint64(c.layout.Unit()))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}

// look checks that an ID is of the layout.
func (c *checker) look(k key) {
	if k.hi&c.fixed.hi == c.fixedTo.hi && k.lo&c.fixed.lo == c.fixedTo.lo {
		if !c.ordered {
			c.extend(k)
		}
		return
	}
	if c.other++; c.other == 1 {
		_, err := c.timeOf(k)
		c.otherFirst = c.where(c.order.count) + ": " + c.text(k)
		if err != nil {
			c.otherFirst += ": " + strings.TrimPrefix(err.Error(), "firn: ")
		}
	}
}

// extend notes the first and the last time, where IDs do not sort by it.
func (c *checker) extend(k key) {
	t, err := c.timeOf(k)
	if err != nil {
		return
	}
	if c.first.IsZero() || t.Before(c.first) {
		c.first = t
	}
	if t.After(c.lastTime) {
		c.lastTime = t
	}
}

func (c *checker) partsOf(k key) (firn.Parts, error) {
	switch c.layout.Bits() {
	case 64:
		return c.layout.Decompose(firn.ID(k.lo))
	case 96:
		id := firn.ID128FromUint64s(k.hi, k.lo)
		return c.layout.DecomposeBytes(id[4:])
	}
	return c.layout.Decompose128(firn.ID128FromUint64s(k.hi, k.lo))
}

func (c *checker) timeOf(k key) (time.Time, error) {
	p, err := c.partsOf(k)
	return p.Time, err
}

// text writes an ID as the input has it.
func (c *checker) text(k key) string {
	f, ok := c.from.Format()
	switch {
	case c.bits == 96 || !ok:
		return fmt.Sprintf("%08x%016x", k.hi, k.lo)
	case f == firn.Raw:
		f = firn.Hex
	}
	if c.bits == 64 || c.bits == 0 && !c.wide && f != firn.UUID {
		return string(f.Append(nil, firn.ID(k.lo)))
	}
	return string(f.Append128(nil, firn.ID128FromUint64s(k.hi, k.lo)))
}

// span is the time of the first and the last ID.
func (c *checker) span() (first, last time.Time, ok bool) {
	if !c.hasLayout || c.order.count == 0 {
		return first, last, false
	}
	if !c.ordered {
		return c.first, c.lastTime, !c.first.IsZero()
	}
	first, err := c.timeOf(c.min)
	last, err2 := c.timeOf(c.max)
	return first, last, err == nil && err2 == nil
}

// where names the place of an ID in the stream.
func (c *checker) where(place uint64) string {
	i := len(c.parts) - 1
	for i >= 0 && c.parts[i].place > place {
		i--
	}
	if i < 0 || len(c.parts) == maxParts {
		return fmt.Sprintf("ID %d", place+1)
	}
	p := c.parts[i]
	return lineName(p.file, p.line+int(place-p.place))
}

func lineName(file string, line int) string {
	if file == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s line %d", file, line)
}

// progress shows on a terminal how far it is, twice a second.
func (c *checker) progress(what string, done, all uint64) {
	if !c.display || time.Since(c.shown) < 500*time.Millisecond {
		return
	}
	c.shown = time.Now()
	text := fmt.Sprintf("%s IDs, %s/s", group(c.order.count), count(float64(c.order.count)/time.Since(c.began).Seconds()))
	if what != "" {
		text = fmt.Sprintf("%s %.0f %%", what, 100*float64(done)/float64(max(all, 1)))
	} else if c.late > 0 {
		text += fmt.Sprintf(", %s inversions, %s in use", group(c.late), textfmt.AboutSize(c.order.used))
	}
	fmt.Fprintf(c.a.stderr, "\r\x1b[K%s", text)
}

// clear takes the progress away.
func (c *checker) clear() {
	if c.display {
		fmt.Fprint(c.a.stderr, "\r\x1b[K")
	}
}

func (c *checker) report(w io.Writer, f finding) {
	l := c.a.lookOf(c.a.stdout)
	n := c.order.count
	seconds := time.Since(c.began).Seconds()
	var r rows
	r.add("IDs", "%s", l.bold(number(l, n)))
	if f.repeats == 0 {
		r.add("duplicates", "%s", l.green("0"))
	} else {
		r.add("duplicates", "%s", l.red(number(l, f.repeats)))
	}
	for _, x := range f.repeated {
		r.add("duplicate", "%s", c.repeatText(x))
	}
	if shown := uint64(len(f.repeated)); f.repeats > 0 && c.moreRepeats(f) {
		r.add("duplicate", "… the first %d IDs are shown", shown)
	}
	switch {
	case n < 2:
	case f.increases:
		r.add("inversions", "0: every ID is greater than the one before")
	case c.late == 0:
		r.add("inversions", "0")
	default:
		r.add("inversions", "%s: IDs that came after a greater one; one generator alone makes none", number(l, c.late))
	}
	if n > 1 {
		text := number(l, f.k)
		if f.k > 0 {
			text += fmt.Sprintf(": %s, %s, stands so far from its sorted position", c.text(f.kKey), c.where(f.kFrom))
		}
		r.add("k", "%s", text)
	}
	if c.lateTicks > 0 {
		r.add("lateness", "%v: %s came so long after a greater one, in its own time", c.lateness(), c.text(c.latest))
	}
	if n > 0 {
		r.add("min", "%s", c.text(c.min))
		r.add("max", "%s", c.text(c.max))
	}
	if first, last, ok := c.span(); ok {
		r.add("first", "%s", inspect.Stamp(first, c.layout.Unit()))
		r.add("last", "%s", inspect.Stamp(last, c.layout.Unit()))
		span := inspect.Span(-inspect.Age(last, first))
		if d := last.Sub(first); d < time.Hour {
			span = d.String()
		}
		r.add("span", "%s", span)
	}
	if c.other > 0 {
		r.add("foreign", "%s", l.red(number(l, c.other)+" IDs are not of layout "+c.layout.String()))
		r.add("foreign", "%s", c.otherFirst)
	}
	if c.bad > 0 {
		r.add("bad lines", "%s", l.red(number(l, c.bad)))
		for _, text := range c.badFirst {
			r.add("bad line", "%s", text)
		}
	}
	r.add("read as", "%s", c.from)
	r.add("took", "%.2f s, %s IDs/s", seconds, count(float64(n)/max(seconds, 1e-6)))
	r.print(w, l)
}

// moreRepeats reports whether there are repeated IDs that are not shown.
func (c *checker) moreRepeats(f finding) bool {
	shown := uint64(0)
	for _, x := range f.repeated {
		shown += x.times - 1
	}
	return shown < f.repeats
}

// repeatText says where a repeated ID stands, and what is in it.
func (c *checker) repeatText(x repeat) string {
	var at []string
	for _, p := range x.places {
		at = append(at, c.where(p))
	}
	if x.times > uint64(len(x.places)) {
		at = append(at, "…")
	}
	text := fmt.Sprintf("%s %d times: %s", c.text(x.key), x.times, strings.Join(at, ", "))
	if !c.hasLayout {
		return text
	}
	if p, err := c.partsOf(x.key); err == nil {
		text += fmt.Sprintf("; %s node %d seq %d", inspect.Stamp(p.Time, c.layout.Unit()), p.Node, p.Seq)
	}
	return text
}

// number groups digits where people read them, and not where programs do.
func number(l look, n uint64) string {
	if l.terminal {
		return group(n)
	}
	return strconv.FormatUint(n, 10)
}

func (c *checker) appendJSON(b []byte, f finding) []byte {
	num := func(key string, n uint64) {
		b = append(inspect.AppendString(b, key), ':')
		b = append(inspect.AppendNumber(b, n), ',')
	}
	text := func(key, s string) {
		b = append(inspect.AppendString(b, key), ':')
		b = append(inspect.AppendString(b, s), ',')
	}
	b = append(b, '{')
	num("count", c.order.count)
	num("duplicates", f.repeats)
	b = append(b, `"duplicated":[`...)
	for i, x := range f.repeated {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		text("id", c.text(x.key))
		num("times", x.times)
		if c.hasLayout {
			if p, err := c.partsOf(x.key); err == nil {
				b = append(inspect.AppendMillis(append(b, `"time_ms":`...), p.Time), ',')
				num("node", p.Node)
				num("seq", p.Seq)
			}
		}
		b = append(b, `"at":[`...)
		for j, p := range x.places {
			if j > 0 {
				b = append(b, ',')
			}
			b = inspect.AppendString(b, c.where(p))
		}
		b = append(b, "]}"...)
	}
	b = append(b, "],"...)
	num("inversions", c.late)
	num("k", f.k)
	b = fmt.Appendf(b, `"increasing":%t,`, f.increases)
	if c.order.count > 0 {
		text("min", c.text(c.min))
		text("max", c.text(c.max))
	}
	if c.hasLayout {
		text("layout", c.layout.String())
		num("foreign", c.other)
	}
	if first, last, ok := c.span(); ok {
		b = append(inspect.AppendMillis(append(b, `"first_ms":`...), first), ',')
		b = append(inspect.AppendMillis(append(b, `"last_ms":`...), last), ',')
		b = fmt.Appendf(b, `"lateness_ms":%g,`, float64(c.lateness())/1e6)
	}
	num("bad_lines", c.bad)
	b = append(b, `"bad":[`...)
	for i, s := range c.badFirst {
		if i > 0 {
			b = append(b, ',')
		}
		b = inspect.AppendString(b, s)
	}
	b = append(b, "],"...)
	text("from", c.from.String())
	return fmt.Appendf(b, `"seconds":%.3f}`, time.Since(c.began).Seconds())
}
