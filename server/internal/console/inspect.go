package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/veil"
)

// maxIDs is how many IDs can be read at once.
const maxIDs = 1000

// maxPath is the longest list of IDs in a page's address. Longer lists are sent
// as a form and have no link.
const maxPath = 2000

// An inspectPage shows what is known about some IDs.
type inspectPage struct {
	Text   string // as pasted
	Layout string // chosen by the visitor; empty tries all
	From   string
	Of     string // the sequencer of the ID, if known
	Made   bool   // just made by this console
	Error  string // why no ID can be read
	One    *explanation
	Many   *idList
	Maker  bool // the visitor may make IDs
}

// chosen says how the visitor wants the IDs to be read.
func (p *inspectPage) chosen() string {
	given := slices.DeleteFunc([]string{p.Layout, p.From}, func(s string) bool { return s == "" })
	if len(given) == 0 {
		return ""
	}
	return ": " + strings.Join(given, ", ")
}

// inspect reads the IDs in the page's address, if there are any.
func (k *Console) inspect(v *visit) {
	q := v.r.URL.Query()
	k.answerInspect(v, cmp.Or(v.r.PathValue("ids"), q.Get("ids")), q)
}

// inspectPosted reads the IDs in the form. It changes nothing, so the origin of
// the form does not matter; it is a POST because there may be many IDs.
func (k *Console) inspectPosted(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusRequestEntityTooLarge, "Too many IDs", fmt.Sprintf("The form takes up to %s bytes. For more, use "+
			"firn check.", number(maxBody)))
		return
	}
	text := v.r.PostForm.Get("ids")
	if target := inspectAddress(pastedIDs(text), v.r.PostForm); len(target) <= maxPath {
		http.Redirect(v.w, v.r, target, http.StatusSeeOther)
		return
	}
	k.answerInspect(v, text, v.r.PostForm)
}

// inspectAddress returns the address of a page for some IDs.
func inspectAddress(ids []string, q url.Values) string {
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
	return target
}

// pastedIDs finds the IDs in pasted text, between spaces, commas, quotes and
// brackets, and returns at most one more than maxIDs.
func pastedIDs(text string) []string {
	ids := strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'`,;|[](){}<>\u00a0\u200b\ufeff│", r)
	})
	return ids[:min(len(ids), maxIDs+1)]
}

func (k *Console) answerInspect(v *visit, pasted string, q url.Values) {
	p := inspectPage{Text: strings.TrimSpace(pasted), Layout: strings.TrimSpace(q.Get("layout")), From: q.Get("from"),
		Of: q.Get("of"), Made: q.Get("made") == "1", Maker: v.who.mayAny(auth.Take)}
	ids := pastedIDs(p.Text)
	if len(ids) > 1 && len(ids) <= maxIDs {
		p.Text = strings.Join(ids, "\n") // one line each, unlike in the address
	}
	title := "Inspect"
	if len(ids) == 1 {
		title = ids[0]
	}
	if err := k.readAll(v, &p, ids); err != nil {
		p.Error = detail(err)
	}
	status := http.StatusOK
	if p.Error != "" {
		status = http.StatusBadRequest
	}
	v.show(status, page{Title: title, Section: "inspect"}, p.view())
}

// readAll reads the IDs of a page.
func (k *Console) readAll(v *visit, p *inspectPage, ids []string) (err error) {
	o := inspect.Options{Now: v.now}
	if p.Layout != "" {
		if o.Layout, err = firn.ParseLayout(p.Layout); err != nil {
			return err
		}
	}
	if p.From != "" {
		if o.From, err = form.ParseInput(p.From); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		if err = k.unveil(v, ids[0], p.Of, &o); err != nil {
			return err
		}
	}
	switch {
	case len(ids) > maxIDs:
		return fmt.Errorf("there are more than %s IDs. Use firn check, which reads files of any size", number(maxIDs))
	case len(ids) == 1:
		p.One, err = k.readOne(v, ids[0], o, p.Of)
	case len(ids) > 1:
		p.Many = readMany(ids, o)
	}
	return err
}

// unveil sets the key of a veiled ID of a sequencer that the visitor named. It
// does nothing for other IDs.
func (k *Console) unveil(v *visit, id, of string, o *inspect.Options) error {
	if _, veiled := veil.KeyNumber(id); !veiled || !o.From.IsAuto() {
		return nil
	}
	o.Layout = firn.Layout{} // that of the sequencer
	front, creds := k.frontFor(v)
	if p := front.PrepareInspect(v.r.Context(), creds, of, id, o); p != nil {
		return p
	}
	return nil
}

