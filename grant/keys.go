package grant

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is the maximum length of a sequencer's name, in characters.
const maxName = 128

// errBadName is the kind of the errors of CheckName.
var errBadName = errors.New("grant: invalid sequencer name")

// CheckName returns an error if name is not a valid name of a sequencer: 1 to
// 128 ASCII letters, digits and . _ - : of which the first is a letter or a
// digit.
func CheckName(name string) error {
	const rule = "a name has 1 to 128 characters (ASCII letters, digits and . _ - :) and begins with a letter or a " +
		"digit"
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w of %d bytes: %s", errBadName, len(name), rule)
	}
	if i := badInPart(name); i >= 0 {
		_, size := utf8.DecodeRuneInString(name[i:])
		return fmt.Errorf("%w %q: %q at offset %d: %s", errBadName, name, name[i:i+size], i, rule)
	}
	return nil
}

// keyRoot begins the keys of all records; see docs/protocol.md.
const keyRoot = "v1/"

func configKey(name string) string { return keyRoot + name + "/config" }

func nodesPrefix(name string) string { return keyRoot + name + "/n/" }

// nodeKey returns the key of a node ID: decimal, with as many digits as the
// layout's greatest, so that keys list in order.
func nodeKey(name string, node, maxNode uint64) string {
	return fmt.Sprintf("%s%0*d", nodesPrefix(name), len(strconv.FormatUint(maxNode, 10)), node)
}

// nodeOf returns the node ID of a key made by nodeKey.
func nodeOf(name, key string) (uint64, error) {
	digits, ok := strings.CutPrefix(key, nodesPrefix(name))
	if !ok {
		return 0, fmt.Errorf("%w: key %q is not that of a node ID of %s", ErrDamaged, key, name)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: key %q does not end in a node ID", ErrDamaged, key)
	}
	return n, nil
}

// maxKey is the maximum length of a key, in bytes.
const maxKey = 256

// CheckKey returns nil if all keys are valid for a Store, and otherwise an
// error that describes the fault and matches ErrNotSent.
func CheckKey(keys ...string) error {
	for _, key := range keys {
		if len(key) > maxKey {
			return fmt.Errorf("%w: a key must have 1 to %d bytes, not %d", ErrNotSent, maxKey, len(key))
		}
		for part := range strings.SplitSeq(key, "/") {
			if part == "" || badInPart(part) >= 0 {
				return fmt.Errorf("%w: key %q: its parts begin with a letter or a digit, continue with these and . "+
					"_ - : as well, and are joined by one slash", ErrNotSent, key)
			}
		}
	}
	return nil
}

// badInPart returns the offset of the first character that a part of a key
// cannot have there, or -1.
func badInPart(part string) int {
	for i, c := range []byte(part) {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case i == 0 || c != '.' && c != '_' && c != '-' && c != ':':
			return i
		}
	}
	return -1
}
