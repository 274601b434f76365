// Package auth decides what a client may do: tokens and certificates, with
// roles.
//
// A token is "firn_" followed by 43 base62 digits, which encode 256 random
// bits. Files hold only its SHA-256: it identifies the token but cannot be used
// in its place. Because a token is random, a fast hash is enough.
package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/big"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// prefix begins every token, so that secret scanners find tokens that were
// published by mistake.
const prefix = "firn_"

// digits are the base62 digits that all of Firn uses.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// length is the number of base62 digits of 256 bits.
const length = 43

// NewToken returns a token and its hash, which goes into a token file.
func NewToken() (token, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	n := new(big.Int).SetBytes(b[:])
	text := make([]byte, length)
	base, digit := big.NewInt(62), new(big.Int)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = digits[digit.Int64()]
	}
	token = prefix + string(text)
	return token, Hash(token)
}

// Hash returns the SHA-256 of a token in hexadecimal, as a token file has it.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A Principal is an authenticated client. It is immutable.
type Principal struct {
	Name       string
	Role       Role
	sequencers []string // patterns; empty means all
	noCreate   bool     // it may not create sequencers by using them
	sum        [sha256.Size]byte
	subject    subject // of a certificate, if there is no token
	expires    time.Time
	used       *atomic.Bool // set when a token that is being replaced is used; nil for other tokens
}

// A subject is a name in a certificate. The zero value means no name.
type subject struct {
	kind string // uri, dns or cn, as in the token file
	name string
}

// Ends reports whether the principal has an expiry time.
func (p *Principal) Ends() bool { return !p.expires.IsZero() }

// A Set is a set of principals. It is immutable, and safe for concurrent use.
type Set struct {
	all       []*Principal // one per hash or certificate
	entries   int
	byToken   map[[sha256.Size]byte]*Principal
	bySubject map[subject]*Principal
	anyone    bool // with a verified certificate may take IDs
}

// anyCertificate allows every client with a verified certificate to take IDs,
// and nothing more.
var anyCertificate = &Set{anyone: true}

// add adds a principal.
func (s *Set) add(p *Principal) {
	if s.byToken == nil {
		s.byToken, s.bySubject = make(map[[sha256.Size]byte]*Principal), make(map[subject]*Principal)
	}
	s.all = append(s.all, p)
	if p.subject == (subject{}) {
		s.byToken[p.sum] = p
	} else {
		s.bySubject[p.subject] = p
	}
}

// Token returns the principal of a token. Looking it up by hash leaks nothing
// through timing: a client cannot search for a hash digit by digit.
func (s *Set) Token(token string, now time.Time) (*Principal, bool) {
	return alive(s.byToken[sha256.Sum256([]byte(token))], now)
}

// Replaced returns the names of the entries whose old token was used since the
// last call.
func (s *Set) Replaced() (names []string) {
	for _, p := range s.all {
		if p.used != nil && p.used.Swap(false) {
			names = append(names, p.Name)
		}
	}
	return names
}

// note records that a token that is being replaced was used.
func (p *Principal) note() {
	if p.used != nil && !p.used.Load() {
		p.used.Store(true)
	}
}

// Certificate returns the principal of a certificate, which must have been
// verified. Each name is compared only with entries of its kind: an authority
// that controls URIs may let clients choose their common name.
func (s *Set) Certificate(c *x509.Certificate, now time.Time) (*Principal, bool) {
	if s.anyone {
		return certified(c), true
	}
	for of := range subjectsOf(c) {
		if p := s.bySubject[of]; p != nil {
			return alive(p, now)
		}
	}
	return nil, false
}

// subjectsOf yields the names in a certificate, the most specific kind first.
func subjectsOf(c *x509.Certificate) iter.Seq[subject] {
	return func(yield func(subject) bool) {
		for _, u := range c.URIs {
			if !yield(subject{"uri", u.String()}) {
				return
			}
		}
		for _, name := range c.DNSNames {
			if !yield(subject{"dns", name}) {
				return
			}
		}
		if c.Subject.CommonName != "" {
			yield(subject{"cn", c.Subject.CommonName})
		}
	}
}

// certified returns the principal of a certificate if there is no token file.
func certified(c *x509.Certificate) *Principal {
	p := &Principal{Name: "certificate", Role: Generate}
	for of := range subjectsOf(c) {
		p.Name, p.subject = of.name, of
		break
	}
	return p
}

func alive(p *Principal, now time.Time) (*Principal, bool) {
	if p == nil || !p.expires.IsZero() && !now.Before(p.expires) {
		return nil, false
	}
	return p, true
}

// Len returns the number of entries.
func (s *Set) Len() int { return s.entries }

// maxFile bounds the size of a token file.
const maxFile = 4 << 20

// maxFaults bounds how many faults Parse reports: a file that is not a token
// file has one in every line.
const maxFaults = 50

