package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
)

// An idWriter writes IDs or runs to a client, in pieces of about chunkSize. For
// each ID or run, append to the buffer that begin returns and pass it to end;
// call close last. It is not safe for concurrent use.
type idWriter struct {
	w             http.ResponseWriter
	before, after string // text around an ID
	between, last string // text between two IDs, and after the last
	buf           []byte
	some          bool  // an ID was appended
	sent          bool  // a piece was sent
	err           error // of the connection: the client has gone
}

// chunkSize is how much of an answer is collected before it is sent. It bounds
// the memory of an answer, however slowly its client reads: 100,000 IDs can
// take 13 MB.
const chunkSize = 32 << 10

// fewTexts is how many IDs or runs fit into one chunk in any format: the
// longest has fewer than 160 bytes. The length of such an answer need not be
// computed first.
const fewTexts = chunkSize / 160

// idWriters pools idWriters for their buffers. These are slightly larger than
// chunkSize, because IDs are appended before the size is checked.
var idWriters = sync.Pool{New: func() any { return &idWriter{buf: make([]byte, 0, chunkSize+4<<10)} }}

// packedChunk is chunkSize for packed IDs: each write costs as much as packing
// thousands of them, and wakes the client.
const packedChunk = 128 << 10

// packings pools the buffers of packed IDs.
var packings = sync.Pool{New: func() any { return new([]byte) }}

// writePacked answers with the packed IDs of a batch.
func writePacked(w http.ResponseWriter, b *service.Batch) {
	h, size := w.Header(), b.Layout().Bits()/8
	h["Content-Type"] = contentTypes[mediaOctets]
	h["Content-Length"] = []string{strconv.Itoa(b.Len() * size)}
	buf := packings.Get().(*[]byte)
	defer packings.Put(buf)
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
	*a = idWriter{w: w, buf: a.buf[:0]}
	// No format has a character that JSON has to escape.
	switch {
	case q.runs:
		a.buf = append(a.buf, `{"runs":[`...)
		a.before, a.between, a.after, a.last = `{"first":"`, ",", "}", "]}\n"
	case q.media == mediaJSON:
		a.buf = append(a.buf, `{"ids":[`...)
		a.before, a.between, a.after, a.last = `"`, `,`, `"`, "]}\n"
	case q.media == mediaText:
		a.after = "\n"
	}
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
	total := len(a.buf) + texts + n*(len(a.before)+len(a.after)) + (n-1)*len(a.between) + len(a.last)
	a.w.Header()["Content-Length"] = []string{strconv.Itoa(total)}
}

// begin returns the buffer to append an ID to.
func (a *idWriter) begin() []byte {
	buf := a.buf
	if a.some {
		buf = append(buf, a.between...)
	}
	a.some = true
	return append(buf, a.before...)
}

// end takes the buffer back, and reports whether the client can still receive
// more.
func (a *idWriter) end(buf []byte) bool {
	a.buf = append(buf, a.after...)
	return len(a.buf) < chunkSize || a.flush()
}

// flush sends the buffer, and reports whether the client is still there.
func (a *idWriter) flush() bool {
	if a.err == nil {
		_, a.err = a.w.Write(a.buf)
	}
	a.buf, a.sent = a.buf[:0], true
	return a.err == nil
}

// close sends the rest; a must not be used afterwards. Every answer has a
// Content-Length; net/http sets that of a short one.
func (a *idWriter) close() {
	a.buf = append(a.buf, a.last...)
	if !a.sent && len(a.buf) > 2048 {
		a.w.Header()["Content-Length"] = []string{strconv.Itoa(len(a.buf))}
	}
	a.flush()
	a.w = nil
	idWriters.Put(a)
}

// appendRun appends a run. The step is always decimal: it is a distance, not an
// ID.
func appendRun(b []byte, r service.Run, f *form.Form) []byte {
	b = strconv.AppendUint(append(r.First.Append(b, f), `","step":"`...), r.Step, 10)
	return strconv.AppendInt(append(b, `","count":`...), int64(r.Count), 10)
}
