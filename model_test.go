package firn_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// This file is a second definition of layouts and generators, slow and with big
// integers. The laws and the fuzz targets compare the package with it.

// seeded returns a random generator whose seed is in the log of a failed test.
// FIRN_SEED repeats a run, except for races between goroutines.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FIRN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FIRN_SEED=%d repeats this", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A wideID is an ID of either size as a number.
type wideID struct{ hi, lo uint64 }

func wideOf(id firn.ID) wideID { return wideID{0, uint64(id)} }

func wideOf128(id firn.ID128) wideID {
	hi, lo := id.Uint64s()
	return wideID{hi, lo}
}

// wideOfAny returns an ID of either size as a number.
func wideOfAny(id any) wideID {
	if id, ok := id.(firn.ID); ok {
		return wideOf(id)
	}
	return wideOf128(id.(firn.ID128))
}

func (w wideID) less(v wideID) bool { return w.compare(v) < 0 }
func (w wideID) String() string     { return fmt.Sprintf("%#x", w.big()) }
func (w wideID) id() firn.ID        { return firn.ID(w.lo) }
func (w wideID) id128() firn.ID128  { return firn.ID128FromUint64s(w.hi, w.lo) }

func (w wideID) compare(v wideID) int {
	return cmp.Or(cmp.Compare(w.hi, v.hi), cmp.Compare(w.lo, v.lo))
}

func (w wideID) big() *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(w.hi), 64)
	return n.Or(n, new(big.Int).SetUint64(w.lo))
}

func wideOfBig(n *big.Int) wideID {
	var b [16]byte
	n.FillBytes(b[:])
	return wideOf128(firn.ID128(b))
}

// A bitModel is a layout, parsed from its text bit by bit.
type bitModel struct {
	layout firn.Layout
	pieces []bitPiece // from the top down
	widths map[string]int
	bits   int
	unit   *big.Int // nanoseconds
	epoch  *big.Int // nanoseconds since 1970
}

type bitPiece struct {
	field    string
	width    int
	reversed bool
	value    uint64
}

// modelOf returns the model of a layout.
func modelOf(t testing.TB, l firn.Layout) *bitModel {
	t.Helper()
	m := &bitModel{
		layout: l, bits: l.Bits(), widths: make(map[string]int),
		unit:  big.NewInt(int64(l.Unit())),
		epoch: new(big.Int).Mul(big.NewInt(l.Epoch().UnixMilli()), big.NewInt(1e6)),
	}
	for part := range strings.SplitSeq(l.Definition(), ".") {
		name, rest, _ := strings.Cut(part, ":")
		width, value, _ := strings.Cut(rest, "=")
		var p bitPiece
		p.field, p.reversed = strings.CutSuffix(name, "~")
		var err error
		if p.width, err = strconv.Atoi(width); err != nil {
			t.Fatalf("Definition() of %s = %q: %v", l, l.Definition(), err)
		}
		if p.field == "const" {
			if p.value, err = strconv.ParseUint(value, 10, 64); err != nil {
				t.Fatalf("Definition() of %s = %q: %v", l, l.Definition(), err)
			}
		}
		m.pieces = append(m.pieces, p)
		m.widths[p.field] += p.width
	}
	return m
}

func (m *bitModel) width(field string) uint { return uint(m.widths[field]) }

// most returns the greatest value of a field of up to 64 bits.
func (m *bitModel) most(field string) uint64 { return 1<<m.width(field) - 1 }

// timeOnTop reports whether an ID with a later time is always the greater one.
func (m *bitModel) timeOnTop() bool {
	other := false
	for _, p := range m.pieces {
		if p.width == 0 || p.field == "const" {
			continue
		}
		if p.field == "time" && (other || p.reversed && p.width > 1) {
			return false
		}
		other = other || p.field != "time"
	}
	return true
}

// chanceAboveSeq reports whether random bits lie above the sequence.
func (m *bitModel) chanceAboveSeq() bool {
	random := false
	for _, p := range m.pieces {
		if random && p.field == "seq" && p.width > 0 {
			return true
		}
		random = random || p.field == "rand" && p.width > 0
	}
	return false
}