// Parse reads a token file:
//
//	tokens:
//	  - name: billing
//	    sha256: 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
//	    role: generate
//	    sequencers: ["orders", "invoices-*"]   # default: all
//	    expires: 2027-01-01T00:00:00Z          # default: never
//	    create: false                          # by taking IDs of unknown names; default: true
//	  - name: web
//	    sha256: [2c26…, fcde…]                 # old and new token, during rotation
//	    role: generate
//	  - name: ops
//	    dns: ops.example.com                   # certificate name: uri, dns or cn
//	    role: admin
//
// The list of a file that allows no client must be written as tokens: []. An
// empty file is an error, because it may have been cut off. Parse reports all
// faults at once, with their lines in the named file.
func Parse(data []byte, file string) (*Set, error) {
	entries, err := read(data, file)
	if err != nil {
		return nil, err
	}
	s := &Set{entries: len(entries)}
	for _, e := range entries {
		for _, p := range e.principals() {
			s.add(p)
		}
	}
	return s, nil
}

// read is Parse, but returns entries.
func read(data []byte, file string) ([]*entry, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", file, maxFile>>20)
	}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var faults []error
	left := 0
	fault := func(n *yaml.Node, format string, args ...any) {
		if len(faults) == maxFaults {
			left++
			return
		}
		faults = append(faults, fmt.Errorf("%s:%d: %s", file, n.Line, fmt.Sprintf(format, args...)))
	}
	var entries []*entry
	list := listOf(&doc, fault)
	names, seen := make(map[string]int), make(map[string]int)
	for _, n := range list.Content {
		e := readEntry(n, fault)
		if e == nil {
			continue
		}
		if line, ok := names[e.Name]; ok {
			fault(n, "name %q is already used on line %d", e.Name, line)
		}
		names[e.Name] = n.Line
		for _, key := range e.keys() {
			if line, ok := seen[key]; ok {
				fault(n, "this token or certificate is already used on line %d", line)
			}
			seen[key] = n.Line
		}
		e.list, e.file = list, &doc
		entries = append(entries, e)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		fault(&more, "second YAML document: put all tokens into one")
	case err != io.EOF:
		faults = append(faults, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if left > 0 {
		faults = append(faults, fmt.Errorf("%s: and %d more", file, left))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return entries, nil
}

// emptyFile is the error for a file without a list.
const emptyFile = "no tokens found: to allow no client, write tokens: []"

// listOf finds the list of tokens in a document. It is empty after a fault.
func listOf(doc *yaml.Node, fault func(*yaml.Node, string, ...any)) *yaml.Node {
	list := new(yaml.Node)
	if doc.Kind == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null" || doc.Content[0].Kind == yaml.MappingNode && len(doc.Content[0].Content) == 0 {
		fault(&yaml.Node{Line: 1}, "%s", emptyFile)
		return list
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		fault(top, "the file must begin with tokens:")
		return list
	}
	first := 0
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		switch {
		case key.Value != "tokens":
			fault(key, "unknown key %q: the only key here is tokens", key.Value)
		case first != 0:
			fault(key, "tokens is already on line %d", first)
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			fault(value, "%s", emptyFile)
		case value.Kind != yaml.SequenceNode:
			fault(value, "tokens must be a list: each entry begins with a dash")
		default:
			list = value
		}
		if key.Value == "tokens" && first == 0 {
			first = key.Line
		}
	}
	return list
}

// A File is a Set that can be reloaded when its file has changed. It must be
// made by Open, and is safe for concurrent use.
type File struct {
	set atomic.Pointer[Set]

	mu    sync.Mutex // guards files
	files readfile.Files
}

// Open reads a token file. It passes warn a sentence if the file's mode lets
// other users read or change it.
func Open(path string, warn func(string)) (*File, error) {
	f := &File{files: readfile.Files{Paths: []string{path}}}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.load(); err != nil {
		return nil, err
	}
	if text := modeFault(path, info.Mode()); text != "" && warn != nil {
		warn(text)
	}
	return f, nil
}

// modeFault says what is wrong with the mode of a token file, or returns "". A
// readable file reveals no token, as hashes cannot be reversed, but it shows
// what each client may do. Windows has no such modes.
func modeFault(path string, mode fs.FileMode) string {
	switch mode = mode.Perm(); {
	case runtime.GOOS == "windows":
	case mode&0o020 != 0:
		return fmt.Sprintf("%s is writable by other users (mode %04o): they can grant themselves access; run chmod go-w", path, mode)
	case mode&0o004 != 0:
		return fmt.Sprintf("%s is readable by other users (mode %04o): it shows what each client may do, though no token; run chmod 640", path, mode)
	}
	return ""
}

// Set returns the principals of the last version that was read without an
// error.
func (f *File) Set() *Set { return f.set.Load() }

// Reload reads the file again if it has changed, and reports whether it has.
// After an error the previous Set remains; changed is then true once for each
// change, and once when the file has gone.
func (f *File) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load()
}

func (f *File) load() (changed bool, err error) {
	data, changed, err := f.files.Read()
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: the user that runs firn must be able to read it", err)
	}
	if err != nil || !changed {
		return changed, err
	}
	s, err := Parse(data[0], f.files.Paths[0])
	if err != nil {
		return true, err
	}
	f.set.Store(s)
	return true, nil
}
