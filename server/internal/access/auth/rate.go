package auth

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Quota is what a client, or all clients of a sequencer together, may take on
// each server. The zero value limits nothing, as does each zero field.
type Quota struct {
	// Rate limits IDs a second.
	Rate Frequency `yaml:"rate,omitempty" json:"rate,omitzero"`
	// Burst limits IDs at once; zero means those of a second.
	Burst Quantity `yaml:"burst,omitempty" json:"burst,omitzero"`
	// RequestRate limits requests for IDs, a second and at once.
	RequestRate Frequency `yaml:"request-rate,omitempty" json:"request_rate,omitzero"`
	// Max limits IDs in a request.
	Max Quantity `yaml:"max,omitempty" json:"max,omitzero"`
}

// String returns the Quota for people.
func (l Quota) String() string {
	var all []string
	for _, limit := range []struct {
		name string
		n    fmt.Stringer
	}{{"rate", l.Rate}, {"burst", l.Burst}, {"request-rate", l.RequestRate}, {"max", l.Max}} {
		if text := limit.n.String(); text != "0" {
			all = append(all, limit.name+" "+text)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// check returns what is wrong with the Quota.
func (l *Quota) check(fail func(format string, args ...any)) {
	if l.Burst > 0 && (l.Rate == 0 || l.Burst < Quantity(l.Rate) || l.Burst > 1e6*Quantity(l.Rate)) {
		fail("burst needs a rate, and must be what that gives in 1 s to 11 days")
	}
	for _, n := range []Quantity{l.Burst, l.Max} {
		if n != 0 && (n < 1 || n > 1e9) {
			fail("burst and max must be from 1 to 1G")
		}
	}
	for _, rate := range []Frequency{l.Rate, l.RequestRate} {
		if rate != 0 && (rate < 0.01 || rate > 1e9) {
			fail("rate and request-rate must be from 0.01 to 1G a second")
		}
	}
}

// or returns the Quota with the values of its role for fields that are zero.
func (l Quota) or(role Quota) Quota {
	if l.Rate == 0 {
		l.Rate, l.Burst = role.Rate, role.Burst
	}
	l.RequestRate = cmp.Or(l.RequestRate, role.RequestRate)
	l.Max = cmp.Or(l.Max, role.Max)
	return l
}

// ids returns the rate of IDs.
func (l *Quota) ids() Rate { return rateOf(l.Rate, cmp.Or(l.Burst, Quantity(l.Rate))) }

// rateOf returns a rate that allows at least one at once.
func rateOf(rate Frequency, burst Quantity) Rate { return Rate{float64(rate), max(1, int(burst))} }

// most returns how many IDs a request may ask for, and which limit says so.
func (l *Quota) most() (n int, name string) {
	n = math.MaxInt
	if l.Max > 0 {
		n, name = int(l.Max), "max"
	}
	if burst := l.ids().Burst; l.Rate > 0 && burst < n {
		n, name = burst, "burst"
	}
	return n, name
}

// A Quantity is a number such as 50k, 1.5M or 200.
type Quantity float64

var multiples = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}

// parseQuantity reads a Quantity or a Frequency.
func parseQuantity(text string) (Quantity, error) {
	number := strings.TrimSuffix(text, "/s")
	digits := strings.TrimRight(number, "kMG")
	n, err := strconv.ParseFloat(digits, 64)
	times, ok := multiples[number[len(digits):]]
	if err != nil || !ok || !(n > 0) || math.IsInf(n, 0) || strings.ContainsAny(digits, "xXpP_+-") {
		return 0, fmt.Errorf("%q is not a number such as 200, 50k, 1.5M or 50k/s", text)
	}
	return Quantity(n * times), nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (q *Quantity) UnmarshalYAML(n *yaml.Node) (err error) {
	if *q, err = parseQuantity(n.Value); err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", n.Line, err)}}
	}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (q Quantity) MarshalYAML() (any, error) { return q.String(), nil }

// String returns the number with k, M or G if that is short.
func (q Quantity) String() string {
	for _, unit := range []string{"G", "M", "k"} {
		if n := float64(q) / multiples[unit]; n >= 1 && n*1000 == math.Trunc(n*1000) {
			return strconv.FormatFloat(n, 'f', -1, 64) + unit
		}
	}
	return strconv.FormatFloat(float64(q), 'f', -1, 64)
}

// Set and Type make a Quantity the value of a flag.
func (q *Quantity) Set(text string) (err error) {
	*q, err = parseQuantity(text)
	return err
}

// Type implements pflag.Value.
func (*Quantity) Type() string { return "N" }

// A Frequency is a Quantity a second, such as 50k/s. It is read without /s too.
type Frequency float64

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *Frequency) UnmarshalYAML(n *yaml.Node) error { return (*Quantity)(f).UnmarshalYAML(n) }

// MarshalYAML implements yaml.Marshaler.
func (f Frequency) MarshalYAML() (any, error) { return f.String(), nil }

// String returns the number with its unit; zero, which is no limit, has none.
func (f Frequency) String() string {
	if f == 0 {
		return "0"
	}
	return Quantity(f).String() + "/s"
}

// Set and Type make a Frequency the value of a flag.
func (f *Frequency) Set(text string) error { return (*Quantity)(f).Set(text) }

// Type implements pflag.Value.
func (*Frequency) Type() string { return "N/s" }

// A Rate is how much of something is allowed: Burst at once, and PerSecond on
// average.
type Rate struct {
	PerSecond float64
	Burst     int
}

// takes returns in which time the rate allows n.
func (r Rate) takes(n int) time.Duration {
	return time.Duration(float64(n) / r.PerSecond * float64(time.Second))
}

// A Meter measures how much of a Rate was taken. The zero Meter is unused. It
// is safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	paid time.Time // when what was taken is paid off
}

// Wait returns how long to wait until the rate allows n, which is at most the
// Burst.
func (m *Meter) Wait(r Rate, n int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wait(r, n)
}

// Charge counts n that were taken; a negative n was not used after all.
func (m *Meter) Charge(r Rate, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charge(r, n)
}

// Take is Charge if Wait returns 0.
func (m *Meter) Take(r Rate, n int) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait = m.wait(r, n); wait == 0 {
		m.charge(r, n)
	}
	return wait
}

