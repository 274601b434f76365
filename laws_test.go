package firn_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// someLayouts returns all presets and n random layouts.
func someLayouts(t *testing.T, r *rand.Rand, n int) []firn.Layout {
	layouts := presetLayouts()
	for range n {
		layouts = append(layouts, randomLayout(t, r, false))
	}
	return layouts
}

// TestWithEpochLaw: a layout with another epoch has that epoch, and still
// matches its text. An epoch that no text can express gives an invalid layout,
// never a different one.
func TestWithEpochLaw(t *testing.T) {
	for _, epoch := range []time.Time{
		{},
		time.Date(1, 1, 1, 0, 0, 0, 999_999, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 1, 1, 0, 0, 0, 1_000_000, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(1<<60, 0), // the milliseconds exceed 64 bits
		time.Unix(-1<<61, 0),
	} {
		l := firn.Default().WithEpoch(epoch)
		if year := epoch.Year(); year < 1 || year > 9999 {
			if _, err := l.Compose(firn.Parts{Time: epoch}); l != (firn.Layout{}) || err == nil {
				t.Errorf("WithEpoch(%v) = %v, want the zero Layout, and that it is refused", epoch, l)
			}
			continue
		}
		if got, want := l.Epoch(), epoch.Truncate(time.Millisecond); !got.Equal(want) {
			t.Errorf("WithEpoch(%v): Epoch() = %v, want %v", epoch, got, want)
		}
		if got, err := firn.ParseLayout(l.String()); err != nil || got != l {
			t.Errorf("WithEpoch(%v): ParseLayout(%q) = %v, %v", epoch, l, got, err)
		}
	}
}

// checkLayoutText: a layout matches its text.
func checkLayoutText(t *testing.T, l firn.Layout) {
	t.Helper()
	text := l.String()
	if got, err := firn.ParseLayout(text); err != nil || got != l {
		t.Errorf("ParseLayout(%q) = %+v, %v, want %+v", text, got, err, l)
	}
	b, err := l.MarshalText()
	var got firn.Layout
	if err := errors.Join(err, got.UnmarshalText(b)); err != nil || got != l || string(b) != text {
		t.Errorf("UnmarshalText(%q) of %s = %s, %v", b, l, got, err)
	}
	if l.Bits() > 128 {
		return // these cannot be defined by bits: 160 bits are only for presets
	}
	own := fmt.Sprintf("bits=%s,unit=%v,epoch=%d", l.Definition(), l.Unit(), l.Epoch().UnixMilli())
	spelled, err := firn.ParseLayout(own)
	if err != nil || spelled.Definition() != l.Definition() || !spelled.Epoch().Equal(l.Epoch()) || spelled.Unit() != l.Unit() {
		t.Errorf("ParseLayout(%q) = %s, %v: it is not %s spelled out", own, spelled, err, l)
	}
	total := 0
	for _, p := range l.Pieces() {
		total += p.Width
	}
	if total != l.Bits() {
		t.Errorf("Pieces() of %s add up to %d bits, want %d", l, total, l.Bits())
	}
}

func TestComposeLaw(t *testing.T) {
	r := seeded(t)
	for _, l := range someLayouts(t, r, 600) {
		checkLayoutText(t, l)
		m := modelOf(t, l)
		checkOrdered(t, m)
		for range 20 {
			tick := randomValue(r, m.most("time"))
			checkCompose(t, m, tick, randomValue(r, m.most("node")), randomValue(r, m.most("seq")), r)
		}
		checkRangeErrors(t, m)
		if t.Failed() {
			return
		}
	}
}

// checkOrdered: Ordered reports whether the time is on top. If random bits lie
// above the sequence, TestGeneratorLaw decides.
func checkOrdered(t *testing.T, m *bitModel) {
	t.Helper()
	if got, want := m.layout.Ordered(), m.timeOnTop(); got != want && (got || !m.chanceAboveSeq()) {
		t.Errorf("Ordered() of %s = %v, want %v", m.layout, got, want)
	}
}

// checkCompose: the bits of an ID are exactly those of its parts.
func checkCompose(t *testing.T, m *bitModel, tick, node, seq uint64, r *rand.Rand) {
	t.Helper()
	l := m.layout
	parts := firn.Parts{Time: m.timeOf(tick), Node: node, Seq: seq}
	random := new(big.Int)
	for range 3 {
		random.Or(random.Lsh(random, 64), new(big.Int).SetUint64(r.Uint64()))
	}
	full := m.place(tick, node, seq, random)
	raw := full.FillBytes(make([]byte, m.bits/8))
	same := func(what string, got firn.Parts, err error) {
		t.Helper()
		if err != nil || got != parts {
			t.Errorf("%s(%#x) of %s = %+v, %v, want %+v", what, full, l, got, err, parts)
		}
	}
	got, err := l.DecomposeBytes(raw)
	same("DecomposeBytes", got, err)
	value := map[firn.Field]uint64{firn.FieldTime: tick, firn.FieldNode: node, firn.FieldSeq: seq}
	left := make(map[firn.Field]int)
	for f := range value {
		left[f] = m.widths[f.String()]
	}
	for _, p := range l.Pieces() {
		all, ok := value[p.Field]
		left[p.Field] -= p.Width
		if want := all >> max(0, left[p.Field]) & (1<<p.Width - 1); ok && p.Value(raw) != want {
			t.Errorf("piece %+v of %#x of %s has the value %d, want %d", p, full, l, p.Value(raw), want)
		}
	}
	if l.ReadOnly() {
		return
	}
	id, none := wideOfBig(full), wideOfBig(m.place(tick, node, seq, new(big.Int)))
	// Any instant within the tick gives the same ID.
	within := parts
	within.Time = within.Time.Add(time.Duration(r.Int64N(int64(l.Unit()))))
	fixed := m.fixedBits()
	spoilt := id
	if fixed.Sign() != 0 { // a bit that is the same in every ID, flipped
		bit := r.IntN(m.bits)
		for fixed.Bit(bit) == 0 {
			bit = (bit + 1) % m.bits
		}
		spoilt = wideOfBig(new(big.Int).Xor(full, new(big.Int).Lsh(big.NewInt(1), uint(bit))))
	}
	if got, err := composeAny(l, within); err != nil || got != none {
		t.Errorf("Compose(%+v) of %s = %v, %v, want %v", within, l, got, err, none)
	}
	got, err = decomposeAny(l, id)
	same("Decompose", got, err)
	if got, err := decomposeAny(l, spoilt); spoilt != id && err == nil {
		t.Errorf("Decompose(%v) of %s = %+v, want an error: a fixed bit of %v is turned over", spoilt, l, got, id)
	}
	if _, err = l.Compose(parts); m.bits == 64 {
		_, err = l.Compose128(parts)
	}
	if err == nil {
		t.Errorf("Compose of %s for IDs of the other size: no error", l)
	}
}

// checkRangeErrors: a value that does not fit is rejected, with the name of its
// field, and Last is the last time that fits.
func checkRangeErrors(t *testing.T, m *bitModel) {
	t.Helper()
	l := m.layout
	at := m.timeOf(m.most("time"))
	if !l.Last().Equal(at) {
		t.Errorf("Last() of %s = %v, want %v", l, l.Last(), at)
	}
	if l.ReadOnly() {
		return
	}
	wrong := map[string][]firn.Parts{"time": {{Time: m.timeOf(0).Add(-1)}}}
	if end, ok := m.afterLast(); ok {
		wrong["time"] = append(wrong["time"], firn.Parts{Time: end}, firn.Parts{Time: end.Add(12345 * time.Hour)})
		if _, err := composeAny(l, firn.Parts{Time: end.Add(-1)}); err != nil {
			t.Errorf("Compose at the end of the last tick of %s: %v", l, err)
		}
	}
	for field, name := range map[string]string{"node": "node", "seq": "sequence"} {
		if m.width(field) == 64 {
			continue
		}
		for _, v := range []uint64{m.most(field) + 1, ^uint64(0)} {
			p := firn.Parts{Time: at, Node: v}
			if field == "seq" {
				p = firn.Parts{Time: at, Seq: v}
			}
			wrong[name] = append(wrong[name], p)
		}
	}
	for name, parts := range wrong {
		for _, p := range parts {
			var fault *firn.RangeError
			if id, err := composeAny(l, p); !errors.As(err, &fault) || fault.Field != name || id != (wideID{}) {
				t.Errorf("Compose(%+v) of %s = %v, %v, want a *RangeError of the %s", p, l, id, err, name)
			}
		}
	}
}

func composeAny(l firn.Layout, p firn.Parts) (wideID, error) {
	if l.Bits() == 128 {
		id, err := l.Compose128(p)
		return wideOf128(id), err
	}
	id, err := l.Compose(p)
	return wideOf(id), err
}

func rangeAny(l firn.Layout, from, to time.Time) (lo, hi wideID, err error) {
	if l.Bits() == 128 {
		a, b, err := l.Range128(from, to)
		return wideOf128(a), wideOf128(b), err
	}
	a, b, err := l.Range(from, to)
	return wideOf(a), wideOf(b), err
}

func TestRangeLaw(t *testing.T) {
	r := seeded(t)
	for _, l := range someLayouts(t, r, 600) {
		if l.ReadOnly() {
			continue
		}
		m := modelOf(t, l)
		most := m.most("time")
		for range 10 {
			// Half of the ends lie within a tick, some outside the layout.
			end := func() time.Time {
				at := m.timeOf(randomValue(r, most))
				switch r.IntN(5) {
				case 0:
					return at
				case 4: // a Time can hold more, but its own methods go wrong near the ends
					return time.Unix(r.Int64N(1<<59)-1<<58, r.Int64N(1e9))
				case 1:
					return at.Add(time.Duration(r.Int64N(int64(l.Unit()))))
				case 2:
					return at.Add(time.Duration(r.Int64N(7) - 3))
				}
				return at.Add(l.Unit() * time.Duration(r.Int64N(9)-4))
			}
			a, b := end(), end()
			checkRange(t, m, a, b)
			checkRange(t, m, b, a)
			if t.Failed() {
				return
			}
		}
	}
}

// checkRange: the IDs of a range are those whose tick begins in it.
func checkRange(t *testing.T, m *bitModel, from, to time.Time) {
	t.Helper()
	l := m.layout
	lo, hi, err := rangeAny(l, from, to)
	// The first tick that begins at from or later, and the last that begins
	// before to.
	ceil := func(at time.Time) *big.Int {
		tick, rest := m.tickAt(at)
		if rest.Sign() > 0 {
			tick.Add(tick, big.NewInt(1))
		}
		return tick
	}
	first, last := ceil(from), ceil(to)
	last.Sub(last, big.NewInt(1))
	if first.Sign() < 0 {
		first.SetInt64(0)
	}
	if most := new(big.Int).SetUint64(m.most("time")); last.Cmp(most) > 0 {
		last.Set(most)
	}
	if m.chanceAboveSeq() && err != nil {
		return // TestGeneratorLaw decides whether such a layout is Ordered
	}
	if !m.timeOnTop() || !from.Before(to) || first.Cmp(last) > 0 {
		if err == nil {
			t.Errorf("Range(%v, %v) of %s = %v, %v, want an error", from, to, l, lo, hi)
		}
		return
	}
	wantLo := wideOfBig(m.place(first.Uint64(), 0, 0, new(big.Int)))
	wantHi := wideOfBig(m.place(last.Uint64(), m.most("node"), m.most("seq"), m.randomBits()))
	if err != nil || lo != wantLo || hi != wantHi {
		t.Errorf("Range(%v, %v) of %s = %v, %v, %v, want %v, %v", from, to, l, lo, hi, err, wantLo, wantHi)
	}
}

// checkRuns: the runs of a batch contain its IDs, in order.
func checkRuns(t *testing.T, m *bitModel, b anyBatch) {
	t.Helper()
	if got := m.layout.HasRuns(); got != (b.runs != nil) {
		t.Errorf("HasRuns() of %s = %v, but the runs of a batch of %d IDs have %d",
			m.layout, got, len(b.ids), len(b.runs))
	}
	if b.runs == nil {
		// In a layout without runs there are random bits, or the lowest slot
		// bit lies above the 64 bits of a step.
		lowest := m.mark("seq")
		if m.width("seq") == 0 {
			lowest = m.mark("time")
		}
		if m.width("rand") == 0 && lowest.TrailingZeroBits() < 64 {
			t.Errorf("Runs() of %d IDs of %s is nil", len(b.ids), m.layout)
		}
		return
	}
	if !slices.Equal(b.runs, b.ids) {
		t.Errorf("Runs() of %s have the IDs %v, want %v", m.layout, b.runs, b.ids)
	}
}

// TestRandomBits: the random bits of IDs vary, all of them, however the IDs are
// made.
func TestRandomBits(t *testing.T) {
	for _, text := range []string{"uuidv7", "ulid", "bits=time:42.seq:10.rand:12", "bits=time:42.seq:10.rand:76"} {
		l := firn.MustParseLayout(text)
		m := modelOf(t, l)
		g := mustAny(t, l, firn.Grant{From: l.Epoch()}, &firn.Options{MaxAhead: time.Hour})
		for _, k := range takers() {
			anySet, allSet := new(big.Int), m.randomBits()
			for range 100 {
				b, _, err := g.take(t.Context(), k.name, 5)
				must.Do(t, err)
				for _, id := range b.ids {
					anySet.Or(anySet, id.big())
					allSet.And(allSet, id.big())
				}
			}
			if anySet.And(anySet, m.randomBits()); anySet.Cmp(m.randomBits()) != 0 || allSet.Sign() != 0 {
				t.Errorf("%s of %s: random bits %x are set at times, and %x always, want %x and none",
					k.name, l, anySet, allSet, m.randomBits())
			}
		}
	}
}

// TestGeneratorLaw drives generators of many layouts through random scripts,
// compared with the model. FuzzGeneratorClock does the same with its own
// scripts.
func TestGeneratorLaw(t *testing.T) {
	r := seeded(t)
	script := make([]byte, 300)
	var layouts []firn.Layout
	for i := range 150 {
		layouts = append(layouts, firn.MustParseLayout(scriptLayouts[i%len(scriptLayouts)]), randomLayout(t, r, true))
	}
	for _, l := range presetLayouts() {
		if !l.ReadOnly() {
			layouts = append(layouts, exactly(l))
		}
	}
	for _, l := range layouts {
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		runScript(t, l, script)
		if t.Failed() {
			return
		}
	}
}

// A jumpyClock advances by a microsecond with every reading, and is
// occasionally far off for one of them. Multiple goroutines may read it.
type jumpyClock struct {
	base     time.Time
	seed     uint64
	readings atomic.Int64
}

func (c *jumpyClock) now() time.Time {
	n := c.readings.Add(1)
	at := c.base.Add(time.Duration(n) * time.Microsecond)
	z := (uint64(n) + c.seed) * 0x9e3779b97f4a7c15
	z ^= z >> 29
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 32
	switch {
	case z%64 < 40:
	case z%64 < 55:
		at = at.Add(time.Duration(z>>6%40)*time.Millisecond - 20*time.Millisecond)
	case z%64 < 60:
		at = at.Add(-time.Duration(z >> 6 % uint64(2*time.Hour)))
	case z%64 < 63:
		at = at.AddDate(int(z>>6%50), 0, 0)
	default:
		at = at.AddDate(-3000, 0, 0)
	}
	return at
}

// A nodeWindow is a period in which a generator had a node ID.
type nodeWindow struct {
	node        uint64
	from, until time.Time
}

// loadLayouts have their fields in all kinds of order, and few IDs per tick.
var loadLayouts = []string{
	"default,node-bits=10,seq-bits=3",
	"hazelcast,seq-bits=2",
	"snowcast",
	"lable",
	"lable,mode=time-sequential",
	"bits=seq:2.time:20.node:6.time:20.seq:2",
	"bits=time:40.rand:10.seq:4.node:10",
	"boundary",
	"uuidv7",
	"bits=node:16.seq:3.time~:40.const:5=9",
	"bits=time:50.seq:0.node:10",
}

// fewer returns only the first of all in short tests.
func fewer(all []string) []string {
	if testing.Short() {
		return all[:2]
	}
	return all
}

// TestGeneratorsUnderLoad: sixteen goroutines share a generator whose clock
// jumps while its grant is extended and switched, and which is finally sealed.
// Every ID is unique, a call that begins after another has returned gets a
// greater one, and every ID lies in a window of its own node ID.
func TestGeneratorsUnderLoad(t *testing.T) {
	r := seeded(t)
	for _, text := range fewer(loadLayouts) {
		seed := r.Uint64()
		t.Run(text, func(t *testing.T) { loadGenerator(t, firn.MustParseLayout(text), seed) })
	}
}

func loadGenerator(t *testing.T, l firn.Layout, seed uint64) {
	const goroutines, calls = 16, 1000
	ordered := l.Ordered() && l.RandBits() == 0
	base := l.Epoch().AddDate(1, 0, 0)
	clock := &jumpyClock{base: base, seed: seed}
	windows := []nodeWindow{{1, base.Add(-time.Second), base.Add(time.Second)}}
	g := mustAny(t, l, firn.Grant{Node: 1, From: windows[0].from, Until: windows[0].until},
		&firn.Options{Now: clock.now, MaxAhead: 20 * time.Millisecond, MaxLag: time.Second})

	type made struct {
		wideID
		term int // the number of calls of Switch that had returned before
	}
	var mu sync.Mutex
	var returned wideID // the greatest ID of all calls that have returned
	var sealed atomic.Bool
	var terms, count, running atomic.Int64
	var ids [goroutines][]made
	var all sync.WaitGroup
	hows := slices.Repeat([]string{tryNext.name}, 10)
	for _, k := range takers() {
		hows = append(hows, k.name)
	}
	running.Store(goroutines)
	for i := range goroutines {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			defer running.Add(-1)
			// Most calls are refused if a layout has few slots: then it takes
			// more.
			for n := 0; n < calls || n < 200*calls && count.Load() < 1000 && !sealed.Load(); n++ {
				after, term := sealed.Load(), int(terms.Load())
				wait, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2_000_000)))
				mu.Lock()
				before := returned
				mu.Unlock()
				how := hows[r.IntN(len(hows))]
				b, _, err := g.take(wait, how, 1+r.IntN(40))
				mu.Lock()
				for _, id := range b.ids {
					if err == nil && ordered && !before.less(id) {
						t.Errorf("%s: %v after %v had been returned", l, id, before)
					}
					if err == nil && returned.less(id) {
						returned = id
					}
				}
				mu.Unlock()
				if r.IntN(16) == 0 {
					g.Stats()
				}
				cancel()
				if err != nil {
					// A batch that would take longer than the context lasts is
					// refused first, and one that cannot wait while others do.
					refused := errors.Is(err, context.DeadlineExceeded) ||
						how == tryBatch.name && errors.Is(err, firn.ErrExhausted)
					if after && !errors.Is(err, firn.ErrSealed) && !refused {
						t.Errorf("%s: a call after Seal: %v, want ErrSealed", l, err)
						return
					}
					continue
				}
				if after && b.len > 0 {
					t.Errorf("%s: a call after Seal gives %v", l, b.ids)
					return
				}
				count.Add(int64(b.len))
				for _, id := range b.ids {
					ids[i] = append(ids[i], made{id, term})
				}
			}
		})
	}

	// Meanwhile the grant changes. The windows are recorded before they take
	// effect, and checked at the end. On a busy machine it takes longer until
	// there is something to check.
	r := rand.New(rand.NewPCG(seed, goroutines))
	node := uint64(1)
	for step := 0; step < 60 || count.Load() < 1000 && running.Load() > 0; step++ {
		time.Sleep(time.Duration(r.IntN(1_000_000)))
		now := clock.base.Add(time.Duration(clock.readings.Load()) * time.Microsecond)
		w := &windows[len(windows)-1]
		until := now.Add(time.Duration(r.IntN(400_000_000)))
		if r.IntN(3) > 0 {
			if until.After(w.until) {
				w.until = until
			}
			if err := g.Extend(w.until); err != nil {
				t.Errorf("%s: Extend(%v): %v", l, w.until, err)
			}
			continue
		}
		node = 1 + r.Uint64N(5)
		next := nodeWindow{node, now.Add(time.Duration(r.IntN(40_000_000) - 20_000_000)), until.Add(100 * time.Millisecond)}
		windows = append(windows, next)
		if err := g.Switch(firn.Grant{Node: node, From: next.from, Until: next.until}); err != nil {
			t.Errorf("%s: Switch(%+v): %v", l, next, err)
		}
		terms.Add(1)
	}
	end := g.Seal()
	sealed.Store(true)
	all.Wait()
	if again := g.Seal(); !again.Equal(end) {
		t.Errorf("%s: Seal() = %v, and the second time %v", l, end, again)
	}

	var every []wideID
	for _, mine := range ids {
		if ordered && !slices.IsSortedFunc(mine, func(a, b made) int { return a.compare(b.wideID) }) {
			t.Fatalf("%s: the IDs of one goroutine do not increase", l)
		}
		for _, id := range mine {
			every = append(every, id.wideID)
			p := decompose(t, l, id.wideID)
			inside := func(w nodeWindow) bool {
				return p.Node == w.node && !p.Time.Before(w.from) && p.Time.Before(w.until)
			}
			if !slices.ContainsFunc(windows[id.term:], inside) {
				t.Fatalf("%s: ID %v has node %d at %v, which is in none of its windows %+v", l, id, p.Node, p.Time, windows[id.term:])
			}
			if id.term == len(windows)-1 && !p.Time.Before(end) {
				t.Fatalf("%s: ID %v has the time %v, but Seal said that none was used from %v", l, id, p.Time, end)
			}
		}
	}
	if len(every) < 300 {
		t.Errorf("%s: only %d IDs were made, so this test says little", l, len(every))
	}
	unique(t, l, every)
	if made := g.Stats().IDs; made < uint64(len(every)) {
		t.Errorf("%s: Stats().IDs = %d, but %d IDs were made", l, made, len(every))
	}
}

