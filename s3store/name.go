package s3store

import (
	"strings"

	"github.com/firnid/firn/grant"
)

const (
	// maxPart is the maximum length of a part of an object key between
	// slashes. Servers that keep objects in files allow 255 bytes or fewer.
	maxPart = 200

	// maxPrefix leaves room for the longest key in the 1024 bytes of an object
	// key.
	maxPrefix = 512

	slash = "~" // in place of a slash, because a file cannot be a directory too
	more  = "!" // ends each part of a long key but the last

	keysDir  = "keys/"
	probeDir = "probe/"
)

// objectOf returns the end of an object key for a key, or for the beginning of
// one: v1~orders~n~00042. A long one is split into parts, so that the object
// keys of all keys with a prefix begin with that of the prefix.
func objectOf(key string) string {
	rest := strings.ReplaceAll(key, "/", slash)
	var b strings.Builder
	for len(rest) >= maxPart {
		b.WriteString(rest[:maxPart-1] + more + "/")
		rest = rest[maxPart-1:]
	}
	return b.String() + rest
}

// keyOf returns the key of an object, unless no key has that object.
func keyOf(object string) (key string, ok bool) {
	key = strings.ReplaceAll(strings.ReplaceAll(object, more+"/", ""), slash, "/")
	return key, grant.CheckKey(key) == nil && objectOf(key) == object
}

// isPrefix reports whether a key can begin with a text.
func isPrefix(text string) bool {
	return text == "" || grant.CheckKey(text) == nil || grant.CheckKey(strings.TrimSuffix(text, "/")) == nil
}
