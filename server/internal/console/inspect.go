package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
)

// An inspectPage shows what is known about an ID.
type inspectPage struct {
	Text    string // as pasted
	Layout  string // chosen by the visitor; empty tries all
	From    string
	Of      string // the sequencer of the ID, if known
	Made    bool   // just made by this console
	Presets []string
	Fault   string // why no ID can be read
	One     *reading
	Maker   bool // the visitor may make IDs
}

// inspect reads the ID in the page's address, if there is one.
func (k *Console) inspect(v *visit) {
	q := v.r.URL.Query()
	k.answerInspect(v, cmp.Or(v.r.PathValue("ids"), q.Get("ids")), q)
}

// inspectPosted leads to the page of the ID in the form.
func (k *Console) inspectPosted(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusBadRequest, "Cannot read the form", "It may be too large.")
		return
	}
	http.Redirect(v.w, v.r, inspectAddress(v.r.PostForm.Get("ids"), v.r.PostForm), http.StatusSeeOther)
}

// inspectAddress returns the address of the page of an ID.
func inspectAddress(id string, q url.Values) string {
	target := "/inspect"
	if id = pastedID(id); id != "" {
		target += "/" + url.PathEscape(id)
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

// pastedID returns the ID in pasted text, without spaces, commas, quotes and
// brackets around it.
func pastedID(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`,;|[](){}<>\u00a0\u200b\ufeff│", r) })
}

func (k *Console) answerInspect(v *visit, pasted string, q url.Values) {
	p := inspectPage{Text: strings.TrimSpace(pasted), Layout: strings.TrimSpace(q.Get("layout")), From: q.Get("from"), Of: q.Get("of"), Made: q.Get("made") == "1", Maker: v.who.Maker()}
	for preset := range firn.Presets() {
		p.Presets = append(p.Presets, preset.Name)
	}
	id := pastedID(p.Text)
	if err := k.read(v, &p, id); err != nil {
		p.Fault = detail(err)
	}
	status := http.StatusOK
	if p.Fault != "" {
		status = http.StatusBadRequest
	}
	v.show(status, "inspect", page{Title: cmp.Or(id, "Inspect"), Section: "inspect", Body: p})
}

// read reads the ID of a page, if there is one.
func (k *Console) read(v *visit, p *inspectPage, id string) (err error) {
	o := inspect.Options{Now: v.now}
	if p.Layout != "" {
		if o.Layout, err = firn.ParseLayout(p.Layout); err != nil {
			return err
		}
	}
	if p.From != "" {
		if o.From, err = inspect.ParseEncoding(p.From); err != nil {
			return err
		}
	}
	switch {
	case id == "":
		return nil
	case strings.ContainsAny(id, " ,\n"):
		return errors.New("there is more than one ID: use firn inspect or firn check")
	}
	if p.Of, err = k.unveil(v, id, p.Of, &o); err != nil {
		return err
	}
	p.One, err = k.readOne(v, id, o, p.Of)
	return err
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
	Matches  []match // sequencers of the store that it may be from
	Behind   []match // the others that have such a layout
	Others   []candidate
	Hidden   int    // number of unlikely candidates
	Range    string // the command that prints the IDs of the same second
}

// A candidate is another way to read an ID.
type candidate struct {
	Name   string
	As     string // the encoding, if it differs
	Share  string
	Time   string
	Reason string
	Link   string
}

// readOne reads an ID and everything that can be said about it. A sequencer
// that the ID matches decides its layout, unless the visitor has chosen one.
func (k *Console) readOne(v *visit, id string, o inspect.Options, of string) (*reading, error) {
	result, err := inspect.Read(id, o)
	if err != nil {
		return nil, err
	}
	best, known := &result.Readings[0], result.Known()
	matches, behind := k.matches(v, id, o, of)
	if o.Layout.IsZero() && len(matches) > 0 {
		best, known = matches[0].x, true
	}
	cuts := cutsOfReading(best)
	r := &reading{
		Reading: best, ID: id, Now: v.now, Asked: !o.Layout.IsZero(), Known: known, Other: result.Other,
		Ruler:  newRuler(best.Bits(), cuts, best.Bytes),
		Fields: explainFields(best.Layout, cuts, best), Texts: textsOf(best), Matches: matches, Behind: behind,
	}
	r.Text = r.Texts[0].Text
	if best.HasParts && !best.Layout.IsZero() && !best.Layout.ReadOnly() {
		from := best.Time.Truncate(time.Second)
		r.Range = rangeCommand(best.Layout, from, from.Add(time.Second))
	}
	for i := range result.Readings {
		x := &result.Readings[i]
		switch {
		case x.Name == best.Name && x.Encoding == best.Encoding:
		case x.Likelihood() == inspect.Unlikely:
			r.Hidden++
		default:
			r.Others = append(r.Others, otherReading(id, x, best))
		}
	}
	return r, nil
}

// otherReading describes a reading other than the best one.
func otherReading(id string, x, best *inspect.Reading) candidate {
	c := candidate{Name: x.Name, Share: x.Likelihood().String(), Reason: x.Reason()}
	if x.Encoding != best.Encoding {
		c.As = x.Encoding.String()
	}
	if !x.Layout.IsZero() {
		c.Link = inspectAddress(id, url.Values{"from": {x.Encoding.String()}, "layout": {x.Layout.String()}})
	}
	if x.HasParts {
		c.Time = utc(x.Time)
	}
	return c
}

// rangeCommand returns the command that prints an SQL condition for the IDs of
// a time range.
func rangeCommand(l firn.Layout, from, to time.Time) string {
	return fmt.Sprintf("firn range --layout %s --from %s --to %s --sql id", l, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
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
	k.fleet.forget() // the node ID may be new
	target := inspectAddress(id, url.Values{"layout": {layout.String()}, "of": {name}})
	http.Redirect(v.w, v.r, target+"&made=1", http.StatusSeeOther)
}
