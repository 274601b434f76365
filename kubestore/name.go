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

	// maxPrefix leaves room for the hash of a key, and makes the prefix a valid
	// label value.
	maxPrefix = 63

	defaultPrefix = "firn"
	identityName  = "firn-identity"

	hashMark = "--9" // before a hash
)

// namePrefix returns the beginning of names. No prefix contains two hyphens.
func namePrefix(prefix string) string { return strings.ReplaceAll(prefix, "/", "--4") }

// nameOf returns the name of the Lease of a key, and whether it contains a hash
// of the key. It is PREFIX.KEY with dots in place of slashes, such as
// firn.v1.orders.n.0042, or PREFIX--9HASH if Kubernetes does not allow that
// name; the annotation keyAnnotation then contains the key.
func nameOf(prefix, key string) (name string, hashed bool) {
	prefix = namePrefix(prefix)
	if name = prefix + "." + strings.ReplaceAll(key, "/", "."); isPath(key) && len(name) <= maxName {
		return name, false
	}
	sum := sha256.Sum256([]byte(key))
	hash := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return prefix + hashMark + strings.ToLower(hash), true
}

// keyOf returns the key of a Lease with this name, if it belongs to the prefix.
// A name that nameOf would not return does not.
func keyOf(prefix, name, keyAnnotation string) (key string, ok bool) {
	key = keyAnnotation
	if rest, plain := strings.CutPrefix(name, namePrefix(prefix)+"."); plain {
		key = strings.ReplaceAll(rest, ".", "/")
	}
	again, _ := nameOf(prefix, key)
	return key, again == name && grant.CheckKey(key) == nil
}

// isPath reports whether a text consists of labels of DNS in lower case, joined
// by slashes.
func isPath(text string) bool {
	for part := range strings.SplitSeq(text, "/") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || part[0] == '-' ||
			part[len(part)-1] == '-' {
			return false
		}
	}
	return true
}

// checkPrefix reports whether a prefix is valid.
func checkPrefix(prefix string) bool {
	return len(prefix) <= maxPrefix && isPath(prefix) && !strings.Contains(prefix, "--")
}
