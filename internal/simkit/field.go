package simkit

import "bytes"

// Field is what a record of the protocol has after a name, up to the next
// comma. A record is of the protocol's own making, so there is none in a value,
// nor is a name.
func Field(value []byte, name string) string {
	i := bytes.Index(value, []byte(name))
	if i < 0 {
		return ""
	}
	rest := value[i+len(name):]
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, `"`))
}
