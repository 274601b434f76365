package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/config"
)

// An Entry is an entry of a token file.
type Entry struct {
	Name       string   `yaml:"name"`
	SHA256     hashes   `yaml:"sha256,omitempty,flow"` // of its tokens, the newest last
	URI        string   `yaml:"uri,omitempty"`         // a name in a certificate, like DNS and CN
	DNS        string   `yaml:"dns,omitempty"`
	CN         string   `yaml:"cn,omitempty"`
	Role       Role     `yaml:"role"`
	Sequencers []string `yaml:"sequencers,omitempty,flow"` // names or patterns; empty means all
	Create     *bool    `yaml:"create,omitempty"`          // may it create sequencers by using them? nil means yes
	Expires    string   `yaml:"expires,omitempty"`         // RFC 3339; "" means never
	Quota      `yaml:",inline"`
}

// hashes are one hash, or a list of hashes.
type hashes []string

func (h *hashes) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*h = hashes{n.Value}
		return nil
	}
	return n.Decode((*[]string)(h))
}

func (h hashes) MarshalYAML() (any, error) {
	if len(h) == 1 {
		return h[0], nil
	}
	return []string(h), nil
}

// maxTokens is how many tokens an entry can have: a new one, and the one it
// replaces.
const maxTokens = 2

// Check returns all that is wrong with the entry, joined.
func (e *Entry) Check() error {
	var all []error
	fail := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if e.Name == "" || len(e.Name) > 128 || strings.ContainsFunc(e.Name, unicode.IsControl) {
		fail("name must have 1 to 128 bytes and no control characters")
	}
	if !slices.Contains(roles[:], e.Role) {
		fail("role is %q: it must be generate, read or admin", e.Role)
	}
	by := 0
	for _, given := range []bool{e.SHA256 != nil, e.URI != "", e.DNS != "", e.CN != ""} {
		if given {
			by++
		}
	}
	if by != 1 {
		fail("an entry needs exactly one of sha256, uri, dns and cn")
	}
	if n := len(e.SHA256); e.SHA256 != nil && (n == 0 || n > maxTokens) {
		fail("sha256 has %d hashes: it must have one, or the old and the new one during a rotation", n)
	}
	for _, text := range e.SHA256 {
		switch sum, err := hex.DecodeString(text); {
		case strings.HasPrefix(text, prefix):
			fail("sha256 holds a token, not its hash: replace the token, as this file was not kept secret, and write the hash " +
				"here (firn token hash)")
		case err != nil || len(sum) != sha256.Size:
			fail("sha256 must have 64 hexadecimal digits")
		}
	}
	if e.Sequencers != nil && len(e.Sequencers) == 0 {
		fail("sequencers must be a list of names, or patterns with one *; leave it out for all")
	}
	for _, pattern := range e.Sequencers {
		if !config.IsPattern(pattern) {
			fail("%q is neither a sequencer name nor a pattern with one *", pattern)
		}
	}
	if _, err := time.Parse(time.RFC3339, e.Expires); err != nil && e.Expires != "" {
		fail("expires is %q: it must be a time such as 2027-01-01T00:00:00Z", e.Expires)
	}
	e.Quota.check(fail)
	if e.Quota != (Quota{}) && !e.Role.May(Take) {
		fail("rate, burst, request-rate and max are for roles that take IDs, generate and admin")
	}
	return errors.Join(all...)
}

// Ends returns when the entry expires; the zero time means never.
func (e *Entry) Ends() time.Time {
	t, _ := time.Parse(time.RFC3339, e.Expires)
	return t
}

// subject returns the name in a certificate, if the entry is for one.
func (e *Entry) subject() subject {
	switch {
	case e.URI != "":
		return subject{"uri", e.URI}
	case e.DNS != "":
		return subject{"dns", e.DNS}
	case e.CN != "":
		return subject{"cn", e.CN}
	}
	return subject{}
}

// Certificate returns the name in a certificate, such as "dns ops.example.com";
// "" for tokens.
func (e *Entry) Certificate() string {
	is := e.subject()
	return strings.TrimSpace(is.kind + " " + is.name)
}

// principals returns the principals of the entry, whose role has limits: one
// per token. All but the last are being replaced.
func (e *Entry) principals(role Quota) (all []*Principal) {
	p := Principal{Name: e.Name, Role: e.Role, sequencers: e.Sequencers,
		noCreate: e.Create != nil && !*e.Create, subject: e.subject(), expires: e.Ends(),
		limits: e.Quota.or(role), account: new(account)}
	if len(e.SHA256) == 0 {
		return []*Principal{&p}
	}
	for i, text := range e.SHA256 {
		p := p
		_, _ = hex.Decode(p.sum[:], []byte(text))
		if i < len(e.SHA256)-1 {
			p.used = new(atomic.Bool)
		}
		all = append(all, &p)
	}
	return all
}

