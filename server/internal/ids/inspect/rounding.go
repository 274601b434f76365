package inspect

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Software that keeps numbers as 64-bit floats, or writes them with so many
// digits, rounds IDs. A rounded number is a valid ID of another node, so only
// its digits show it: they end in zeros, binary or decimal, more often than
// those of a generator. What a generator's own zeros show is no evidence: the
// sequence 0 of a quiet system, or a node ID that is a multiple of 256.

// Unrounded says how to export IDs with all digits.
const Unrounded = "export the IDs as text, as psql -At or CAST(id AS CHAR) do: spreadsheets, JavaScript, data " +
	"frames and some JSON tools round them"

// A Rounding is what the digits of a column say.
type Rounding struct {
	How   string // how the IDs are rounded, "" if nothing speaks for it
	IDs   int    // that show it
	Sure  bool   // otherwise it is a doubt
	Quiet bool   // that a quiet system causes as well
}

func (r Rounding) String() string {
	switch {
	case r.Sure:
		return "rounded " + r.How + ", without their last digits"
	case r.Quiet:
		return r.How + ": compare one with its database"
	}
	return "may be rounded " + r.How
}

// Digits judges the digits of a column of IDs. It must be made by NewDigits,
// and is not safe for concurrent use.
type Digits struct {
	now  time.Time
	seen map[firn.ID128]struct{} // the first maxDistinct: rows of few IDs are no sample
	max  firn.ID128

	count  int              // different numbers that a spreadsheet would round
	again  int              // others that are equal to one of these
	clocks int              // those that may be a Unix time
	looks  int              // those that look rounded, and hardly by chance
	tens   [maxZeros]int    // by their decimal zeros
	trials [maxZeros]int    // those that can show a rounding to so many zeros
	hits   [maxZeros]int    // and do
	ways   [maxZeros]ways   // the lowest bits of these; [0] is of short
	ends   [76][129]float64 // numbers above 2^53, by the bits that a float drops, and their zeros

	short, shortChance, shortTrials float64 // numbers that are the text of a float, and not a float
}

const (
	maxDistinct = 1 << 16
	maxZeros    = 25
	leastBits   = 18   // how improbable a coincidence must be, as a base-2 logarithm
	leastExtra  = 0.05 // the share of IDs that chance does not explain

	// repeatedBits is enough for a doubt if many IDs occur again: rounding may
	// be the cause, and leaves few of them.
	repeatedBits = 6
)

// ways collects a few different endings. If one ending shows up in all hits,
// one hit tells as much as all: by cron at full seconds, node 10 ends with 0.
type ways []uint64

func (w *ways) add(n uint64) {
	if n &= 1<<16 - 1; len(*w) < 4 && !slices.Contains(*w, n) {
		*w = append(*w, n)
	}
}

// NewDigits returns Digits that judge by the time now.
func NewDigits(now time.Time) *Digits { return &Digits{now: now, seen: make(map[firn.ID128]struct{})} }

// zeros returns how many binary zeros are at the end of hi<<64 | lo, and how
// many decimal ones.
func zeros(hi, lo uint64) (two, ten int) {
	if two = bits.TrailingZeros64(lo); lo == 0 {
		two = 64 + bits.TrailingZeros64(hi)
	}
	for hi|lo != 0 {
		rest := hi % 10
		quotient, rest := bits.Div64(rest, lo, 10)
		if rest != 0 {
			break
		}
		hi, lo, ten = hi/10, quotient, ten+1
	}
	return two, ten
}

// leastRounded is the smallest number that has more digits than a spreadsheet
// keeps.
const leastRounded = 1e15

// isText reports whether a number is the shortest text of a float, as
// JavaScript writes it, and not the float itself. chance is the share of all
// numbers of its size that are.
func isText(v uint64) (is bool, chance float64) {
	drop := bits.Len64(v) - 53
	if drop < 2 {
		return false, 0
	}
	chance = min(math.Ldexp(1, -drop), 0.1*(1-math.Ldexp(1, 1-drop)))
	if v%10 != 0 || v&(1<<drop-1) == 0 {
		return false, chance
	}
	return strconv.FormatFloat(float64(v), 'f', -1, 64) == strconv.FormatUint(v, 10), chance
}

