package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
)

// A punctuation is the text around IDs or runs. No format has a character that
// JSON has to escape.
type punctuation struct{ before, between, after string }

var (
	jsonPunctuation = punctuation{`{"ids":["`, `","`, "\"]}\n"}
	textPunctuation = punctuation{"", "\n", "\n"}
	runsPunctuation = punctuation{`{"runs":[{"first":"`, `},{"first":"`, "}]}\n"}
)

// An idWriter writes IDs or runs to a client, in pieces of about chunkSize. For
// each ID or run, append to the buffer that next returns and pass it to add;
// call close last. It is not safe for concurrent use.
type idWriter struct {
	w http.ResponseWriter
	punctuation
	separator string // before the next ID or run
	buf       []byte
}

// chunkSize is how much of an answer is collected before it is sent. It bounds
// the memory of an answer, however slowly its client reads: 100,000 IDs can
// take 13 MB.
const chunkSize = 32 << 10

// fewItems is how many IDs or runs have at most 2048 bytes in any format: the
// longest has fewer than 160. Net/http sets the length of such an answer.
const fewItems = 2048 / 160

// idWriters pools idWriters for their buffers. These are slightly larger than
// chunkSize, because IDs are appended before the size is checked.
var idWriters = sync.Pool{New: func() any { return &idWriter{buf: make([]byte, 0, chunkSize+4<<10)} }}

// packedChunk is chunkSize for packed IDs: each write costs as much as packing
// thousands of them, and wakes the client.
const packedChunk = 128 << 10

// packedBuffers pools the buffers of packed IDs.
var packedBuffers = sync.Pool{New: func() any { return new([]byte) }}

// writePacked answers with the packed IDs of a batch.
func writePacked(w http.ResponseWriter, b *service.Batch) {
	h, size := w.Header(), b.Layout().Bits()/8
	h["Content-Type"] = contentTypes[mediaOctets]
	h["Content-Length"] = []string{strconv.Itoa(b.Len() * size)}
	buf := packedBuffers.Get().(*[]byte)
	defer packedBuffers.Put(buf)
	for lo := 0; lo < b.Len(); {
		hi := min(lo+packedChunk/size, b.Len())
		*buf = b.AppendRaw(slices.Grow((*buf)[:0], (hi-lo)*size), lo, hi)
		if _, err := w.Write(*buf); err != nil {
			return // the client has gone
		}
		lo = hi
	}
}

// contentTypes are header values that need no allocation.
var contentTypes = [...][]string{
	mediaJSON:   {"application/json"},
	mediaText:   {"text/plain; charset=utf-8"},
	mediaOctets: {"application/octet-stream"},
}

// newIDWriter begins the answer to a request for IDs in text or JSON.
func newIDWriter(w http.ResponseWriter, q *nextRequest) *idWriter {
	a := idWriters.Get().(*idWriter)
	*a = idWriter{w: w, punctuation: jsonPunctuation, buf: a.buf[:0]}
	switch {
	case q.Runs:
		a.punctuation = runsPunctuation
	case q.media == mediaText:
		a.punctuation = textPunctuation
	}
	a.buf = append(a.buf, a.before...)
	w.Header()["Content-Type"] = contentTypes[q.media]
	return a
}

// scratch returns an empty buffer for a temporary text.
func (a *idWriter) scratch() []byte { return a.buf[len(a.buf):] }

// setLength sets the length of an answer with n IDs or runs, whose texts
// together have so many bytes. It comes before the first of them. Without a
// Content-Length, an answer that was cut off looks complete to Wget and to
// HTTP/1.0 clients and proxies, and its last ID may be half of one.
func (a *idWriter) setLength(n, texts int) {
	total := len(a.before) + texts + (n-1)*len(a.between) + len(a.after)
	a.w.Header()["Content-Length"] = []string{strconv.Itoa(total)}
}

// next returns the buffer to append an ID or run to.
func (a *idWriter) next() []byte {
	buf := append(a.buf, a.separator...)
	a.separator = a.between
	return buf
}

// add takes the buffer back, and reports whether the client can still receive
// more.
func (a *idWriter) add(buf []byte) bool {
	a.buf = buf
	if len(buf) < chunkSize {
		return true
	}
	_, err := a.w.Write(buf)
	a.buf = buf[:0]
	return err == nil
}

// close sends the rest; a must not be used afterwards.
func (a *idWriter) close() {
	a.buf = append(a.buf, a.after...)
	a.w.Write(a.buf) // an error means that the client has gone
	a.w = nil
	idWriters.Put(a)
}

// appendRun appends a run. The step is always decimal: it is a distance, not an
// ID.
func appendRun(b []byte, r service.Run, f *form.Form) []byte {
	b = strconv.AppendUint(append(r.First.Append(b, f), `","step":"`...), r.Step, 10)
	return strconv.AppendInt(append(b, `","count":`...), int64(r.Count), 10)
}
