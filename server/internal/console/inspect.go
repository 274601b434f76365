package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
)

// maxIDs is how many IDs can be read at once.
const maxIDs = 1000

// maxPath is the longest list of IDs in a page's address. Longer lists are sent
// as a form and have no link.
const maxPath = 2000

// An inspectPage shows what is known about some IDs.
type inspectPage struct {
	Text    string // as pasted
	Layout  string // chosen by the visitor; empty tries all
	From    string
	Of      string // the sequencer of the ID, if known
	Made    bool   // just made by this console
	Presets []string
	Fault   string // why no ID can be read
	One     *reading
	Many    *many
	Maker   bool   // the visitor may make IDs
	Sample  string // a sequencer to make an ID of
}

// inspectForm shows the page before anything is read.
func (k *Console) inspectForm(v *visit) {
	if q := v.r.URL.Query(); q.Get("ids") != "" {
		k.answerInspect(v, q.Get("ids"), q)
		return
	}
	k.answerInspect(v, "", v.r.URL.Query())
}

// inspect reads the IDs in the page's address.
func (k *Console) inspect(v *visit) {
	k.answerInspect(v, v.r.PathValue("ids"), v.r.URL.Query())
}

// inspectPosted reads the IDs in the form. It changes nothing, so the origin of
// the form does not matter; it is a POST because there may be many IDs.
func (k *Console) inspectPosted(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusRequestEntityTooLarge, "Too many IDs", fmt.Sprintf("The form takes up to %s bytes. For more, use firn check.", number(maxBody)))
		return
	}
	text := v.r.PostForm.Get("ids")
	if target, ok := inspectAddress(pastedIDs(text), v.r.PostForm); ok && !v.isPart() {
		http.Redirect(v.w, v.r, target, http.StatusSeeOther)
		return
	}
	k.answerInspect(v, text, v.r.PostForm)
}

// inspectAddress returns the address of a page for some IDs, if they are not
// too many.
func inspectAddress(ids []string, q url.Values) (string, bool) {
	target := "/inspect"
	if len(ids) > 0 {
		target += "/" + url.PathEscape(strings.Join(ids, ","))
	}
	keep := url.Values{}
	for _, key := range []string{"layout", "from", "of"} {
		if text := strings.TrimSpace(q.Get(key)); text != "" {
			keep.Set(key, text)
		}
	}
	if len(keep) > 0 {
		target += "?" + keep.Encode()
	}
	return target, len(target) <= maxPath
}

