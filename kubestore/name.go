package kubestore

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/firnid/firn/grant"
)

const (
	// maxName is the maximum length of the name of a Kubernetes object.
	maxName = 253

	// maxPrefix leaves room for the hash of a long key, and makes the prefix a
	// valid label value.
	maxPrefix = 63

	defaultPrefix = "firn"
	identityName  = "firn-identity"
)

// An encoded name is PREFIX.KEY, in which characters of a key that are not
// allowed in names of Kubernetes are escaped:
//
//	a-z 0-9     themselves
//	/           "." before one of these; "--4" otherwise
//	-           "-" between two of these; "--0" otherwise
//	. _ :       "--1" "--2" "--3"
//	A-Z         "--a" to "--z"
//
// So each label of the name begins and ends with a letter or a digit. A name
// that would be longer than maxName ends in the hash of the key instead; the
// annotation keyAnnotation then contains the key. "--9" introduces the hash.
const (
	escapeMark = "--"
	hashMark   = "--9"
)

// escapes are the characters that are escaped by a digit, their index.
const escapes = "-._:/"

// nameOf returns the name of the Lease of a key, and whether it contains a hash
// of the key.
func nameOf(prefix, key string) (name string, hashed bool) {
	var b strings.Builder
	b.WriteString(encodePart(prefix))
	escapeTo(&b, "/"+key)
	if b.Len() <= maxName {
		return b.String(), false
	}
	sum := sha256.Sum256([]byte(key))
	hash := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return encodePart(prefix) + hashMark + strings.ToLower(hash), true
}

// encodePart returns the prefix as the beginning of a name, without a dot.
func encodePart(prefix string) string { return strings.ReplaceAll(prefix, "/", "--4") }

// escapeTo writes a text that follows a letter or a digit.
func escapeTo(b *strings.Builder, text string) {
	for i := range len(text) {
		c := text[i]
		followed := i+1 < len(text) && isPlain(text[i+1])
		switch {
		case isPlain(c):
			b.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			b.WriteString(escapeMark)
			b.WriteByte(c - 'A' + 'a')
		case c == '/' && followed:
			b.WriteByte('.')
		case c == '-' && followed && isPlain(text[i-1]):
			b.WriteByte('-')
		default:
			b.WriteString(escapeMark)
			b.WriteByte(byte('0' + strings.IndexByte(escapes, c)))
		}
	}
}

// isPlain reports whether a character of a key represents itself in a name, and
// may begin and end one.
func isPlain(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// keyOf returns the key of a Lease with this name, if it belongs to the prefix.
// A name that nameOf would not return does not.
func keyOf(prefix, name, keyAnnotation string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, encodePart(prefix))
	if !ok {
		return "", false
	}
	if strings.HasPrefix(rest, hashMark) {
		key = keyAnnotation
	} else if key, ok = unescape(rest); !ok {
		return "", false
	} else if key, ok = strings.CutPrefix(key, "/"); !ok {
		return "", false
	}
	if grant.CheckKey(key) != nil {
		return "", false
	}
	again, _ := nameOf(prefix, key)
	return key, again == name
}

// unescape reverses escapeTo.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '.':
			b.WriteByte('/')
		case strings.HasPrefix(text[i:], escapeMark) && i+2 < len(text):
			i += 2
			switch c := text[i]; {
			case c >= 'a' && c <= 'z':
				b.WriteByte(c - 'a' + 'A')
			case c >= '0' && int(c-'0') < len(escapes):
				b.WriteByte(escapes[c-'0'])
			default:
				return "", false
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// checkPrefix reports whether a prefix is valid: DNS labels, joined by slashes.
func checkPrefix(prefix string) bool {
	if len(prefix) > maxPrefix {
		return false
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || strings.Contains(part, escapeMark) || !isPlain(part[0]) || !isPlain(part[len(part)-1]) {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !isPlain(c) && c != '-' {
				return false
			}
		}
	}
	return true
}
