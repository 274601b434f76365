package respapi

import (
	"strconv"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
)

// maxID is the length of the longest text that INSPECT reads: more than 128
// digits of base 2.
const maxID = 256

// inspect answers INSPECT with the likeliest reading, under the names of the
// HTTP API. As there, integers above 2^53 are strings.
func (c *conn) inspect(args [][]byte) {
	if err := c.may(auth.Inspect, ""); err != nil {
		c.deny(err, "permission denied: this client may not use INSPECT")
		return
	}
	if len(args[1]) > maxID {
		c.fail("the ID is too long: the limit is " + strconv.Itoa(maxID) + " characters")
		return
	}
	var o inspect.Options
	var name string
	var err error
	switch {
	case len(args) == 3:
		o.Layout, err = firn.ParseLayout(string(args[2]))
	case len(args) == 4 && !isWord(args[2], "sequencer"):
		err = requestErrorf("syntax error: use %s", find(args[0]).usage)
	case len(args) == 4:
		name, err = c.sequencerName(args[3])
	}
	if err != nil {
		c.fail(service.Detail(err))
		return
	}
	if name != "" && c.may(auth.See, name) != nil {
		if err := c.may(auth.Take, name); err != nil {
			c.denyTake(err, name)
			return
		}
	}
	reader := service.Reader{Backend: c.s.c.Backend, Veil: c.s.c.Veil, Limit: c.s.c.Limit, How: "name its sequencer with SEQUENCER name"}
	if f := reader.Options(c.requestContext(), name, string(args[1]), &o); f != nil {
		c.fault(*f, name)
		return
	}
	result, err := inspect.Read(string(args[1]), o)
	if err != nil {
		c.fail(service.Detail(err))
		return
	}
	c.out = appendReading(c.out, c.resp3, &result.Readings[0])
}

// appendReading appends a reading as a map.
func appendReading(b []byte, resp3 bool, r *inspect.Reading) []byte {
	fields := 11
	if len(r.NodeParts()) > 0 {
		fields++
	}
	b = appendMap(b, resp3, fields)
	b = appendBulk(appendBulk(b, "layout"), r.Name)
	if r.HasParts {
		b = appendBulk(b, "time")
		if y := r.Time.Year(); y < 0 || y > 9999 {
			b = appendNull(b, resp3)
		} else {
			b = appendBulk(b, r.Stamp())
		}
		b = appendJSONNumber(appendBulk(b, "time_ms"), inspect.AppendMillis(nil, r.Time))
		b = appendJSONNumber(appendBulk(b, "node"), inspect.AppendNumber(nil, r.Node))
		if len(r.NodeParts()) > 0 {
			b = appendMap(appendBulk(b, "node_parts"), resp3, len(r.NodeParts()))
			for _, p := range r.NodeParts() {
				b = appendJSONNumber(appendBulk(b, p.Name), inspect.AppendNumber(nil, p.Value))
			}
		}
		b = appendJSONNumber(appendBulk(b, "seq"), inspect.AppendNumber(nil, r.Seq))
	} else {
		for _, name := range [...]string{"time", "time_ms", "node", "seq"} {
			b = appendNull(appendBulk(b, name), resp3)
		}
	}
	b = appendBulk(appendBulk(b, "dec"), r.Dec())
	b = appendBulk(appendBulk(b, "hex"), r.Hex())
	b = appendBulk(appendBulk(b, "from"), r.Encoding.String())
	b = appendDouble(appendBulk(b, "score"), resp3, r.Score)
	b = appendTexts(appendBulk(b, "for"), r.For())
	return appendTexts(appendBulk(b, "against"), r.Against())
}

// appendJSONNumber appends a number in inspect's JSON form, a number or a
// string of digits, as an integer or a bulk string.
func appendJSONNumber(b, json []byte) []byte {
	if json[0] == '"' {
		return appendBulk(b, json[1:len(json)-1])
	}
	return append(append(append(b, ':'), json...), "\r\n"...)
}

func appendTexts(b []byte, texts []string) []byte {
	b = appendArray(b, len(texts))
	for _, t := range texts {
		b = appendBulk(b, t)
	}
	return b
}
