package dirstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/firnid/firn/grant"
)

// A record's file is a line, the key, a newline and the value:
//
//	firn-record 1 crc32c=1a2b3c4d key=17 value=42
//	v1/orders/n/00042
//	…
//
// The checksum is of all that follows the line. It is there to notice a file
// that something else has changed or cut; the protocol does not rest on it.
const recordHeader = "firn-record %d crc32c=%08x key=%d value=%d\n"

// recordVersion is of the file's form, and in its line.
const recordVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord returns the content of the file of a key with a value.
func encodeRecord(key string, value []byte) []byte {
	body := make([]byte, 0, len(key)+1+len(value))
	body = append(body, key...)
	body = append(body, '\n')
	body = append(body, value...)
	file := fmt.Appendf(nil, recordHeader, recordVersion, crc32.Checksum(body, castagnoli), len(key), len(value))
	return append(file, body...)
}

// decodeRecord returns the key and the value in the content of a file. The
// error, which is ErrDamaged or ErrNewer, says what is wrong.
func decodeRecord(file []byte) (key string, value []byte, err error) {
	line, body, _ := bytes.Cut(file, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 2 || string(fields[0]) != "firn-record" {
		return "", nil, fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	}
	if version, err := strconv.ParseUint(string(fields[1]), 10, 31); err == nil && version > recordVersion {
		return "", nil, fmt.Errorf("%w: form %d, this one knows form %d", ErrNewer, version, recordVersion)
	}
	n := bytes.IndexByte(body, '\n')
	if n < 0 || grant.CheckKey(string(body[:n])) != nil || grant.CheckValue(body[n+1:]) != nil {
		return "", nil, fmt.Errorf("%w: %d bytes, which are no key and value", ErrDamaged, len(file))
	}
	key, value = string(body[:n]), body[n+1:]
	// Its lengths and its checksum, in the one way of writing them.
	if !bytes.Equal(file, encodeRecord(key, value)) {
		return "", nil, fmt.Errorf("%w: length or checksum is wrong", ErrDamaged)
	}
	return key, value, nil
}