// place returns the ID with these fields; its random bits are those of random.
func (m *bitModel) place(tick, node, seq uint64, random *big.Int) *big.Int {
	left := map[string]int{"time": m.widths["time"], "node": m.widths["node"], "seq": m.widths["seq"]}
	value := map[string]uint64{"time": tick, "node": node, "seq": seq}
	id := new(big.Int)
	pos := 0
	for _, p := range m.pieces {
		pos += p.width
	}
	for _, p := range m.pieces {
		pos -= p.width
		for i := range p.width { // from the piece's top bit down
			var bit uint
			switch p.field {
			case "const":
				bit = uint(p.value >> (p.width - 1 - i) & 1)
			case "rand":
				bit = random.Bit(pos + p.width - 1 - i)
			default:
				from := left[p.field] - 1 - i
				if p.reversed {
					from = left[p.field] - p.width + i
				}
				bit = uint(value[p.field] >> from & 1)
			}
			id.SetBit(id, pos+p.width-1-i, bit)
		}
		left[p.field] -= p.width
	}
	return id
}

// randomBits returns a mask of the random bits, and fixedBits one of the bits
// that never differ.
func (m *bitModel) randomBits() *big.Int { return m.mark("rand") }

func (m *bitModel) fixedBits() *big.Int {
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(m.bits)), big.NewInt(1))
	for _, field := range []string{"time", "node", "seq", "rand"} {
		all.AndNot(all, m.mark(field))
	}
	return all
}

func (m *bitModel) mark(field string) *big.Int {
	bits := new(big.Int)
	pos := 0
	for _, p := range slices.Backward(m.pieces) {
		for i := range p.width {
			if p.field == field {
				bits.SetBit(bits, pos+i, 1)
			}
		}
		pos += p.width
	}
	return bits
}

// tickAt returns the tick that t lies in, negative before the epoch, and the
// nanoseconds from its beginning.
func (m *bitModel) tickAt(t time.Time) (tick, rest *big.Int) {
	ns := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	ns.Add(ns, big.NewInt(int64(t.Nanosecond())))
	return new(big.Int).DivMod(ns.Sub(ns, m.epoch), m.unit, new(big.Int))
}

// timeOf returns the beginning of a tick.
func (m *bitModel) timeOf(tick uint64) time.Time {
	ns := new(big.Int).Mul(new(big.Int).SetUint64(tick), m.unit)
	sec, nsec := new(big.Int).DivMod(ns.Add(ns, m.epoch), big.NewInt(1e9), new(big.Int))
	return time.Unix(sec.Int64(), nsec.Int64()).UTC()
}

// afterLast returns the end of the last tick. timeOf handles every tick of
// these layouts, but tick 2^64 of a 64-bit field, one past the last, would not
// be a tick number.
func (m *bitModel) afterLast() (time.Time, bool) {
	if m.width("time") == 64 {
		return time.Time{}, false
	}
	return m.timeOf(m.most("time") + 1), true
}

// presetLayouts returns all presets, and variants of them that move bits.
func presetLayouts() (layouts []firn.Layout) {
	for p := range firn.Presets() {
		layouts = append(layouts, p.Layout)
	}
	for _, text := range []string{
		"default,node-bits=0", "default,node-bits=5,seq-bits=7,epoch=1970-01-01T00:00:00Z", "default,node-bits=62,seq-bits=0",
		"hazelcast,node-bits=0,seq-bits=0", "hazelcast,node-bits=31", "hazelcast,node-bits=33,seq-bits=20", "hazelcast,epoch=-1",
		"snowcast,nodes=128", "snowcast,nodes=300,epoch=0", "snowcast,nodes=4096",
		"lable,mode=time-sequential", "lable,mode=time-sequential,cluster=15", "lable,cluster=9",
		"flake-idgen,epoch=1300000000001", "uuidv7,epoch=2020-01-01T00:00:00Z",
	} {
		layouts = append(layouts, firn.MustParseLayout(text))
	}
	return layouts
}