// unique reports duplicate IDs. It sorts them.
func unique(t testing.TB, l firn.Layout, ids []wideID) {
	t.Helper()
	slices.SortFunc(ids, wideID.compare)
	for i, id := range ids {
		if id == (wideID{}) {
			t.Errorf("%s: the zero ID was made", l)
		}
		if i > 0 && id == ids[i-1] {
			t.Errorf("%s: ID %v was made twice", l, id)
			return
		}
	}
}

// TestChangesInsideACall: a call reads the clock between its look at the state
// and its swap. If the generator is changed at that moment, by the clock
// itself, the call takes effect after the change, as if it had been suspended.
// A slot is judged by the term from which it was taken: it is neither used
// under a later grant, nor beyond the end of its own.
func TestChangesInsideACall(t *testing.T) {
	for _, text := range []string{"default,seq-bits=2,epoch=0", "hazelcast,seq-bits=0,epoch=0", "lable", "uuidv7", "boundary"} {
		l := firn.MustParseLayout(text)
		begin := time.UnixMilli(1 << 40)
		for _, k := range takers() {
			for _, inside := range []struct {
				name string
				do   func(g anyGenerator) ([]wideID, error)
				node uint64        // of the call's IDs
				err  error         // of the call
				at   time.Duration // how long after the beginning of the first grant, which is of an hour
			}{
				{"TryNext", func(g anyGenerator) ([]wideID, error) { return drain(g, 3) }, 1, nil, 0},
				{"Reserve", func(g anyGenerator) ([]wideID, error) {
					b, _, err := g.take(t.Context(), "Reserve", 5)
					return b.ids, err
				}, 1, nil, 0},
				{"Switch", func(g anyGenerator) ([]wideID, error) { return nil, g.Switch(firn.Grant{Node: 2, From: begin}) }, 2, nil, 0},
				{"Switch past the end", func(g anyGenerator) ([]wideID, error) {
					return nil, g.Switch(firn.Grant{Node: 2, From: begin.Add(time.Hour)})
				}, 2, nil, 2 * time.Hour},
				{"Switch to a shorter one", func(g anyGenerator) ([]wideID, error) {
					return nil, g.Switch(firn.Grant{Node: 2, From: begin, Until: begin.Add(time.Second)})
				}, 0, firn.ErrGrantOver, 5 * time.Second},
				{"Switch and back", func(g anyGenerator) ([]wideID, error) {
					err := g.Switch(firn.Grant{Node: 2, From: begin})
					ids, err2 := drain(g, 2)
					return ids, errors.Join(err, err2, g.Switch(firn.Grant{Node: 1, From: begin}))
				}, 1, nil, 0},
				{"Extend", func(g anyGenerator) ([]wideID, error) { return nil, g.Extend(time.Time{}) }, 1, nil, 0},
				{"Seal", func(g anyGenerator) ([]wideID, error) { g.Seal(); return nil, nil }, 0, firn.ErrSealed, 0},
			} {
				var hook func()
				at := begin
				now := func() time.Time {
					now := at
					if do := hook; do != nil {
						hook = nil
						do()
					}
					return now
				}
				g := mustAny(t, l, firn.Grant{Node: 1, From: begin, Until: begin.Add(time.Hour)}, &firn.Options{Now: now, MaxAhead: time.Second})
				before, err := drain(g, 2)
				if err != nil {
					t.Fatal(err)
				}
				var within []wideID
				at = begin.Add(inside.at)
				hook = func() {
					if within, err = inside.do(g); err != nil {
						t.Errorf("%s: %s inside %s: %v", l, inside.name, k.name, err)
					}
				}
				b, _, err := g.take(t.Context(), k.name, 7)
				after := b.ids
				if !errors.Is(err, inside.err) {
					t.Errorf("%s: %s with %s inside: %v, want %v", l, k.name, inside.name, err, inside.err)
				}
				if err != nil {
					continue
				}
				for _, id := range after {
					if p := decompose(t, l, id); p.Node != inside.node {
						t.Errorf("%s: %s with %s inside made %v of node %d, want %d",
							l, k.name, inside.name, id, p.Node, inside.node)
					}
				}
				every := slices.Concat(before, within, after)
				if l.Ordered() && !slices.IsSortedFunc(every, wideID.compare) {
					t.Errorf("%s: %s with %s inside: %v, then %v, then %v",
						l, k.name, inside.name, before, within, after)
				}
				unique(t, l, every)
			}
		}
	}
}

