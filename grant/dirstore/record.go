package dirstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/firnid/firn/grant"
)

// recordHeader is the first line of a record's file. The key, a newline and the
// value follow:
//
//	firn-record 1 crc32c=1a2b3c4d key=17 value=42
//	v1/orders/n/00042
//	…
//
// The checksum covers everything after the line. It detects a file that was
// changed or truncated by something other than this package; the protocol does
// not depend on it.
const recordHeader = "firn-record %d crc32c=%08x key=%d value=%d\n"

// recordVersion is the version of the file format, and part of its first line.
const recordVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord returns the content of the file for a key and its value.
func encodeRecord(key string, value []byte) []byte {
	body := make([]byte, 0, len(key)+1+len(value))
	body = append(body, key...)
	body = append(body, '\n')
	body = append(body, value...)
	file := fmt.Appendf(nil, recordHeader, recordVersion, crc32.Checksum(body, castagnoli), len(key), len(value))
	return append(file, body...)
}

// decodeRecord returns the key and the value in the content of a file. The
// error matches grant.ErrDamaged or grant.ErrNewerVersion.
func decodeRecord(file []byte) (key string, value []byte, err error) {
	line, body, _ := bytes.Cut(file, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 2 || string(fields[0]) != "firn-record" {
		return "", nil, fmt.Errorf("invalid first line: %w", grant.ErrDamaged)
	}
	if version, err := strconv.ParseUint(string(fields[1]), 10, 31); err == nil && version > recordVersion {
		return "", nil, fmt.Errorf("format %d, but this version only knows format %d: %w", version, recordVersion,
			grant.ErrNewerVersion)
	}
	n := bytes.IndexByte(body, '\n')
	if n < 0 || grant.CheckKey(string(body[:n])) != nil || grant.CheckValue(body[n+1:]) != nil {
		return "", nil, fmt.Errorf("no key and value in %d bytes: %w", len(file), grant.ErrDamaged)
	}
	key, value = string(body[:n]), body[n+1:]
	// Checks the lengths and the checksum, in their only valid form.
	if !bytes.Equal(file, encodeRecord(key, value)) {
		return "", nil, fmt.Errorf("length or checksum is wrong: %w", grant.ErrDamaged)
	}
	return key, value, nil
}