// randomLayout returns a random layout: fields in pieces, in any order. If
// generate is set, a generator can use it.
func randomLayout(t testing.TB, r *rand.Rand, generate bool) firn.Layout {
	t.Helper()
	size := 64
	if r.IntN(3) == 0 {
		size = 128
	}
	left := size
	take := func(least, most int) int {
		n := least + r.IntN(max(1, min(most, left)-least+1))
		left -= n
		return n
	}
	units := []string{"1ms", "10ms", "1s", "4ms", "1µs", "333333ns", "7ns", "1h0m0s", "256ms", "1.5s"}
	unit := units[r.IntN(len(units))]
	length := must.Get(time.ParseDuration(unit))(t)
	mostTime := 64
	for math.Ldexp(length.Seconds(), mostTime) > 1<<54 { // the limit of a layout
		mostTime--
	}
	mostSeq := 62
	if generate {
		mostTime, mostSeq = min(mostTime, 45), 17 // tick and sequence share 63 bits
	}
	widths := map[string]int{"time": take(4, mostTime)}
	widths["seq"] = take(0, mostSeq)
	widths["node"] = take(0, 64)
	if r.IntN(3) == 0 {
		widths["const"] = take(0, 20)
	}
	if r.IntN(4) == 0 {
		widths["rand"] = take(0, 80)
	}
	var pieces []string
	for _, field := range []string{"time", "seq", "node", "const", "rand"} {
		for width := widths[field]; ; {
			n := width
			if r.IntN(2) == 0 && len(pieces) < 11 {
				n = r.IntN(width + 1)
			}
			width -= n
			text := fmt.Sprintf("%s:%d", field, n)
			switch {
			case field == "const":
				text += fmt.Sprintf("=%d", r.Uint64()>>(64-n))
			case field == "time" && r.IntN(5) == 0:
				text = fmt.Sprintf("time~:%d", n)
			}
			pieces = append(pieces, text)
			if width == 0 {
				break
			}
		}
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	}
	epochs := []string{"0", "-1", "1767225600000", "2026-01-01T00:00:00Z", "-777", "1999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z"}
	if generate {
		// The last one is the zero Time, which in a grant does not mean a time.
		epochs = epochs[:len(epochs)-1]
	}
	fields := strings.Join(pieces, ".")
	text := fmt.Sprintf("bits=%s,unit=%s,epoch=%s", fields, unit, epochs[r.IntN(len(epochs))])
	l, err := firn.ParseLayout(text)
	if err != nil {
		t.Fatalf("ParseLayout(%q): %v", text, err)
	}
	if got := l.Definition(); got != fields {
		t.Fatalf("ParseLayout(%q).Definition() = %q", text, got)
	}
	return l
}

// randomValue returns a number of up to most, with an increased probability for
// the ends.
func randomValue(r *rand.Rand, most uint64) uint64 {
	switch r.IntN(6) {
	case 0:
		return 0
	case 1:
		return most
	case 2:
		return most - min(most, r.Uint64N(3))
	case 3:
		return r.Uint64() & most >> r.IntN(64)
	}
	return r.Uint64() & most
}

// anyGenerator is a GeneratorOf.
type anyGenerator interface {
	tryNext() (wideID, error)
	take(ctx context.Context, how string, n int) (b anyBatch, hold time.Duration, err error)

	Extend(time.Time) error
	Switch(firn.Grant) error
	Seal() time.Time
	Used() time.Time
	Stats() firn.Stats
}

// An anyBatch is a BatchOf with its contents, or IDs that came one by one.
type anyBatch struct {
	ids  []wideID
	len  int
	runs []wideID // the IDs of its runs; nil if it has none
}

// A gen is a GeneratorOf whose IDs are numbers.
type gen[I firn.AnyID] struct{ *firn.GeneratorOf[I] }

