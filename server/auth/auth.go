// Package auth knows who may do what: tokens and certificates, with roles.
//
// A token is "firn_" and 43 characters of base62, of 256 random bits. Files
// hold only its SHA-256, which is enough to know it and not to use it; as a
// token is random, nothing slower than SHA-256 is needed.
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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/server/config"
)

// A Role is what a client may do. Each may do one thing, but for admin.
type Role string

// The roles.
const (
	Generate Role = "generate" // take IDs and read what IDs say; it sees nothing of the fleet
	Read     Role = "read"     // see sequencers, members and metrics, and read what IDs say; it takes no IDs
	Admin    Role = "admin"    // everything
)

// prefix is how a token begins, so that scanners for secrets find it in what is
// published by mistake.
const prefix = "firn_"

// digits of base62, as everywhere in Firn.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// length is how many digits 256 bits take.
const length = 43

// NewToken returns a token, and the hash of it that a file of tokens has.
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

// Hash is what a file of tokens has of a token: its SHA-256, in hexadecimal.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A Principal is who a client is. It does not change.
type Principal struct {
	Name       string
	Role       Role
	sequencers []string // patterns; empty means all
	creates    int      // sequencers that it may create by using them
	sum        [sha256.Size]byte
	subject    subject // of a certificate, if there is no token
	expires    time.Time
	used       *atomic.Bool // set when a token that is being replaced is used; nil for others
}

// A subject is a name in a certificate. Its zero value is none.
type subject struct {
	kind string // uri, dns or cn: the key of the file
	name string
}

// defaultCreates is how many sequencers an entry may create by using them, if
// it does not say: more than an application names, and too few to fill a
// server.
const defaultCreates = 1000

// maxCreates bounds what an entry may say: the names are remembered.
const maxCreates = 100_000

// Ends reports whether the principal expires at some time.
func (p *Principal) Ends() bool { return !p.expires.IsZero() }

// May reports whether the principal may do something, with the sequencer that
// is named; "" names none.
func (p *Principal) May(do Action, sequencer string) bool {
	switch do {
	case Take:
		return p.Role != Read && p.covers(sequencer)
	case Create:
		return p.Role != Read && p.creates > 0 && p.covers(sequencer)
	case See:
		return p.Role != Generate && (sequencer == "" || p.covers(sequencer))
	case SeeAll:
		return p.Role != Generate && (len(p.sequencers) == 0 || slices.Contains(p.sequencers, "*"))
	case Change:
		return p.Role == Admin && p.covers(sequencer)
	}
	return true
}

func (p *Principal) covers(sequencer string) bool {
	if len(p.sequencers) == 0 {
		return true
	}
	for _, pattern := range p.sequencers {
		if _, ok, _ := config.Match([]string{pattern}, sequencer); ok {
			return true
		}
	}
	return false
}

// A Set is all principals. It does not change, and is safe for use by many
// goroutines at once.
type Set struct {
	all       []*Principal // one for each hash or certificate
	entries   int
	byToken   map[[sha256.Size]byte]*Principal
	bySubject map[subject]*Principal
	anyone    bool // with a verified certificate takes IDs
}

// anyCertificate lets everyone take IDs who has a verified certificate, and do
// nothing else.
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

// Token returns who knows a token. It is found by its hash: how long that takes
// says nothing about the tokens that are known, as nobody finds a token by a
// part of its hash.
func (s *Set) Token(token string, now time.Time) (*Principal, bool) {
	return alive(s.byToken[sha256.Sum256([]byte(token))], now)
}

// Replaced returns the names of the entries whose replaced token was used since
// the last call.
func (s *Set) Replaced() (names []string) {
	for _, p := range s.all {
		if p.used != nil && p.used.Swap(false) {
			names = append(names, p.Name)
		}
	}
	return names
}

// note remembers that a token that is being replaced was used.
func (p *Principal) note() {
	if p.used != nil && !p.used.Load() {
		p.used.Store(true)
	}
}

// Certificate returns whose certificate this is, which must have been verified.
// Each of its names is compared with entries for names of that kind alone: what
// one authority puts into a common name, another may take care of in a URI
// only.
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

// subjectsOf are the names in a certificate, those that are most specific
// first.
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