// An explanation is one ID explained.
type explanation struct {
	*inspect.Reading
	ID, Text string // as pasted, and in its layout's own format
	Now      time.Time
	Chosen   bool    // by the visitor: this layout
	Known    bool    // a known layout is more likely than none
	Other    string  // what it may be instead, if not Known
	Matches  []match // sequencers of the store that it may be from
	Misses   []match // the others that have such a layout
	Others   []alternative
	Hidden   int    // number of unlikely ones
	Range    string // the command that prints the IDs of the same second
}

func (x *explanation) hasNode() bool { return x.Layout.IsZero() || x.Layout.NodeBits() > 0 }

func (x *explanation) hasSeq() bool { return x.Layout.IsZero() || x.Layout.SeqBits() > 0 }

// names lists some sequencers that the ID may be from.
func (x *explanation) names() string {
	var list []string
	for _, m := range x.Matches[:min(3, len(x.Matches))] {
		list = append(list, m.Name)
	}
	text := strings.Join(list, ", ")
	if len(list) < len(x.Matches) {
		text += " and others"
	}
	return text
}

// readAs says how the text was read.
func (x *explanation) readAs() string {
	text := fmt.Sprintf(" · read as %s, %d bits", x.Form, x.Bits())
	if len(x.Matches) > 0 || !x.Chosen {
		text += " · "
	}
	return text
}

// sure reports whether the ID has its layout: it is likely, or a sequencer of
// the store has it.
func (x *explanation) sure() bool { return len(x.Matches) > 0 || x.Likelihood() == inspect.Likely }

// verdict says how likely it is that the ID has its layout.
func (x *explanation) verdict() string {
	switch {
	case len(x.Matches) > 0:
		return "as in " + x.names()
	case x.Known:
		return x.Likelihood().String()
	case x.Other != "":
		return "but more probably no known layout: " + x.Other
	}
	return "but more probably no known layout"
}

// lead says what the ID contains. Every other part is to stand out.
func (x *explanation) lead() []string {
	if !x.HasParts {
		return []string{"It contains no time, node or sequence."}
	}
	parts, by, seq := []string{"Made ", ago(x.Time, x.Now)}, " by node ", ", with sequence number "
	if randomElsewhere(x.Layout) {
		by = ". If Firn made it: by node "
	}
	if x.hasNode() {
		parts = append(parts, by, strconv.FormatUint(x.Node, 10))
	}
	if x.hasSeq() {
		parts = append(parts, seq, number(x.Seq))
	}
	return append(parts, ".")
}

// tone returns the class of text that is reassuring, or not.
func tone(sure bool) string {
	if sure {
		return "sure"
	}
	return "unsure"
}

// part returns a part of an ID as text, if the ID holds parts.
func part(x *inspect.Reading, text string) string {
	if x.HasParts {
		return text
	}
	return ""
}

// An alternative is another way to read an ID.
type alternative struct {
	*inspect.Reading
	As   string // the encoding, if it differs
	Link string
}

// encodings returns a table of the ID in every encoding.
func (x *explanation) encodings() table {
	t := table{Class: "texts", Head: "sr", Columns: []column{{"Encoding", ""}, {"Text", ""}, {"Copy", ""}}}
	for _, e := range x.Texts() {
		class := ""
		if e.Name == firn.Binary.String() {
			class = "wide"
		}
		t.Rows = append(t.Rows, row{Class: class, Cells: []cell{{Text: e.Name}, {Text: e.Text, Code: true}, {Copy: e.Text}}})
	}
	return t
}

// others returns a table of the other readings.
func (x *explanation) others() table {
	t := table{Class: "stack", Columns: []column{{"Layout", ""}, {"Likelihood", "n"}, {"Time", "nb"}, {"Notes", ""}}}
	for _, o := range x.Others {
		name := cell{Text: o.Name, Link: o.Link}
		if o.As != "" {
			name.Small = "as " + o.As
		}
		t.Rows = append(t.Rows, row{Cells: append([]cell{name},
			texts(o.Likelihood().String(), part(o.Reading, utc(o.Time)), o.Reason())...)})
	}
	return t
}

// readOne reads an ID and everything that can be said about it. A sequencer
// that the ID matches decides its layout, unless the visitor has chosen one.
func (k *Console) readOne(v *visit, id string, o inspect.Options, of string) (*explanation, error) {
	result, err := inspect.Read(id, o)
	if err != nil {
		return nil, err
	}
	best, known := &result.Readings[0], result.Known()
	matches, misses := k.matches(v, id, o, of)
	if o.Layout.IsZero() && len(matches) > 0 {
		best, known = matches[0].reading, true
	}
	r := &explanation{
		Reading: best, ID: id, Now: v.now, Chosen: !o.Layout.IsZero(), Known: known, Other: result.Other,
		Text: best.Texts()[0].Text, Matches: matches, Misses: misses,
	}
	if best.HasParts && !best.Layout.IsZero() && !best.Layout.ReadOnly() {
		from := best.Time.Truncate(time.Second)
		r.Range = rangeCommand(best.Layout, from, from.Add(time.Second))
	}
	for i := range result.Readings {
		x := &result.Readings[i]
		switch {
		case x.Name == best.Name && x.Form == best.Form:
		case x.Likelihood() == inspect.Unlikely:
			r.Hidden++
		default:
			r.Others = append(r.Others, alternativeTo(best, x, id))
		}
	}
	return r, nil
}