// pastedIDs finds the IDs in pasted text, between spaces, commas, quotes and
// brackets, and returns at most one more than maxIDs.
func pastedIDs(text string) []string {
	ids := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`,;|[](){}<>\u00a0\u200b\ufeff│", r) })
	return ids[:min(len(ids), maxIDs+1)]
}

func (k *Console) answerInspect(v *visit, pasted string, q url.Values) {
	p := inspectPage{Text: strings.TrimSpace(pasted), Layout: strings.TrimSpace(q.Get("layout")), From: q.Get("from"), Of: q.Get("of"), Made: q.Get("made") == "1", Maker: v.who.Maker()}
	for preset := range firn.Presets() {
		p.Presets = append(p.Presets, preset.Name)
	}
	p.Sample = "orders"
	ids := pastedIDs(p.Text)
	if len(ids) > 1 && len(ids) <= maxIDs && !strings.Contains(p.Text, "\n") {
		p.Text = strings.Join(ids, "\n") // one line each, unlike in the address
	}
	o := inspect.Options{Now: v.now}
	var err error
	if p.Layout != "" {
		if o.Layout, err = firn.ParseLayout(p.Layout); err != nil {
			p.Fault = detail(err)
		}
	}
	if p.From != "" && p.Fault == "" {
		if o.From, err = inspect.ParseEncoding(p.From); err != nil {
			p.Fault = detail(err)
		}
	}
	if len(ids) > 0 && p.Fault == "" {
		if p.Of, err = k.unveil(v, ids[0], p.Of, &o); err != nil {
			p.Fault = detail(err)
		}
	}
	own := k.ownLayouts(v)
	switch {
	case p.Fault != "" || len(ids) == 0:
	case len(ids) > maxIDs:
		p.Fault = fmt.Sprintf("There are more than %s IDs. Use firn check, which reads files of any size.", number(maxIDs))
	case len(ids) == 1:
		if p.One, err = k.readOne(v, ids[0], o, own, p.Of); err != nil {
			p.Fault = detail(err)
		}
	default:
		p.Many = readMany(ids, o)
	}
	address, ok := inspectAddress(ids, q)
	if !ok || len(ids) == 0 {
		address = ""
	}
	title := "Inspect"
	if p.One != nil {
		title = ids[0]
	}
	v.answer("inspect", "result", address, p.Fault, page{Title: title, Section: "inspect", Body: p})
}

// A reading is one ID explained.
type reading struct {
	*inspect.Reading
	ID, Text string // as pasted, and in its layout's own format
	Now      time.Time
	Asked    bool   // the visitor chose this layout
	Known    bool   // a known layout is more likely than none
	Other    string // what it may be instead, if not Known
	Ruler    ruler
	Fields   []field
	Texts    []text
	Others   []candidate
	Hidden   uint64 // number of unlikely candidates
	Second   *second
	Holders  []string // a sentence about the holder of its node ID, for each possible sequencer
	Shared   []string // sequencers of the store with this layout
}

// A second is the range of IDs in an ID's second.
type second struct {
	From   time.Time
	Lo, Hi string
	Layout string
}

// A candidate is another way to read an ID.
type candidate struct {
	Name   string
	As     string // the encoding, if it differs
	Share  string
	Time   string
	Reason string
	Link   string
	Yours  string // sequencers of the store with this layout
}

// An ownLayout is a layout in the store, and its sequencers.
type ownLayout struct {
	layout firn.Layout
	names  []string
}

// ownLayouts returns the layouts of the sequencers that the visitor may see. It
// returns none if the store does not answer, because reading an ID does not
// need them.
func (k *Console) ownLayouts(v *visit) (own []ownLayout) {
	if k.admin == nil || !v.who.MayRead("") {
		return nil
	}
	s := k.fleet.recent(v.r.Context())
	for _, q := range s.Sequencers {
		if q.Fault != "" || !v.who.MayRead(q.Name) {
			continue
		}
		i := slices.IndexFunc(own, func(o ownLayout) bool { return o.layout == q.Info.Config.Layout })
		if i < 0 {
			i = len(own)
			own = append(own, ownLayout{layout: q.Info.Config.Layout})
		}
		own[i].names = append(own[i].names, q.Name)
	}
	return own
}

// readOne reads an ID and everything that can be said about it.
func (k *Console) readOne(v *visit, id string, o inspect.Options, own []ownLayout, of string) (*reading, error) {
	result, err := inspect.Read(id, o)
	if err != nil {
		return nil, err
	}
	best := &result.Readings[0]
	r := &reading{
		Reading: best, ID: id, Text: plainText(best), Now: v.now, Asked: !o.Layout.IsZero(), Known: result.Known(), Other: result.Other,
		Ruler:  newRuler(best.Bits(), cutsOfReading(best), best.Bytes),
		Fields: explain(best), Texts: textsOf(best),
	}
	for _, w := range own {
		if w.layout == best.Layout {
			r.Shared = w.names
		}
	}
	if best.HasParts && !best.Layout.IsZero() && !best.Layout.ReadOnly() {
		from := best.Time.Truncate(time.Second)
		if e, err := inspect.EndsOf(best.Layout, from, from.Add(time.Second), best.Layout.Format()); err == nil {
			r.Second = &second{from, e.Lo, e.Hi, best.Layout.String()}
		}
	}
	if best.HasParts && k.admin != nil {
		r.Holders = k.holders(v, of, r.Shared, best)
	}
	if o.Layout.IsZero() {
		k.addOthers(r, id, result.Readings[1:], own, o)
	}
	return r, nil
}

// holders says which server held the node ID of an ID, for its sequencer, or
// for all sequencers that the ID may be from.
func (k *Console) holders(v *visit, of string, shared []string, x *inspect.Reading) (sentences []string) {
	if of != "" && v.who.MayRead(of) {
		if s := k.holder(v, of, x); s != "" {
			return []string{s}
		}
	}
	const some = 3
	for _, name := range shared[:min(some, len(shared))] {
		if s := k.holder(v, name, x); s != "" {
			sentences = append(sentences, "If it is from "+name+": "+s)
		}
	}
	return sentences
}

// holder says which server has, or had at the time of the ID, its node ID, as
// far as the store knows.
func (k *Console) holder(v *visit, name string, x *inspect.Reading) string {
	q, ok := k.fleet.nodes(v.r.Context(), name)
	if !ok || q.Info.Config.Layout != x.Layout {
		return ""
	}
	i := slices.IndexFunc(q.Nodes, func(n grant.NodeInfo) bool { return n.Node == x.Node })
	if i < 0 {
		return "No server of this store has ever held this node ID for " + name + "."
	}
	n := q.Nodes[i]
	host := cmp.Or(n.Host, "a server without a name")
	since, seen := k.fleet.since(name, n)
	switch {
	case !x.Time.Before(n.Until):
		return fmt.Sprintf("No server held it then: the last window ended at %s.", utc(n.Until))
	case !n.Wall.IsZero() && !x.Time.Before(n.Wall), seen && !x.Time.Before(since):
		if n.Held {
			return fmt.Sprintf("%s held it then, and still holds it until %s or longer.", host, utc(n.Until))
		}
		return fmt.Sprintf("%s held it then, and gave it back.", host)
	}
	return fmt.Sprintf("%s held it last; the holder at that time is no longer known.", host)
}

// addOthers adds the other readings, and those by layouts in the store.
func (k *Console) addOthers(r *reading, id string, readings []inspect.Reading, own []ownLayout, o inspect.Options) {
	known := map[string]bool{r.Name: true}
	add := func(x *inspect.Reading, yours string) {
		c := candidate{Name: x.Name, Share: x.Likelihood().String(), Reason: x.Reason(), Yours: yours}
		if x.Encoding != r.Encoding {
			c.As = x.Encoding.String()
		}
		q := url.Values{"from": {x.Encoding.String()}}
		if !x.Layout.IsZero() {
			q.Set("layout", x.Layout.String())
			c.Link, _ = inspectAddress([]string{id}, q)
		}
		if x.HasParts {
			c.Time = utc(x.Time)
		}
		r.Others = append(r.Others, c)
	}
	for i := range readings {
		x := &readings[i]
		if known[x.Name] {
			continue
		}
		if x.Likelihood() == inspect.Unlikely {
			r.Hidden++
			continue
		}
		known[x.Name] = true
		yours := ""
		for _, w := range own {
			if w.layout == x.Layout {
				yours = nameSome(w.names)
			}
		}
		add(x, yours)
	}
	for _, w := range own {
		if known[w.layout.String()] {
			continue
		}
		o.Layout = w.layout
		if result, err := inspect.Read(id, o); err == nil {
			x := result.Readings[0]
			x.Score = 0
			add(&x, nameSome(w.names))
			r.Others[len(r.Others)-1].Share = "–"
		}
	}
}

// nameSome lists the first few names.
func nameSome(names []string) string {
	const some = 3
	if len(names) <= some {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:some], ", ") + fmt.Sprintf(" and %d more", len(names)-some)
}

// A many is a summary of several IDs.
type many struct {
	Layout     string
	Guessed    bool
	Rows       []row
	Good, Bad  int
	Duplicates int
	Inversions int // IDs less than the previous one
	Nodes      int
	First      time.Time
	Last       time.Time
	Span       string
	Longest    string // the longest gap
	HasTime    bool
	Verdict    string
	Fine       bool
}

// A row is one of several IDs.
type row struct {
	N        int
	Text     string
	Link     string
	Fault    string
	Time     time.Time
	HasTime  bool
	Gap      string // from the previous one
	Node     uint64
	Seq      uint64
	Same     int // the number of an earlier equal one; 0 if none
	Back     bool
	HasParts bool
}

// readMany reads IDs by one layout: the chosen one, or the one that fits most
// of them best.
func readMany(ids []string, o inspect.Options) *many {
	m := &many{}
	if o.Layout.IsZero() {
		m.Guessed = true
		guess := inspect.NewSummary(o, o.Now)
		for _, id := range ids {
			_ = guess.Add(id) // the row of an invalid ID says so
		}
		o.Layout = guess.Report().Layout
	}
	if !o.Layout.IsZero() {
		m.Layout = o.Layout.String()
	}
	seen := make(map[string]int)
	nodes := make(map[uint64]bool)
	var before *inspect.Reading
	var longest float64
	for i, id := range ids {
		w := row{N: i + 1, Text: id}
		q := url.Values{}
		if m.Layout != "" && !m.Guessed {
			q.Set("layout", m.Layout)
		}
		w.Link, _ = inspectAddress([]string{id}, q)
		result, err := inspect.Read(id, o)
		if err != nil {
			w.Fault = detail(err)
			m.Bad++
			m.Rows = append(m.Rows, w)
			continue
		}
		m.Good++
		x := result.Readings[0]
		w.HasParts, w.HasTime, w.Time, w.Node, w.Seq = x.HasParts, x.HasParts, x.Time, x.Node, x.Seq
		if first, ok := seen[string(x.Bytes)]; ok {
			w.Same = first
			m.Duplicates++
		} else {
			seen[string(x.Bytes)] = i + 1
		}
		if x.HasParts {
			nodes[x.Node] = true
			if !m.HasTime || x.Time.Before(m.First) {
				m.First = x.Time
			}
			if !m.HasTime || x.Time.After(m.Last) {
				m.Last = x.Time
			}
			m.HasTime = true
		}
		if before != nil {
			if cmp.Compare(string(x.Bytes), string(before.Bytes)) < 0 {
				w.Back = true
				m.Inversions++
			}
			if x.HasParts && before.HasParts {
				gap := inspect.Age(before.Time, x.Time)
				w.Gap = signed(gap)
				longest = max(longest, gap)
			}
		}
		before = &x
		m.Rows = append(m.Rows, w)
	}
	m.Nodes = len(nodes)
	if m.HasTime {
		m.Span = inspect.Span(inspect.Age(m.First, m.Last))
		m.Longest = inspect.Span(longest)
	}
	m.judge()
	return m
}

// signed formats a gap in seconds with its sign.
func signed(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s < 0:
		return "−" + inspect.Span(-s)
	}
	return "+" + inspect.Span(s)
}

// judge sums up the result in a sentence.
func (m *many) judge() {
	m.Fine = m.Bad == 0 && m.Duplicates == 0 && m.Inversions == 0
	var parts []string
	if m.Duplicates > 0 {
		parts = append(parts, plural(uint64(m.Duplicates), "duplicate"))
	} else {
		parts = append(parts, "no duplicates")
	}
	if m.Inversions > 0 {
		parts = append(parts, fmt.Sprintf("%s out of order", number(uint64(m.Inversions))))
	} else {
		parts = append(parts, "in order")
	}
	if m.Bad > 0 {
		parts = append(parts, fmt.Sprintf("%s cannot be read", number(uint64(m.Bad))))
	}
	m.Verdict = plural(uint64(len(m.Rows)), "ID") + ": " + strings.Join(parts, ", ")
}

// makeID makes an ID of a sequencer and explains it.
func (k *Console) makeID(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusBadRequest, "Cannot read the form", "It may be too large.")
		return
	}
	name := strings.TrimSpace(v.r.PostForm.Get("name"))
	if err := service.CheckName(name); err != nil {
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(err)+".")
		return
	}
	if !v.who.MayMake(name) {
		v.forbidden("It does not allow taking IDs of " + name + ".")
		return
	}
	ctx, cancel := k.limited(v.r)
	defer cancel()
	id, layout, err := k.next(ctx, name, v.who)
	if err != nil {
		v.failed(err, ctx.Err() != nil)
		return
	}
	target, _ := inspectAddress([]string{id}, url.Values{"layout": {layout.String()}, "of": {name}})
	http.Redirect(v.w, v.r, target+"&made=1", http.StatusSeeOther)
}
