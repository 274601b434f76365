package simkit

import "bytes"

// Field returns the text after a name in a record of the protocol, up to the
// next comma. The protocol writes these records itself, so values contain no
// commas and no names.
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