// alternativeTo returns a reading that is not the best one.
func alternativeTo(best, x *inspect.Reading, id string) alternative {
	a := alternative{Reading: x}
	if x.Form != best.Form {
		a.As = x.Form.String()
	}
	if !x.Layout.IsZero() {
		a.Link = inspectAddress([]string{id}, url.Values{"from": {x.Form.String()}, "layout": {x.Layout.String()}})
	}
	return a
}

// rangeCommand returns the command that prints an SQL condition for the IDs of
// a time range.
func rangeCommand(l firn.Layout, from, to time.Time) string {
	return fmt.Sprintf("firn range --layout %s --from %s --to %s --sql id", l,
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
}

// An idList is several IDs, read by one layout.
type idList struct {
	Layout  string // empty if none fits
	Guessed bool
	Rows    []listedID
	Verdict string
	Fine    bool
}

// A listedID is one of several IDs.
type listedID struct {
	*inspect.Reading // nil if the text cannot be read
	N                int
	Text, Link       string
	Note             string // what is wrong with it
}

// readAs says by which layout the IDs were read.
func (l *idList) readAs() string {
	switch {
	case l.Layout == "":
		return "No layout fits all of them."
	case l.Guessed:
		return "Read as layout " + l.Layout + ", which fits best."
	}
	return "Read as layout " + l.Layout + "."
}

// table returns the list.
func (l *idList) table() table {
	t := table{Class: "stack many", Columns: []column{
		{"No.", "n"}, {"ID", "nb"}, {"Time", "nb"}, {"Node", "n"}, {"Sequence", "n"}, {"Notes", ""},
	}}
	for _, r := range l.Rows {
		if len(r.Text) > 40 {
			t.Columns[1].Class = "" // it may break
		}
		cells := append(texts(strconv.Itoa(r.N)), cell{Text: r.Text, Link: r.Link, Code: true})
		if x := r.Reading; x != nil {
			cells = append(cells, texts(part(x, utc(x.Time)), part(x, strconv.FormatUint(x.Node, 10)),
				part(x, number(x.Seq)))...)
		} else {
			cells = append(cells, texts("", "", "")...)
		}
		class := ""
		if r.Note != "" {
			class = "odd"
		}
		t.Rows = append(t.Rows, row{Class: class, Cells: append(cells, texts(r.Note)...)})
	}
	return t
}

// readMany reads IDs by one layout: the chosen one, or the one that fits most
// of them best.
func readMany(ids []string, o inspect.Options) *idList {
	m := &idList{Guessed: o.Layout.IsZero()}
	if m.Guessed {
		guess := inspect.NewSummary(o, o.Now)
		for _, id := range ids {
			_ = guess.Add(id) // the row of an invalid ID says so
		}
		o.Layout = guess.Report().Layout
	}
	q := url.Values{}
	if !o.Layout.IsZero() {
		m.Layout = o.Layout.String()
	}
	if !m.Guessed {
		q.Set("layout", m.Layout)
	}
	seen, digits := make(map[string]int), inspect.NewDigits(o.Now)
	bad, duplicates, inversions, previous := 0, 0, 0, ""
	for i, id := range ids {
		w := listedID{N: i + 1, Text: id, Link: inspectAddress([]string{id}, q)}
		result, err := inspect.Read(id, o)
		if err != nil {
			w.Note = detail(err)
			bad++
			m.Rows = append(m.Rows, w)
			continue
		}
		w.Reading = &result.Readings[0]
		digits.Add(w.Bytes)
		bits := string(w.Bytes)
		if bits < previous {
			w.Note = "less than the previous ID"
			inversions++
		}
		if first, ok := seen[bits]; ok {
			w.Note = fmt.Sprintf("duplicate of no. %d", first)
			duplicates++
		} else {
			seen[bits] = i + 1
		}
		previous = bits
		m.Rows = append(m.Rows, w)
	}
	m.Fine = bad+duplicates+inversions == 0
	m.Verdict = fmt.Sprintf("%s: %s, %d out of order, %d cannot be read", plural(uint64(len(ids)), "ID"),
		plural(uint64(duplicates), "duplicate"), inversions, bad)
	if rounding := digits.Rounding(o.Layout, nil); rounding.Sure {
		m.Fine = false
		m.Verdict += "; the IDs are " + rounding.String()
	}
	return m
}