func newAny(l firn.Layout, grant firn.Grant, o *firn.Options) (anyGenerator, error) {
	if l.Bits() == 128 {
		g, err := firn.NewGenerator128(l, grant, o)
		return gen[firn.ID128]{g}, err
	}
	g, err := firn.NewGenerator(l, grant, o)
	return gen[firn.ID]{g}, err
}

func mustAny(t testing.TB, l firn.Layout, grant firn.Grant, o *firn.Options) anyGenerator {
	t.Helper()
	g, err := newAny(l, grant, o)
	if err != nil {
		t.Fatalf("NewGenerator(%s, %+v, %+v): %v", l, grant, o, err)
	}
	return g
}

func (g gen[I]) tryNext() (wideID, error) {
	id, err := g.TryNext()
	return wideOfAny(id), err
}

// take takes n IDs, or one, by the method called how.
func (g gen[I]) take(ctx context.Context, how string, n int) (b anyBatch, hold time.Duration, err error) {
	var ids []I
	var batch firn.BatchOf[I]
	switch how {
	case "TryNext", "Next":
		next := g.TryNext
		if how == "Next" {
			next = func() (I, error) { return g.Next(ctx) }
		}
		var id, none I
		if id, err = next(); err == nil || id != none {
			ids = append(ids, id)
		}
	case "Fill":
		ids = make([]I, n)
		if err = g.Fill(ctx, ids); err != nil {
			return b, 0, err
		}
	case "Reserve":
		batch, hold, err = g.Reserve(n)
	case "NextBatch":
		batch, err = g.NextBatch(ctx, n)
	case "TryNextBatch":
		batch, err = g.TryNextBatch(n)
	}
	if ids == nil {
		return batchOf(batch), hold, err
	}
	for _, id := range ids {
		b.ids = append(b.ids, wideOfAny(id))
	}
	b.len = len(b.ids)
	return b, hold, err
}

func batchOf[I firn.AnyID](b firn.BatchOf[I]) anyBatch {
	out := anyBatch{len: b.Len()}
	for id := range b.All() {
		out.ids = append(out.ids, wideOfAny(id))
	}
	if runs := b.Runs(); runs != nil {
		again, err := firn.BatchFromRuns(runs...)
		if err != nil {
			panic(err)
		}
		for id := range again.All() {
			out.runs = append(out.runs, wideOfAny(id))
		}
	}
	return out
}

// decomposeAny decomposes an ID of either size.
func decomposeAny(l firn.Layout, w wideID) (firn.Parts, error) {
	if l.Bits() == 128 {
		return l.Decompose128(w.id128())
	}
	return l.Decompose(w.id())
}

// decompose decomposes an ID of a generator.
func decompose(t testing.TB, l firn.Layout, w wideID) firn.Parts {
	t.Helper()
	p, err := decomposeAny(l, w)
	if err != nil {
		t.Fatalf("Decompose(%v) of %s: %v", w, l, err)
	}
	return p
}

