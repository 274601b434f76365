package respapi

import (
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// maxIDText is the length of the longest text that INSPECT reads: more than 128
// digits of base 2.
const maxIDText = 256

// inspect answers INSPECT with the likeliest reading, under the names of the
// HTTP API. As there, integers above 2^53 are strings.
func (c *conn) inspect(args [][]byte) {
	if p := c.server.front.Allow(c.creds, auth.Inspect, ""); p != nil {
		c.failProblem(p, "")
		return
	}
	if len(args[1]) > maxIDText {
		c.failProblem(service.Problemf(service.BadID, "the ID is too long: the limit is %d characters", maxIDText), "")
		return
	}
	var o inspect.Options
	name := ""
	switch {
	case len(args) == 3:
		var err error
		if o.Layout, err = firn.ParseLayout(string(args[2])); err != nil {
			c.failProblem(service.Problemf(service.BadParameter, "%s", textfmt.Message(err)), "")
			return
		}
	case len(args) == 4 && !isWord(args[2], "sequencer"):
		c.fail("syntax error: use " + c.cmd.usage)
		return
	case len(args) == 4:
		if name = string(args[3]); name == "" { // which PrepareInspect takes for no name at all
			c.failProblem(service.Problemf(service.BadName, "%s", textfmt.Message(service.CheckName(name))), "")
			return
		}
	}
	if p := c.server.front.PrepareInspect(c.requestContext(), c.creds, name, string(args[1]), &o); p != nil {
		c.failProblem(p, name)
		return
	}
	result, err := inspect.Read(string(args[1]), o)
	if err != nil {
		c.failProblem(service.Problemf(service.BadID, "%s", textfmt.Message(err)), name)
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
	p := r.Parts()
	b = appendMap(b, resp3, fields)
	b = appendBulk(appendBulk(b, "layout"), p.Layout)
	b = appendValue(appendBulk(b, "time"), resp3, p.Time)
	b = appendValue(appendBulk(b, "time_ms"), resp3, p.TimeMS)
	b = appendValue(appendBulk(b, "node"), resp3, p.Node)
	if len(p.NodeParts) > 0 {
		b = appendMap(appendBulk(b, "node_parts"), resp3, len(p.NodeParts))
		for _, part := range r.NodeParts() {
			b = appendValue(appendBulk(b, part.Name), resp3, p.NodeParts[part.Name])
		}
	}
	b = appendValue(appendBulk(b, "seq"), resp3, p.Seq)
	b = appendBulk(appendBulk(b, "dec"), p.Dec)
	b = appendBulk(appendBulk(b, "hex"), p.Hex)
	b = appendBulk(appendBulk(b, "from"), r.Form.String())
	b = appendDouble(appendBulk(b, "score"), resp3, r.Score)
	b = appendTexts(appendBulk(b, "for"), r.For())
	return appendTexts(appendBulk(b, "against"), r.Against())
}

// appendValue appends a value of inspect's JSON: null, text or an integer.
func appendValue(b []byte, resp3 bool, v any) []byte {
	switch v := v.(type) {
	case nil:
		return appendNull(b, resp3)
	case string:
		return appendBulk(b, v)
	}
	return fmt.Appendf(b, ":%d\r\n", v)
}

func appendTexts(b []byte, texts []string) []byte {
	b = appendArray(b, len(texts))
	for _, t := range texts {
		b = appendBulk(b, t)
	}
	return b
}
