package grant

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// A crowd is a machine that wants a node ID of a sequencer with 1024, and its
// store. Times are those of both its clocks.
type crowd struct {
	t       *testing.T
	m       *machine
	now     int64
	config  []byte
	records map[string][]byte
	asked   []action
}

func newCrowd(t *testing.T, window time.Duration) *crowd {
	c := newConfigRecord(NewConfig(firn.Default(), window))
	c.Nonce = "00000000000000000000000000000000"
	random := rand.New(rand.NewPCG(1, 1))
	return &crowd{
		t: t, now: 1_795_132_800_000, config: c.encode(), records: make(map[string][]byte),
		m: newMachine(Settings{Name: "s", random: random.Uint64, storeClock: true}),
	}
}

// put puts a record in the store.
func (c *crowd) put(node uint64, state string, until int64) {
	key := nodeKey("s", node, 1023)
	c.records[key] = nodeRecord{
		Nonce: "0123456789abcdef0123456789abcdef", Owner: "fedcba9876543210fedcba9876543210", Until: until, Wall: c.now, State: state,
	}.encode()
}

// tell passes an event on, and answers all requests until refuse makes an
// answer fail. It returns the requests.
func (c *crowd) tell(e event, answer func(action) event) []action {
	c.t.Helper()
	c.asked = nil
	for range 100 {
		e.Wall, e.Mono = c.now, c.now
		var request *action
		for _, a := range c.m.step(e) {
			if a.isRequest() {
				request = &a
			}
		}
		if request == nil {
			return c.asked
		}
		c.asked = append(c.asked, *request)
		e = answer(*request)
		e.Kind = eventAnswered
	}
	c.t.Fatal("there is no end of requests")
	return nil
}

// store answers like a store.
func (c *crowd) store(a action) (e event) {
	switch a.Kind {
	case actionGet:
		if a.Key == configKey("s") {
			return event{Values: [][]byte{c.config}}
		}
		return event{Values: [][]byte{c.records[a.Key]}}
	case actionGetMany:
		e.Keys = a.Keys
		for _, key := range a.Keys {
			value := c.records[key]
			if key == configKey("s") {
				value = c.config
			}
			e.Values = append(e.Values, value)
		}
	case actionList:
		for node := range uint64(1024) {
			if value := c.records[nodeKey("s", node, 1023)]; value != nil {
				e.Keys, e.Values = append(e.Keys, nodeKey("s", node, 1023)), append(e.Values, value)
			}
		}
	case actionTime:
		return event{Time: c.now}
	case actionCAS:
		if e.Applied = string(c.records[a.Key]) == string(a.Old); e.Applied {
			c.records[a.Key] = a.Next
		}
	}
	return e
}

func count(asked []action, kind actionKind) (n int) {
	for _, a := range asked {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// TestPickGrows: if few node IDs are free, more records are read before all
// are, and not every attempt lists all of them.
func TestPickGrows(t *testing.T) {
	c := newCrowd(t, time.Minute)
	first := c.now + 50_000
	for node := range uint64(1024) {
		c.put(node, flagHeld, first+int64(node))
	}
	var sizes []int
	for _, a := range c.tell(event{Kind: eventAttach}, c.store) {
		if a.Kind == actionGetMany {
			sizes = append(sizes, len(a.Keys))
		}
	}
	if len(sizes) != 3 || sizes[0] != 8 || sizes[1] != 32 || sizes[2] != 128 || count(c.asked, actionList) != 1 {
		t.Fatalf("it read %v numbers and listed all %d times, want 8, 32, 128 and once", sizes, count(c.asked, actionList))
	}
	lists, tries := 0, 0
	for c.now < first {
		c.now = min(c.m.notBefore, first)
		c.tell(event{Kind: eventTick}, c.store)
		lists += count(c.asked, actionList)
		tries++
		if free := c.m.Status().Err.(*ExhaustedError).Free; free.UnixMilli() != first {
			t.Fatalf("the first number is free at %v, want %v", free.UnixMilli(), first)
		}
	}
	if tries < 20 || lists > 6 {
		t.Errorf("%d tries listed all numbers %d times, want at most 6", tries, lists)
	}
	// The window of the first node ID has ended: that is noticed at once, and
	// not when a list is due.
	for range 3 {
		c.now = c.m.notBefore
		if c.tell(event{Kind: eventTick}, c.store); c.m.Status().Phase == Holding {
			break
		}
	}
	if s := c.m.Status(); s.Phase != Holding || c.now > first+5000 {
		t.Errorf("%v at %d, want a number soon after %d", s, c.now, first)
	}
}

// TestCrowd: the first choice is the node ID that was unused for longest, and
// after a refusal it is random.
func TestCrowd(t *testing.T) {
	best := 0
	const runs = 100
	for i := range runs {
		c := newCrowd(t, time.Minute)
		c.m.set.random = rand.New(rand.NewPCG(uint64(i), 7)).Uint64
		for node := range uint64(1024) {
			c.put(node, flagFree, c.now-1_000_000+int64(node))
		}
		var oldest []bool // whether a claim was for the oldest of those that were read
		var read []string
		refuse := 1
		c.tell(event{Kind: eventAttach}, func(a action) event {
			switch a.Kind {
			case actionGetMany:
				read = a.Keys
			case actionCAS:
				is := true
				for _, key := range read {
					is = is && key >= a.Key
				}
				oldest = append(oldest, is)
				if refuse > 0 {
					refuse--
					return event{}
				}
			}
			return c.store(a)
		})
		if len(oldest) != 2 || !oldest[0] || c.m.Status().Phase != Holding {
			t.Fatalf("claims on the oldest: %v, %v; want two claims, and the first on the oldest", oldest, c.m.Status())
		}
		if oldest[1] {
			best++
		}
	}
	if best == 0 || best > runs/3 { // about an eighth
		t.Errorf("after a refusal %d of %d claims are on the oldest, want about an eighth", best, runs)
	}
}

// TestWaits: members with much of their window left leave a store alone for
// longer.
func TestWaits(t *testing.T) {
	fail := func(action) event { return event{Err: ErrNotSent} }
	longest := func(c *crowd, tries int) (most int64) {
		for range tries {
			c.tell(event{Kind: eventTick, Used: c.now}, fail)
			if c.m.notBefore <= c.now {
				t.Fatal("it does not wait")
			}
			most = max(most, c.m.notBefore-c.now)
			c.now = c.m.notBefore
		}
		return most
	}
	without := newCrowd(t, 10*time.Minute)
	without.tell(event{Kind: eventAttach}, fail)
	if most := longest(without, 30); most < backoffMax/2 || most > backoffMax {
		t.Errorf("without a number it waits for up to %d ms, want up to %d", most, backoffMax)
	}
	with := newCrowd(t, 10*time.Minute)
	with.tell(event{Kind: eventAttach}, with.store)
	with.now += 250_000
	if most := longest(with, 13); most <= backoffMax || most > configEvery {
		t.Errorf("with 350 s of a window left it waits for up to %d ms, want more than %d, and no more than %d", most, backoffMax, configEvery)
	}
	with.now = with.m.hold.until - 30_000
	if most := longest(with, 5); most > backoffMax {
		t.Errorf("with 30 s of a window left it waits for up to %d ms, want %d", most, backoffMax)
	}
}