// certified is who has a certificate where no file says more.
func certified(c *x509.Certificate) *Principal {
	p := &Principal{Name: "certificate", Role: Generate, creates: defaultCreates}
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

// Len is how many entries there are.
func (s *Set) Len() int { return s.entries }

// maxFile bounds a file of tokens.
const maxFile = 4 << 20

// maxFaults bounds what is said of one: what is no file of tokens has faults
// everywhere.
const maxFaults = 50

// Parse reads a file of tokens:
//
//	tokens:
//	  - name: billing
//	    sha256: 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
//	    role: generate
//	    sequencers: ["orders", "invoices-*"]   # all, if it is left out
//	    expires: 2027-01-01T00:00:00Z          # never, if it is left out
//	    create: 20                             # sequencers that it may create by using them; 1000 if it is left out
//	  - name: web
//	    sha256: [2c26…, fcde…]                 # the old token and the new one, while it is rotated
//	    role: generate
//	  - name: ops
//	    dns: ops.example.com                   # a name in a client's certificate: uri, dns or cn
//	    role: admin
//
// A file that lets nobody in says so, with tokens: []; one that is empty is an
// error, as it may have been cut off. All that is wrong is reported at once,
// with lines of the file that is named.
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

// read is Parse, as entries.
func read(data []byte, file string) ([]*entry, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: it has more than %d MiB", file, maxFile>>20)
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
	for _, n := range list {
		e := readEntry(n, fault)
		if e == nil {
			continue
		}
		if line, ok := names[e.Name]; ok {
			fault(n, "the name %q is that of line %d too", e.Name, line)
		}
		names[e.Name] = n.Line
		for _, key := range e.keys() {
			if line, ok := seen[key]; ok {
				fault(n, "this token or certificate is that of line %d too", line)
			}
			seen[key] = n.Line
		}
		entries = append(entries, e)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		fault(&more, "a second document begins here: there is one, and all tokens are in it")
	case err != io.EOF:
		faults = append(faults, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if left > 0 {
		faults = append(faults, fmt.Errorf("%s: and %d faults more", file, left))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return entries, nil
}

// emptyFile is said of a file without a list.
const emptyFile = "there are no tokens here: if nobody is to do anything, write tokens: []"

// listOf finds the list of tokens in a document.
func listOf(doc *yaml.Node, fault func(*yaml.Node, string, ...any)) []*yaml.Node {
	if doc.Kind == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null" || doc.Content[0].Kind == yaml.MappingNode && len(doc.Content[0].Content) == 0 {
		fault(&yaml.Node{Line: 1}, "%s", emptyFile)
		return nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		fault(top, "it begins with tokens:")
		return nil
	}
	var list []*yaml.Node
	first := 0
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		switch {
		case key.Value != "tokens":
			fault(key, "there is no key %q here: there is tokens", key.Value)
		case first != 0:
			fault(key, "tokens is on line %d too", first)
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			fault(value, "%s", emptyFile)
		case value.Kind != yaml.SequenceNode:
			fault(value, "tokens is a list: each begins with a dash")
		default:
			list = append(list, value.Content...)
		}
		if key.Value == "tokens" && first == 0 {
			first = key.Line
		}
	}
	return list
}

// A File is a Set that is read again when its file has changed. It must be made
// by Open, and is safe for use by many goroutines at once.
type File struct {
	path string
	set  atomic.Pointer[Set]

	mu   sync.Mutex  // guards what follows
	info fs.FileInfo // of what was read last, or nil
	read time.Time   // when
	sum  [sha256.Size]byte
	gone bool // it was said that the file cannot be read
}

// Open reads a file of tokens. warn is told in a sentence what others may do
// with it.
func Open(path string, warn func(string)) (*File, error) {
	f := &File{path: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if text := modeFault(path, info.Mode()); text != "" && warn != nil {
		warn(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// modeFault says what is wrong with the mode of a file of tokens, if anything.
// To read one is no break-in, as nobody finds a token by its hash; but it says
// who may do what. Windows has no such modes.
func modeFault(path string, mode fs.FileMode) string {
	switch mode = mode.Perm(); {
	case runtime.GOOS == "windows":
	case mode&0o022 != 0:
		return fmt.Sprintf("%s may be written by others (mode %04o): whoever can, can let themselves in; chmod go-w", path, mode)
	case mode&0o044 != 0:
		return fmt.Sprintf("%s may be read by others (mode %04o): they see who may do what, though no token; chmod 600", path, mode)
	}
	return ""
}

// Set is what the file said when it was read last.
func (f *File) Set() *Set { return f.set.Load() }

// Reload reads the file again if it has changed, and reports whether it has.
// After an error all is as it was; changed is then true once for each change,
// and once where the file is gone.
func (f *File) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		return f.isGone(), err
	}
	if f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) &&
		f.read.Sub(info.ModTime()) > coarse {
		return false, nil
	}
	return f.load()
}

// coarse is how long a file's time may stand still while the file changes. What
// was read sooner after it is compared itself, as one hash may have been put
// for another.
const coarse = 3 * time.Second

func (f *File) isGone() (first bool) {
	first, f.gone, f.info = !f.gone, true, nil
	return first
}

func (f *File) load() (changed bool, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return f.isGone(), err
	}
	if info.Size() > maxFile {
		changed = f.info == nil || info.Size() != f.info.Size()
		f.info, f.gone = info, false
		return changed, fmt.Errorf("%s: it has more than %d MiB", f.path, maxFile>>20)
	}
	read := time.Now()
	data, err := os.ReadFile(f.path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: it must be readable by the user that runs firn", err)
		}
		return f.isGone(), err
	}
	sum := sha256.Sum256(data)
	same := f.info != nil && !f.gone && sum == f.sum
	// What was looked at counts also where it is wrong, so that it is said once.
	f.info, f.read, f.sum, f.gone = info, read, sum, false
	if same {
		return false, nil
	}
	s, err := Parse(data, f.path)
	if err != nil {
		return true, err
	}
	f.set.Store(s)
	return true, nil
}
