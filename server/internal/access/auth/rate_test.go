package auth

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

func TestQuantity(t *testing.T) {
	for text, want := range map[string]string{"200": "200", "50k/s": "50k", "1.5M": "1.5M", "1G": "1G", "0.5/s": "0.5", "1234": "1.234k",
		"1234567": "1234.567k", "5e4": "50k"} {
		q, err := parseQuantity(text)
		if err != nil || q.String() != want {
			t.Errorf("%q is %v, %v, want %s", text, q, err, want)
		}
		if again, err := parseQuantity(q.String()); again != q || err != nil {
			t.Errorf("%v is read as %v, %v", q, again, err)
		}
		if f := Frequency(q); f.String() != want+"/s" || f.Set(f.String()) != nil || f != Frequency(q) {
			t.Errorf("%q a second is %v", text, f)
		}
	}
	for _, text := range []string{"", "0", "-1", "k", "50K", "50kk", "50k/m", "1_000", "+5", "inf", "NaN", "0x10", "50 k", "1e400"} {
		if q, err := parseQuantity(text); err == nil {
			t.Errorf("%q is %v", text, q)
		}
	}
}

// TestMeter: in no span of time a client takes more than the burst and what the
// rate gives, and after the wait that it is given it need not wait again.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type taken struct {
			at time.Time
			n  int
		}
		random := rand.New(rand.NewPCG(1, 2))
		for _, r := range []Rate{{0.5, 1}, {10, 3}, {1000, 50}, {3e6, 1000}, {7, 500}} {
			var m Meter
			var all []taken
			for range 300 {
				n := 1 + random.IntN(r.Burst)
				if wait := m.Take(r, n); wait > 0 {
					time.Sleep(wait - 1)
					if wait > 1 && m.Take(r, n) == 0 {
						t.Errorf("%v: %d were allowed before %v", r, n, wait)
					}
					time.Sleep(time.Nanosecond)
					if again := m.Take(r, n); again > 0 {
						t.Errorf("%v: after %v, %d must wait %v more", r, wait, n, again)
					}
				}
				if all = append(all, taken{time.Now(), n}); random.IntN(10) == 0 {
					m.Charge(r, -n)
					all = all[:len(all)-1]
				}
				time.Sleep(time.Duration(random.Float64() * float64(r.takes(2*r.Burst)) / 3))
			}
			for i := range all {
				sum := 0
				for _, later := range all[i:] {
					sum += later.n
					if most := float64(r.Burst) + later.at.Sub(all[i].at).Seconds()*r.PerSecond; float64(sum) > most+1 { // times are whole nanoseconds
						t.Fatalf("%v: %d within %v, want %.2f or less", r, sum, later.at.Sub(all[i].at), most)
					}
				}
			}
		}
	})
}

// changing returns the guard of a file with a text and some limits in it, which
// write changes to others.
func changing(t *testing.T, text, limits string) (guard *Guard, write func(limits string)) {
	file, at := filepath.Join(t.TempDir(), "tokens.yaml"), time.Now()
	put := func(limits string) {
		must.Do(t, os.WriteFile(file, []byte("---\n"+strings.ReplaceAll(text, "LIMITS", limits)+"...\n"), 0o600))
		at = at.Add(time.Second)
		must.Do(t, os.Chtimes(file, at, at))
	}
	put(limits)
	content := must.Get(Open(file, nil))(t)
	return NewGuard(content.Get, nil), func(limits string) { put(limits); must.Get(content.Reload())(t) }
}

// TestQuotaOfEntry: what an entry may take, with the limits of its role, by
// either of its tokens, and after the file has changed.
func TestQuotaOfEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, firstHash := NewToken()
		second, secondHash := NewToken()
		other, otherHash := NewToken()
		guard, write := changing(t, "roles:\n  generate: {max: 50, rate: 7}\ntokens:\n"+
			"- {name: a, role: generate, sha256: ["+firstHash+", "+secondHash+"]LIMITS}\n"+
			"- {name: b, role: admin, sha256: "+otherHash+"}\n", ", rate: 10/s, burst: 40, request-rate: 3")
		charge := func(token string, n int) (wait time.Duration, ok bool) {
			c := &Credentials{Token: token, Given: true}
			must.Do(t, guard.Allow(c, Take, "orders"))
			err := c.Charge("orders", n)
			if limit, ok := errors.AsType[*LimitError](err); ok {
				return limit.Wait, false
			}
			return 0, err == nil
		}
		want := func(token string, n int, wait time.Duration, ok bool) {
			t.Helper()
			if gotWait, gotOK := charge(token, n); gotWait.Round(time.Millisecond) != wait || gotOK != ok {
				t.Errorf("%d: %v, %t, want %v, %t", n, gotWait, gotOK, wait, ok)
			}
		}
		want(first, 51, 0, false) // the role's max
		want(first, 41, 0, false) // the burst
		want(second, 40, 0, true)
		want(first, 1, 333*time.Millisecond, false) // four requests at once
		time.Sleep(time.Second)
		want(second, 20, time.Second, false)
		want(second, 10, 0, true)
		want(other, 1_000_000, 0, true)
		time.Sleep(time.Second)

		write(", rate: 20, burst: 20") // what was taken before takes its time
		want(second, 20, 3*time.Second, false)
		time.Sleep(3 * time.Second)
		want(first, 20, 0, true)

		c := &Credentials{Token: first, Given: true}
		must.Do(t, guard.Allow(c, Take, "orders"))
		c.Settle("orders", 20, false)
		want(first, 20, 0, true)
		c.Settle("orders", 20, true)
		var used []any
		guard.Set().Usage(func(name string, ids, limited uint64) bool {
			used = append(used, name, ids, limited)
			return true
		})
		if got := fmt.Sprint(used...); got != "a20 5b0 0" {
			t.Errorf("used: %s", got)
		}
	})
}