// drain takes IDs without waiting, up to most, and returns what stopped it.
func drain(g anyGenerator, most int) (ids []wideID, err error) {
	for range most {
		id, err := g.tryNext()
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// A taker is a method that takes IDs.
type taker struct {
	name  string
	batch bool // it takes n IDs at once
	waits bool
	model func(s *slotModel, now time.Time, n uint64) outcome
}

var (
	tryNext  = taker{"TryNext", false, false, (*slotModel).takeOne}
	next     = taker{"Next", false, true, tryNext.model}
	reserve  = taker{"Reserve", true, false, (*slotModel).reserve}
	batch    = taker{"NextBatch", true, true, (*slotModel).batch}
	fill     = taker{"Fill", false, true, (*slotModel).fill}
	tryBatch = taker{"TryNextBatch", true, false, (*slotModel).tryBatch}
)

// takers are all of them.
func takers() []taker { return []taker{tryNext, next, fill, reserve, batch, tryBatch} }

// A slotModel is a generator as the documents describe it, for one caller.
type slotModel struct {
	*bitModel
	ahead, lag time.Duration

	endTick uint64 // exclusive
	node    uint64
	static  bool
	begun   bool   // a static term knows its beginning
	start   uint64 // beginning of a static grant
	first   uint64 // the first slot that may be used
	next    uint64 // the first unused slot
	limit   uint64 // exclusive
	floor   uint64 // what earlier terms have used, to the end of the tick
	debt    bool   // the last slot was reserved beyond what the clock allowed
	debtNow uint64 // the clock's tick then
	made    uint64
	sealed  bool
}

// An outcome is what a call should do. A Fill may end with an error and have
// taken slots.
type outcome struct {
	err  error         // nil, ErrSealed, ErrGrantOver, ErrTimeOver, ErrBeforeEpoch, ErrExhausted or errBack
	wait time.Duration // with ErrBeforeEpoch, ErrExhausted and errBack
	back time.Duration // with errBack
	slot uint64        // the first slot taken
	n    uint64
	more []uint64 // slots taken after these
	hold time.Duration
}

// slots returns all slots taken.
func (o outcome) slots() (all []uint64) {
	for i := range o.n {
		all = append(all, o.slot+i)
	}
	return append(all, o.more...)
}

// errBack represents a *ClockError of a clock that went back.
var errBack = errors.New("the clock went back")

func newSlotModel(m *bitModel, grant firn.Grant, o firn.Options) *slotModel {
	s := &slotModel{bitModel: m, ahead: o.MaxAhead, lag: o.MaxLag}
	if s.lag == 0 {
		s.lag = 10 * time.Second
	}
	time, seq := m.width("time"), m.width("seq")
	s.endTick = 1 << time
	if time+seq >= 63 {
		s.endTick = 1<<(63-seq) - 1
	}
	s.begin(grant)
	return s
}

// begin starts a term.
func (s *slotModel) begin(g firn.Grant) {
	s.node, s.static, s.begun = g.Node, g.From.IsZero(), false
	s.first = 0
	if !s.static {
		tick, rest := s.tickAt(g.From)
		if rest.Sign() > 0 {
			tick.Add(tick, big.NewInt(1))
		}
		s.first = s.clamp(tick) << s.width("seq")
		if s.first == 0 && s.place(0, s.node, 0, new(big.Int)).Sign() == 0 {
			s.first = 1 // slot 0 would be the ID 0
		}
	}
	s.start = 0
	s.first = max(s.first, s.floor)
	s.next = s.first
	s.limit = s.end(g.Until)
}

// clamp limits a tick to those that the word can hold.
func (s *slotModel) clamp(tick *big.Int) uint64 {
	switch {
	case tick.Sign() < 0:
		return 0
	case !tick.IsUint64():
		return s.endTick
	}
	return min(tick.Uint64(), s.endTick)
}

// end returns where a grant until this time ends.
func (s *slotModel) end(until time.Time) uint64 {
	if until.IsZero() {
		return s.endTick << s.width("seq")
	}
	tick, _ := s.tickAt(until)
	return s.clamp(tick) << s.width("seq")
}

// view is the beginning of every call: it returns the next slot, and the end of
// what the clock allows.
func (s *slotModel) view(now time.Time) (slot, allowed uint64, o outcome) {
	if s.sealed {
		return 0, 0, outcome{err: firn.ErrSealed}
	}
	tick, _ := s.tickAt(now)
	if tick.Sign() < 0 {
		return 0, 0, outcome{err: firn.ErrBeforeEpoch, wait: s.timeOf(0).Sub(now)}
	}
	allowed = (min(s.clamp(s.aheadTick(now)), s.endTick-1) + 1) << s.width("seq")
	if s.static && !s.begun {
		s.next = max(s.first, allowed)
		s.begun = s.next < s.limit
		s.start = s.next
	}
	return max(s.next, s.clamp(tick)<<s.width("seq")), allowed, outcome{}
}

// aheadTick returns the last tick that the clock and MaxAhead allow.
func (s *slotModel) aheadTick(now time.Time) *big.Int {
	tick, rest := s.tickAt(now)
	ns := tick.Mul(tick, s.unit)
	ns.Add(ns, rest).Add(ns, big.NewInt(int64(s.ahead)))
	return ns.Div(ns, s.unit)
}

func (s *slotModel) over() outcome {
	if s.limit == s.endTick<<s.width("seq") {
		return outcome{err: firn.ErrTimeOver}
	}
	return outcome{err: firn.ErrGrantOver}
}

// until returns the time until MaxAhead allows a tick.
func (s *slotModel) until(tick uint64, now time.Time) time.Duration {
	at, rest := s.tickAt(now)
	ns := new(big.Int).Sub(new(big.Int).SetUint64(tick), at)
	if ns.Sign() <= 0 {
		return 0
	}
	return saturate(ns.Mul(ns, s.unit)) - time.Duration(rest.Int64()) - s.ahead
}

// saturate limits ns to the longest Duration.
func saturate(ns *big.Int) time.Duration {
	if !ns.IsInt64() {
		return time.Duration(math.MaxInt64)
	}
	return time.Duration(ns.Int64())
}

// notYet returns the outcome of a call that needs slot to be allowed.
func (s *slotModel) notYet(now time.Time, slot uint64) outcome {
	o := outcome{err: firn.ErrExhausted, wait: max(1, s.until(slot>>s.width("seq"), now))}
	reached := s.reached()
	switch tick, _ := s.tickAt(now); {
	case reached == 0: // no ID made yet, and the grant begins in the future
	case s.debt:
		if ticks := new(big.Int).Sub(new(big.Int).SetUint64(s.debtNow), tick); ticks.Sign() > 0 {
			o.back = saturate(ticks.Mul(ticks, s.unit))
		}
	default:
		o.back = s.until((reached-1)>>s.width("seq"), now)
	}
	if o.back > 0 {
		o.err = errBack
	}
	return o
}

// take is the model of TryNext, or of a piece of Fill.
func (s *slotModel) take(now time.Time, want uint64) outcome {
	slot, allowed, o := s.view(now)
	switch {
	case o.err != nil:
		return o
	case slot >= s.limit:
		return s.over()
	case slot >= min(s.limit, allowed):
		return s.notYet(now, slot)
	}
	o.slot, o.n = slot, min(want, min(s.limit, allowed)-slot)
	s.use(o)
	return o
}

// takeOne is the model of TryNext and Next.
func (s *slotModel) takeOne(now time.Time, _ uint64) outcome { return s.take(now, 1) }

// maxStaticBatch returns the maximum number of slots in a batch under a static
// grant: those of a minute, or those that MaxAhead allows at once.
func (s *slotModel) maxStaticBatch() *big.Int {
	ticks := new(big.Int).Div(big.NewInt(int64(time.Minute)), s.unit)
	allowed := new(big.Int).Div(big.NewInt(int64(s.ahead)), s.unit)
	if allowed.Add(allowed, big.NewInt(1)).Cmp(ticks) > 0 {
		ticks = allowed
	}
	return ticks.Lsh(ticks, s.width("seq"))
}

// tooLarge reports whether a static grant forbids a batch of n.
func (s *slotModel) tooLarge(n uint64) bool {
	return s.static && new(big.Int).SetUint64(n).Cmp(s.maxStaticBatch()) > 0
}

// reserve is the model of Reserve.
func (s *slotModel) reserve(now time.Time, n uint64) outcome {
	if s.tooLarge(n) {
		return outcome{err: firn.ErrBatchTooLarge}
	}
	slot, allowed, o := s.view(now)
	switch {
	case o.err != nil:
		return o
	case slot >= s.limit || n > s.limit-slot:
		return s.over()
	}
	if s.static {
		// It ends no further beyond what is allowed than the maximum span of a
		// batch.
		end := new(big.Int).Add(new(big.Int).SetUint64(allowed), s.maxStaticBatch())
		if over := new(big.Int).SetUint64(slot + n); over.Sub(over, end).Sign() > 0 {
			return s.notYet(now, allowed+over.Uint64()-1)
		}
	}
	tick, _ := s.tickAt(now)
	clock := s.clamp(tick)
	ticks := new(big.Int).SetUint64((slot + n - clock<<s.width("seq")) >> s.width("seq"))
	ticks.Mul(ticks, s.unit)
	o = outcome{slot: slot, n: n, hold: max(0, saturate(ticks)-s.ahead)}
	s.use(o)
	if slot+n > allowed {
		s.debt, s.debtNow = true, clock
	}
	return o
}

// batch is the model of NextBatch for a call that may not wait.
func (s *slotModel) batch(now time.Time, n uint64) outcome {
	if s.tooLarge(n) {
		return outcome{err: firn.ErrBatchTooLarge}
	}
	slot, allowed, o := s.view(now)
	switch {
	case o.err != nil:
		return o
	case slot >= s.limit || n > s.limit-slot:
		return s.over()
	case slot+n > allowed:
		return s.notYet(now, slot+n-1)
	}
	o = outcome{slot: slot, n: n}
	s.use(o)
	return o
}

// tryBatch is the model of TryNextBatch.
func (s *slotModel) tryBatch(now time.Time, n uint64) outcome {
	o := s.batch(now, n)
	// At the end of a tick, MaxAhead allows the most beyond the clock.
	atOnce := new(big.Int).Add(s.unit, big.NewInt(int64(s.ahead)-1))
	atOnce.Add(atOnce.Div(atOnce, s.unit), big.NewInt(1)).Lsh(atOnce, s.width("seq"))
	if errors.Is(o.err, firn.ErrExhausted) && atOnce.Cmp(new(big.Int).SetUint64(n)) < 0 {
		return outcome{err: firn.ErrBatchTooLarge}
	}
	return o
}

// fill is the model of Fill for a call that may not wait: it takes what is free
// in pieces.
func (s *slotModel) fill(now time.Time, n uint64) outcome {
	all := s.take(now, n)
	for all.err == nil && uint64(len(all.slots())) < n {
		piece := s.take(now, n-uint64(len(all.slots())))
		all.more = append(all.more, piece.slots()...)
		piece.slot, piece.n, piece.more = all.slot, all.n, all.more
		all = piece
	}
	return all
}

func (s *slotModel) use(o outcome) {
	s.next = o.slot + o.n
	s.made += o.n
	s.debt = false
}

// reached returns the end of what was used, under this grant or earlier ones.
func (s *slotModel) reached() uint64 {
	if s.used() {
		return s.next
	}
	return s.floor
}

// usedUntil returns the end of the tick of the last ID made.
func (s *slotModel) usedUntil() time.Time {
	if s.reached() == 0 {
		return time.Time{}
	}
	return s.timeOf((s.reached()-1)>>s.width("seq") + 1)
}

// used reports whether the grant has made an ID.
func (s *slotModel) used() bool { return s.next > max(s.first, s.start) }

// switchTo is the model of Switch, for a valid grant.
func (s *slotModel) switchTo(g firn.Grant) {
	if s.used() {
		s.floor = s.next + s.most("seq")
		s.floor -= s.floor & s.most("seq")
	}
	s.begin(g)
}

// slotOf returns the slot of an ID of this layout.
func (s *slotModel) slotOf(t testing.TB, w wideID) uint64 {
	p := decompose(t, s.layout, w)
	tick, rest := s.tickAt(p.Time)
	if rest.Sign() != 0 || !tick.IsUint64() {
		t.Fatalf("Decompose(%v) of %s gives the time %v, which is not the beginning of a tick", w, s.layout, p.Time)
	}
	return tick.Uint64()<<s.width("seq") | p.Seq
}

// idOf returns the ID of a slot, with the random bits of like.
func (s *slotModel) idOf(slot uint64, like wideID) wideID {
	return wideOfBig(s.place(slot>>s.width("seq"), s.node, slot&s.most("seq"), like.big()))
}
