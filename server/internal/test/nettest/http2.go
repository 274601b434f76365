package nettest

import (
	"encoding/binary"
	"slices"
)

// H2Preface is what a client of HTTP/2 sends first.
const H2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// H2Frame returns a frame of HTTP/2.
func H2Frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return string(binary.BigEndian.AppendUint32(b, stream)) + payload
}

// CallHeaders returns the header block of a gRPC call, without the table of the
// connection.
func CallHeaders(method string, headers ...string) string {
	all := append([]string{":method", "POST", ":scheme", "http", ":path", method, ":authority", "localhost",
		"content-type", "application/grpc", "te", "trailers"}, headers...)
	var block []byte
	for pair := range slices.Chunk(all, 2) {
		block = append(block, 0) // a literal that is not kept
		for _, text := range pair {
			block = append(append(block, byte(len(text))), text...)
		}
	}
	return string(block)
}

// CallMessage returns a message of a gRPC call with its length.
func CallMessage(m string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m)))) + m
}
