package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/server/internal/config"
)

// An entry is an entry of a token file.
type entry struct {
	Principal
	sums   [][sha256.Size]byte // of its tokens, the newest last; empty for a certificate
	hashes []*yaml.Node        // the nodes of these
	value  *yaml.Node          // value of the key sha256
	node   *yaml.Node          // the whole entry
	list   *yaml.Node          // the list that it is in
	file   *yaml.Node          // the whole file
}

// maxTokens is how many tokens an entry can have: a new one, and the one it
// replaces.
const maxTokens = 2

// principals returns the principals of the entry: one per token. All but the
// last are being replaced.
func (e *entry) principals() (all []*Principal) {
	if len(e.sums) == 0 {
		return []*Principal{&e.Principal}
	}
	for i, sum := range e.sums {
		p := e.Principal
		p.sum = sum
		if i < len(e.sums)-1 {
			p.used = new(atomic.Bool)
		}
		all = append(all, &p)
	}
	return all
}

// keys returns what identifies the entry: its hashes or certificate name.
func (e *entry) keys() (all []string) {
	if name := e.certificate(); name != "" {
		all = append(all, name)
	}
	for _, sum := range e.sums {
		all = append(all, hex.EncodeToString(sum[:]))
	}
	return all
}

// readHashes parses the value of sha256: a hash, or a list of hashes.
func (e *entry) readHashes(v *yaml.Node, fault func(*yaml.Node, string, ...any)) {
	e.value, e.hashes = v, []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		e.hashes = v.Content
	}
	if n := len(e.hashes); n == 0 || n > maxTokens {
		fault(v, "sha256 has %d hashes: it must have one, or the old and the new one during a rotation", n)
	}
	for _, h := range e.hashes {
		sum, err := hex.DecodeString(h.Value)
		switch {
		case h.Kind != yaml.ScalarNode:
			fault(h, "sha256 must be one hash, or a list of two")
		case strings.HasPrefix(h.Value, prefix):
			fault(h, "sha256 holds a token, not its hash: replace the token, as this file was not kept secret, and write the hash here (firn token hash)")
		case err != nil || len(sum) != sha256.Size:
			fault(h, "sha256 must have 64 hexadecimal digits")
		default:
			e.sums = append(e.sums, [sha256.Size]byte(sum))
		}
	}
}

// readEntry parses one entry; it returns nil if that is not a mapping.
func readEntry(n *yaml.Node, fault func(*yaml.Node, string, ...any)) *entry {
	if n.Kind != yaml.MappingNode {
		fault(n, "an entry needs name, role, and one of sha256, uri, dns and cn")
		return nil
	}
	e := &entry{node: n}
	p := &e.Principal
	given := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if given[k.Value] {
			fault(k, "%s is given twice", k.Value)
		}
		given[k.Value] = true
		if k.Value != "sequencers" && k.Value != "sha256" && v.Kind != yaml.ScalarNode {
			fault(v, "%s must be a single value", k.Value)
			continue
		}
		switch k.Value {
		case "name":
			p.Name = v.Value
			if v.Value == "" || len(v.Value) > 128 || v.Tag == "!!null" || strings.ContainsFunc(v.Value, unicode.IsControl) {
				fault(v, "name must have 1 to 128 bytes and no control characters")
			}
		case "sha256":
			e.readHashes(v, fault)
		case "uri", "dns", "cn":
			p.subject = subject{k.Value, v.Value}
			if v.Value == "" {
				fault(v, "%s must be a name in a client's certificate", k.Value)
			}
		case "certificate":
			fault(k, "certificate was replaced by uri, dns and cn: use the one that %q is in the certificate", v.Value)
		case "create":
			p.noCreate = v.Value == "false"
			if v.Value != "true" && v.Value != "false" {
				fault(v, "create is %q: it must be true or false, whether the entry may create sequencers by using them", v.Value)
			}
		case "role":
			p.Role = Role(v.Value)
			if !slices.Contains(roles[:], p.Role) {
				fault(v, "role is %q: it must be generate, read or admin", v.Value)
			}
		case "expires":
			var err error
			if p.expires, err = time.Parse(time.RFC3339, v.Value); err != nil {
				fault(v, "expires is %q: it must be a time such as 2027-01-01T00:00:00Z", v.Value)
			}
		case "sequencers":
			if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
				fault(v, "sequencers must be a list of names, or patterns with one *; leave it out for all")
				continue
			}
			for _, pattern := range v.Content {
				if pattern.Kind != yaml.ScalarNode || !config.IsPattern(pattern.Value) {
					fault(pattern, "%q is neither a sequencer name nor a pattern with one *", pattern.Value)
				}
				p.sequencers = append(p.sequencers, pattern.Value)
			}
		default:
			fault(k, "unknown key %q: the keys are name, sha256, uri, dns, cn, role, sequencers, create and expires", k.Value)
		}
	}
	for _, needed := range []string{"name", "role"} {
		if !given[needed] {
			fault(n, "%s is missing", needed)
		}
	}
	known := 0
	for _, by := range []string{"sha256", "uri", "dns", "cn"} {
		if given[by] {
			known++
		}
	}
	if known != 1 && !given["certificate"] {
		fault(n, "an entry needs exactly one of sha256, uri, dns and cn")
	}
	return e
}