// looksRounded says how one number looks rounded, or returns "". chance is how
// often that is a coincidence.
func looksRounded(v uint64, now time.Time) (how string, chance float64) {
	two, ten := zeros(0, v)
	digits := len(strconv.FormatUint(v, 10))
	text, chance := isText(v)
	switch {
	case v < leastRounded || ten >= 6 && isClock(v, now):
	case ten >= 3 && digits >= 18 && two < ten+4, ten >= 2 && digits == 17 && two < ten+4:
		if text && digits-ten > 15 {
			return byFloat, min(chance, math.Pow10(-ten))
		}
		return toDigits(digits - ten), math.Pow10(-ten)
	case text:
		return byFloat, chance
	}
	return "", 1
}

// rounded says of a decimal number that it looks rounded, if it does. A small
// one may be so by chance: one of 13 below 2^56.
func rounded(n *form.Decoding, now time.Time) string {
	if !n.Form.Is(firn.Decimal) || n.Bits() != 64 {
		return ""
	}
	how, _ := looksRounded(n.Uint64(), now)
	if how == "" {
		return ""
	}
	return "it looks rounded " + how + ": the last digits of the ID are lost then"
}

const byFloat = "as JavaScript and JSON tools do above 2^53"

func toDigits(n int) string {
	if n == 15 {
		return "to 15 digits, as spreadsheets do"
	}
	return fmt.Sprintf("to %d digits", n)
}

// isClock reports whether a number is a Unix time of the last 20 years in ms,
// µs or ns.
func isClock(v uint64, now time.Time) bool {
	for _, unit := range units[1:] {
		if age := float64(now.Unix()) - float64(v)*unit.seconds; age >= -Year && age <= usualAge {
			return true
		}
	}
	return false
}

// Add adds an ID. Those that are not 64 or 128 bits wide have no effect.
func (d *Digits) Add(id form.ID) {
	if len(id) != 8 && len(id) != 16 {
		return
	}
	n := id.Number()
	hi, lo := n.Uint64s()
	if hi == 0 && lo < leastRounded {
		return
	}
	if _, again := d.seen[n]; again {
		d.again++
		return
	}
	if len(d.seen) < maxDistinct {
		d.seen[n] = struct{}{}
	}
	if n.Compare(d.max) > 0 {
		d.max = n
	}
	d.count++
	two, ten := zeros(hi, lo)
	d.tens[min(ten, maxZeros-1)]++
	// More binary zeros than decimal ones are a generator's: rounding to
	// decimal digits leaves none.
	for z := 1; z <= min(two, maxZeros-1); z++ {
		if two < z+4 || z > 8 {
			d.trials[z]++
			if ten >= z {
				d.hits[z]++
				d.ways[z].add(lo)
			}
		}
	}
	size := bits.Len64(lo)
	if hi > 0 {
		size = 64 + bits.Len64(hi)
	}
	if drop := size - 53; drop > 0 {
		d.ends[drop][two]++
	}
	if hi > 0 {
		return
	}
	if isClock(lo, d.now) {
		d.clocks++
	}
	if ten > 0 {
		if _, chance := looksRounded(lo, d.now); chance < 0.01 {
			d.looks++
		}
	}
	if is, chance := isText(lo); chance > 0 {
		d.shortTrials++
		d.shortChance += chance
		if is {
			d.short++
			d.ways[0].add(lo)
		}
	}
}

// surprise returns how improbable it is that so many trials hit by chance, as a
// base-2 logarithm.
func surprise(trials, hits, chance float64) float64 {
	if trials == 0 || hits <= chance*trials {
		return 0
	}
	q := hits / trials
	e := q * math.Log2(q/chance)
	if q < 1 {
		e += (1 - q) * math.Log2((1-q)/(1-chance))
	}
	return trials * e
}