func (m *Meter) wait(r Rate, n int) time.Duration {
	return max(0, max(0, time.Until(m.paid))+r.takes(n)-r.takes(r.Burst))
}

func (m *Meter) charge(r Rate, n int) {
	if now := time.Now(); m.paid.Before(now) {
		m.paid = now
	}
	m.paid = m.paid.Add(r.takes(n))
}

// Idle reports whether all that was taken is paid off.
func (m *Meter) Idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.paid.After(time.Now())
}

// An account is what an entry of the token file has used on this server. It
// survives changes of the file.
type account struct {
	ids, requests  Meter
	taken, limited atomic.Uint64 // IDs; requests
}

// A LimitError means that a client has reached a limit.
type LimitError struct {
	Wait time.Duration // until the request is allowed; 0 if it never is
	Text string
}

func (e *LimitError) Error() string { return e.Text }

// Limited reports whether limits hold for the client and a sequencer.
func (c *Credentials) Limited(sequencer string) bool {
	own, shared := c.payers(sequencer)
	return shared != nil || own != nil && own.limits != (Quota{})
}

// payers returns what is charged for IDs of a sequencer: the client's entry, or
// nil without one, and the sequencer, or nil if its clients together have no
// limits.
func (c *Credentials) payers(sequencer string) (own, shared *Principal) {
	if c == nil || c.p == nil || c.p.account == nil {
		return nil, nil
	}
	return c.p, c.p.shared[sequencer]
}

// Charge charges a client, and the sequencer, for a request for n IDs. If one
// of their Quota does not allow it, only requests are charged, and the error is
// a *LimitError.
func (c *Credentials) Charge(sequencer string, n int) error {
	own, shared := c.payers(sequencer)
	if own == nil {
		return nil
	}
	err := own.charge(n)
	if err == nil && shared != nil {
		if err = shared.charge(n); err != nil {
			own.settle(n, false)
		}
	}
	if err != nil {
		own.account.limited.Add(1)
	}
	return err
}

func (p *Principal) charge(n int) error {
	l := &p.limits
	refuse := func(wait time.Duration, format string, args ...any) error {
		return &LimitError{wait, p.Name + " " + fmt.Sprintf(format, args...)}
	}
	if l.RequestRate > 0 {
		if wait := p.account.requests.Take(rateOf(l.RequestRate, Quantity(l.RequestRate)), 1); wait > 0 {
			return refuse(wait, "may send %v requests for IDs a second to each server", Quantity(l.RequestRate))
		}
	}
	if most, name := l.most(); n > most {
		return refuse(0, "may take %d IDs in a request (its %s)", most, name)
	}
	if l.Rate > 0 {
		if wait := p.account.ids.Take(l.ids(), n); wait > 0 {
			return refuse(wait, "may take %v IDs a second from each server", Quantity(l.Rate))
		}
	}
	return nil
}

// Settle ends a request for n IDs that was charged: they were made, or are
// given back.
func (c *Credentials) Settle(sequencer string, n int, made bool) {
	own, shared := c.payers(sequencer)
	if own != nil {
		own.settle(n, made)
	}
	if shared != nil {
		shared.settle(n, made)
	}
}

func (p *Principal) settle(n int, made bool) {
	if l := &p.limits; made {
		p.account.taken.Add(uint64(n))
	} else if l.Rate > 0 {
		p.account.ids.Charge(l.ids(), -n)
	}
}

// Usage calls yield with the name of each entry, the IDs that it has taken
// since the server started, and the requests that its Quota has refused, until
// yield returns false.
func (s *Set) Usage(yield func(name string, ids, limited uint64) bool) {
	var last *account
	for _, p := range s.all {
		if a := p.account; a != last && !yield(p.Name, a.taken.Load(), a.limited.Load()) {
			return
		}
		last = p.account
	}
}

// An accountKey is the name of an entry, or of a sequencer with limits.
type accountKey struct {
	name   string
	shared bool
}

// keep lets entries and sequencers with the names of earlier ones have their
// accounts, and returns the accounts.
func (s *Set) keep(earlier map[accountKey]*account) map[accountKey]*account {
	all := make(map[accountKey]*account, s.entries)
	keep := func(key accountKey, p *Principal) {
		if a := cmp.Or(all[key], earlier[key]); a != nil {
			p.account = a
		}
		all[key] = p.account
	}
	for _, p := range s.all {
		keep(accountKey{name: p.Name}, p)
	}
	for name, p := range s.shared {
		keep(accountKey{name, true}, p)
	}
	return all
}
