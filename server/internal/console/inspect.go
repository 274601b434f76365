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
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/veil"
)

// An inspectPage shows what is known about an ID.
type inspectPage struct {
	Text    string // as pasted
	Layout  string // chosen by the visitor; empty tries all
	From    string
	Of      string // the sequencer of the ID, if known
	Made    bool   // just made by this console
	Presets []string
	Error   string // why it cannot be read
	One     *explanation
	Maker   bool // the visitor may make IDs
}

// inspect reads the ID in the page's address, if there is one. An address with
// the fields of the form leads to that of the ID.
func (k *Console) inspect(v *visit) {
	q := v.r.URL.Query()
	if id := strings.Trim(q.Get("ids"), " \t\r\n\"'`,;"); id != "" {
		http.Redirect(v.w, v.r, inspectAddress(id, q), http.StatusSeeOther)
		return
	}
	p := inspectPage{Text: strings.TrimSpace(v.r.PathValue("id")), Layout: strings.TrimSpace(q.Get("layout")),
		From: q.Get("from"), Of: q.Get("of"), Made: q.Get("made") == "1", Maker: v.who.mayAny(auth.Take)}
	for preset := range firn.Presets() {
		p.Presets = append(p.Presets, preset.Name)
	}
	status := http.StatusOK
	if p.Text != "" {
		if err := k.readID(v, &p); err != nil {
			p.Error, status = detail(err), http.StatusBadRequest
		}
	}
	v.show(status, "inspect", page{Title: cmp.Or(p.Text, "Inspect"), Section: "inspect", Body: p})
}

// inspectAddress returns the address of a page for an ID.
func inspectAddress(id string, q url.Values) string {
	target := "/inspect/" + url.PathEscape(id)
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

// readID reads the ID of a page.
func (k *Console) readID(v *visit, p *inspectPage) (err error) {
	o := inspect.Options{Now: v.now}
	if strings.ContainsAny(p.Text, ", \n\t") {
		return errors.New("paste one ID: firn inspect --summary, and POST /v1/inspect, read many")
	}
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
	if err = k.unveil(v, p.Text, p.Of, &o); err == nil {
		p.One, err = k.readOne(v, p.Text, o, p.Of)
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
	if p := front.Reads(v.r.Context(), creds, of, id, o); p != nil {
		return p
	}
	return nil
}

// An explanation is one ID explained.
type explanation struct {
	*inspect.Reading
	ID, Text string // as pasted, and in its layout's own format
	Now      time.Time
	Chosen   bool   // by the visitor: this layout
	Known    bool   // a known layout is more likely than none
	Other    string // what it may be instead, if not Known
	Anatomy  anatomy
	Texts    []inspect.Text
	Matches  []match // sequencers of the store that it may be from
	Misses   []match // the others that have such a layout
	Others   []alternative
	Hidden   int    // number of unlikely ones
	Range    string // the command that prints the IDs of the same second
}

// An alternative is another way to read an ID.
type alternative struct {
	*inspect.Reading
	As   string // the encoding, if it differs
	Link string
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
		Anatomy: dissect(best), Texts: best.Texts(), Matches: matches, Misses: misses,
	}
	r.Text = r.Texts[0].Text
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
		a.Link = inspectAddress(id, url.Values{"from": {x.Form.String()}, "layout": {x.Layout.String()}})
	}
	return a
}

// rangeCommand returns the command that prints an SQL condition for the IDs of
// a time range.
func rangeCommand(l firn.Layout, from, to time.Time) string {
	return fmt.Sprintf("firn range --layout %s --from %s --to %s --sql id", l,
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
}