// TestLimitsOfASequencer: all clients together may take so much of it, also
// after the file has changed, and no client pays for what that refuses.
func TestLimitsOfASequencer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, hashA := NewToken()
		b, hashB := NewToken()
		guard, write := changing(t, "sequencers:\n  orders: {rate: 10, burst: 30, max: 25}LIMITS\ntokens:\n"+
			"- {name: orders, role: generate, rate: 20, sha256: "+hashA+"}\n"+
			"- {name: b, role: generate, sha256: "+hashB+"}\n", "")
		want := func(token, sequencer string, n int, wait time.Duration, ok bool) {
			t.Helper()
			c := &Credentials{Token: token, Given: true}
			must.Do(t, guard.Allow(c, Take, sequencer))
			if !c.Limited(sequencer) && sequencer == "orders" {
				t.Errorf("no limits hold for %s", sequencer)
			}
			err := c.Charge(sequencer, n)
			limit, _ := errors.AsType[*LimitError](err)
			if limit == nil {
				limit = new(LimitError)
			}
			if (err == nil) != ok || limit.Wait.Round(time.Millisecond) != wait || err != nil && token == b && !strings.Contains(err.Error(), "all clients of orders together") {
				t.Errorf("%d of %s: %v, wait %v", n, sequencer, err, limit.Wait)
			}
		}
		want(b, "orders", 26, 0, false)
		want(b, "orders", 25, 0, true)
		want(a, "orders", 15, time.Second, false)
		want(a, "invoices", 20, 0, true) // what was refused is not paid
		want(b, "invoices", 1_000_000, 0, true)
		write("\n  invoices: {rate: 1}")
		want(b, "orders", 15, time.Second, false)
		c := &Credentials{Token: b, Given: true}
		must.Do(t, guard.Allow(c, Take, "orders"))
		c.Settle("orders", 10, false)
		want(b, "orders", 15, 0, true)
	})
}

func TestLimitFaults(t *testing.T) {
	_, hash := NewToken()
	faults := map[string]string{
		"tokens:\n- {name: a, sha256: " + hash + ", role: read, rate: 5}\n": "are for roles that take IDs",
	}
	for limits, want := range map[string]string{
		"rate: 5, burst: 4": "in 1 s to", "rate: 0.1, burst: 1G": "to 11 days", "rate: fast": `f:3: "fast" is not a number`, "burst: 5": "burst needs a rate", "rate: 0.001": "must be from 0.01", "max: 0.5": "must be from 1",
		"rate: ~": "rate needs a value", "rate: [1]": `"" is not a number`, "rates: 5": "unknown key rates",
	} {
		faults["tokens:\n- {name: a, sha256: "+hash+",\n   "+limits+", role: generate}\n"] = want
	}
	for above, want := range map[string]string{
		`sequencers: {"a*": {max: 5}}`: `sequencers limits "a*": it must be the name`, "sequencers: ": "sequencers needs a value",
		"sequencers: {orders: }": "orders needs a value", "sequencers: {orders: {name: a}}": "name",
		"sequencers: {orders: {max: }}": "max needs a value", "sequencers: {orders: {burst: 2}}": "burst needs a rate",
		"roles: {read: {max: 5}}": `roles limits "read"`, "roles: {root: {max: 5}}": `roles limits "root"`,
		"roles: {admin: }": "admin needs a value", "roles: ": "roles needs a value",
		"roles: {admin: {max: }}": "max needs a value", "roles: {admin: {burst: 2}}": "burst needs a rate",
	} {
		faults[above+"\ntokens:\n- {name: a, role: generate, sha256: "+hash+"}\n"] = want
	}
	for text, want := range faults {
		if _, err := Parse([]byte(text), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