// Rounding returns the result so far. A layout and the node IDs in use, if they
// are known, tell which bits a generator leaves zero.
func (d *Digits) Rounding(l firn.Layout, nodes []uint64) (r Rounding) {
	most, doubt := float64(leastBits), Rounding{}
	if 20*d.again > d.count {
		most = repeatedBits
	}
	consider := func(e, ids, extra float64, isMany bool, how string) {
		if e >= most && extra >= leastExtra*float64(d.count) {
			most, r = e, Rounding{How: how, IDs: int(ids), Sure: e >= leastBits && isMany}
		}
	}
	if d.shortTrials > 0 {
		consider(surprise(d.shortTrials, d.short, d.shortChance/d.shortTrials), d.short, d.short-d.shortChance,
			len(d.ways[0]) >= min(4, int(d.short)), byFloat)
	}
	ids := 0
	for z := maxZeros - 1; z > 0; z-- {
		ids += d.tens[z]
		trials, hits, chance := float64(d.trials[z]), float64(d.hits[z]), math.Pow(5, -float64(z))
		e := surprise(trials, hits, chance)
		if l.IsZero() && d.clocks == d.count && z%3 == 0 {
			if e >= leastBits {
				how := "all end in " + strconv.Itoa(z) + " zeros, as Unix times do, and rounded IDs"
				doubt = Rounding{How: how, IDs: ids, Quiet: true}
			}
			continue
		}
		consider(e, float64(ids), hits-chance*trials, z > 8 || len(d.ways[z]) >= min(4, d.hits[z]),
			toDigits(len(firn.Decimal.Text128(d.max))-z))
	}
	whole, e, hits, extra := d.binary(l, nodes)
	consider(e, hits, extra, true, "to 53 bits, as floats are")
	switch {
	case r.How != "":
	case doubt.How != "":
		r = doubt
	case whole:
		r = Rounding{How: "all are exactly 64-bit floats, as IDs of a quiet system are, and rounded ones",
			IDs: d.count, Quiet: true}
	case 10*d.looks > d.count:
		r = Rounding{How: "in part", IDs: d.looks}
	}
	if d.again > 0 { // of the different numbers so far
		r.IDs = r.IDs * (d.count + d.again) / d.count
	}
	return r
}

// binary judges whether floats have dropped the lowest bits. whole reports
// whether all IDs are floats, which is improbable for chance, though not for a
// generator whose lowest bits are zero.
func (d *Digits) binary(l firn.Layout, nodes []uint64) (whole bool, e, hits, extra float64) {
	var all, floats, narrow, dropped, odd float64
	least := 0
	for drop := range d.ends {
		for two, n := range d.ends[drop] {
			if n == 0 {
				continue
			}
			if all += n; least == 0 {
				least = drop
			}
			if two >= drop {
				floats += n
				dropped += n * float64(drop)
			}
			if two == drop {
				odd += n
			}
			if two >= drop+29 { // a 32-bit float has so many bits less
				narrow += n
			}
		}
	}
	whole = floats > 0 && floats == all && (dropped >= 12 || d.again > 0)
	for drop := range d.ends {
		// Of the field that loses its lowest bits, values other than 0 count.
		from, to := 0, drop+2
		if !l.IsZero() {
			p := fieldAt(l, drop)
			if from, to = p.Pos, p.Pos+p.Width; p.Field == firn.FieldNode || p.Field == firn.FieldConst {
				continue
			}
		} else if !whole || odd < 0.1*floats || odd > 0.9*floats {
			continue // the same bits end all IDs, or those of one node
		}
		trials, rounded := 0.0, 0.0
		for two, n := range d.ends[drop][:min(to, len(d.ends[drop]))] {
			if trials += n; two >= drop {
				rounded += n
			}
		}
		chance := math.Ldexp(1, from-drop)
		if drop > from {
			e += surprise(trials, rounded, chance)
			hits += rounded
			extra += rounded - chance*trials
		}
	}
	if p := fieldAt(l, least); whole && p.Field == firn.FieldNode && p.Pos < least {
		distinct := make(map[uint64]bool)
		for _, node := range nodes {
			distinct[node>>p.Low&(1<<p.Width-1)] = true
		}
		delete(distinct, 0)
		// One such node ID may have been chosen: people like 256 and 512.
		if n := float64(len(distinct)); n > 1 || least-p.Pos >= leastBits {
			e, extra = max(e, n*float64(least-p.Pos)), floats
		}
	}
	if narrow > 0 && narrow == all {
		e, extra = max(e, 29*all), all
	}
	if hits = max(hits, extra); whole {
		hits = floats
	}
	return whole, e, hits, extra
}

// fieldAt returns the piece of a layout that has a bit, or the zero Piece.
func fieldAt(l firn.Layout, bit int) firn.Piece {
	if l.IsZero() {
		return firn.Piece{}
	}
	pieces := l.Pieces()
	i := slices.IndexFunc(pieces, func(p firn.Piece) bool { return p.Pos <= bit && bit < p.Pos+p.Width })
	if i < 0 {
		return pieces[0]
	}
	return pieces[i]
}