// A document is a token file and its entries.
type document struct {
	file       string // its name
	root       yaml.Node
	entries    []*Entry
	roles      map[Role]Quota
	sequencers map[string]Quota
}

// list returns the list of entries, which are in the same order.
func (d *document) list() *yaml.Node { return valueOf(d.root.Content[0], "tokens") }

// valueOf returns the value of a key of a mapping; an empty node if it has
// none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return new(yaml.Node)
}

// maxFile bounds the size of a token file.
const maxFile = 4 << 20

// read reads a token file; see Parse.
func read(data []byte, file string) (*document, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", file, maxFile>>20)
	}
	var content struct {
		Roles      map[Role]Quota
		Sequencers map[string]Quota
		Tokens     []*Entry
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	switch err := d.Decode(&content); {
	case err != nil && err != io.EOF:
		return nil, config.YAMLError(file, data, err)
	case content.Tokens == nil:
		return nil, fmt.Errorf("%s:1: no tokens found: to allow no client, write tokens: []", file)
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF {
		return nil, fmt.Errorf("%s: second YAML document: put all tokens into one", file)
	}
	if err := config.CheckWhole(data, file); err != nil {
		return nil, err
	}
	doc := &document{file: file, entries: content.Tokens, roles: content.Roles, sequencers: content.Sequencers}
	if err := yaml.Unmarshal(data, &doc.root); err != nil {
		return nil, config.YAMLError(file, data, err)
	}
	if len(doc.list().Content) != len(doc.entries) {
		return nil, fmt.Errorf("%s: the file must begin with the key tokens", file)
	}
	if err := doc.check(); err != nil {
		return nil, err
	}
	return doc, nil
}

// check returns all faults of the entries.
func (d *document) check() error {
	var all []error
	fail := func(line int, format string, args ...any) {
		all = append(all, fmt.Errorf("%s:%d: %s", d.file, line, fmt.Sprintf(format, args...)))
	}
	checkValues(d.root.Content[0], fail)
	limits := func(key string, check func(line int, name string) Quota) {
		n := valueOf(d.root.Content[0], key)
		checkValues(n, fail)
		for i := 0; i+1 < len(n.Content); i += 2 {
			line := n.Content[i].Line
			checkValues(n.Content[i+1], fail)
			l := check(line, n.Content[i].Value)
			l.check(func(format string, args ...any) { fail(line, format, args...) })
		}
	}
	limits("roles", func(line int, name string) Quota {
		if !Role(name).May(Take) {
			fail(line, "roles limits %q: only generate and admin take IDs", name)
		}
		return d.roles[Role(name)]
	})
	limits("sequencers", func(line int, name string) Quota {
		if err := grant.CheckName(name); err != nil {
			fail(line, "sequencers limits %q: it must be the name of a sequencer, not a pattern", name)
		}
		return d.sequencers[name]
	})
	lines := make(map[string]int)
	for i, n := range d.list().Content {
		e := d.entries[i]
		if n.Kind != yaml.MappingNode {
			fail(n.Line, "an entry needs name, role, and one of sha256, uri, dns and cn")
			continue
		}
		checkValues(n, fail)
		if err := e.Check(); err != nil {
			for text := range strings.SplitSeq(err.Error(), "\n") {
				fail(n.Line, "%s", text)
			}
		}
		keys := []string{fmt.Sprintf("name %q", e.Name), e.Certificate()}
		for _, text := range e.SHA256 {
			keys = append(keys, strings.ToLower(text))
		}
		for _, key := range keys {
			if line := lines[key]; line != 0 && key != "" {
				fail(n.Line, "this name, token or certificate is already used on line %d", line)
			}
			lines[key] = n.Line
		}
	}
	return errors.Join(all...)
}

// checkValues fails for keys of a mapping without a value: the decoder takes
// null for a key that is not there, which allows more.
func checkValues(n *yaml.Node, fail func(line int, format string, args ...any)) {
	for k := 0; k+1 < len(n.Content); k += 2 {
		if v := n.Content[k+1]; v.Kind == yaml.AliasNode || v.ShortTag() == "!!null" ||
			n.Content[k].ShortTag() == "!!merge" {
			fail(v.Line, "%s needs a value", n.Content[k].Value)
		}
	}
}
