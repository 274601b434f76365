package dirstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/firnid/firn/grant"
)

// The prefix of a file name shows what the file is. It also prevents names that
// Windows reserves for devices, such as con.
const (
	markerName   = "firn-store"
	recordPrefix = "rec+"
	lockPrefix   = "lock+"
	tempPrefix   = "tmp+"
)

// maxName is the maximum length in bytes of an escaped key that is used as a
// name. With the prefix, names are shorter than the limit of any common file
// system: 255 bytes.
const maxName = 100

// hashedPrefix is how much of a long key stays readable.
const hashedPrefix = 36

// fileName returns the NAME of a key, from which the names of its files are
// made. No two keys have the same one, even if case is ignored.
func fileName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c == '/':
			b.WriteByte('+')
		case 'A' <= c && c <= 'Z':
			b.WriteByte('!')
			b.WriteByte(c - 'A' + 'a')
		case c == ':':
			b.WriteString("!0")
		case c == '.' && i == len(key)-1:
			b.WriteString("!1")
		default:
			b.WriteByte(c)
		}
	}
	name := b.String()
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(key))
		name = name[:hashedPrefix] + "~" + hex.EncodeToString(sum[:])
	}
	return name
}

// keyOfName returns the key of a NAME. For a long key, which is in the record
// and not in the name, long is true. ok is false for any other text.
func keyOfName(name string) (key string, long, ok bool) {
	if len(name) == hashedPrefix+1+2*sha256.Size && name[hashedPrefix] == '~' {
		return "", true, true
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '+':
			c = '/'
		case c == '!' && i+1 < len(name):
			i++
			switch c = name[i]; {
			case 'a' <= c && c <= 'z':
				c -= 'a' - 'A'
			case c == '0':
				c = ':'
			case c == '1':
				c = '.'
			}
		}
		b.WriteByte(c)
	}
	key = b.String()
	return key, false, grant.CheckKey(key) == nil && fileName(key) == name
}