// TestImportersDoNotAllocate: no way to make IDs allocates, in a package that
// imports firn, in which escape analysis of a generic call differs.
func TestImportersDoNotAllocate(t *testing.T) {
	o, grant := &firn.Options{MaxAhead: time.Hour}, firn.Grant{Node: 1, From: time.Unix(1, 0)}
	injected := &firn.Options{MaxAhead: time.Hour, Now: func() time.Time { return time.Unix(1795000000, 0) }}
	l := firn.MustParseLayout("bits=time:41.node:5.seq:17")
	g := mustAny(t, l, grant, o).(gen[firn.ID])
	g128 := mustAny(t, firn.MustParseLayout("uuidv7"), grant, o).(gen[firn.ID128])
	slow := mustAny(t, firn.Default(), firn.Grant{Node: 1, From: time.Unix(1, 0)}, injected).(gen[firn.ID])
	ctx, dst := t.Context(), make([]firn.ID, 100)
	for name, next := range map[string]func(){
		"Next":               func() { sink, _ = g.Next(ctx) },
		"TryNext":            func() { sink, _ = g.TryNext() },
		"Fill":               func() { _ = g.Fill(ctx, dst) },
		"Reserve":            func() { _, _, _ = g.Reserve(10) },
		"NextBatch":          func() { _, _ = g.NextBatch(ctx, 10) },
		"TryNextBatch":       func() { _, _ = g.TryNextBatch(10) },
		"Next128":            func() { sink128, _ = g128.Next(ctx) },
		"TryNext128":         func() { sink128, _ = g128.TryNext() },
		"Next by a clock":    func() { sink, _ = slow.Next(ctx) },
		"TryNext by a clock": func() { sink, _ = slow.TryNext() },
		"Fill by a clock":    func() { _ = slow.Fill(ctx, dst) },
	} {
		if n := testing.AllocsPerRun(10_000, next); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

var (
	sink    firn.ID
	sink128 firn.ID128
)
