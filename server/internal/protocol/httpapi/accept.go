package httpapi

import (
	"mime"
	"strconv"
	"strings"
)

// A media is a media type in which IDs can be returned.
type media uint8

const (
	mediaJSON media = iota
	mediaText
	mediaOctets
)

// allMedia lists the types, the preferred one first.
var allMedia = []media{mediaJSON, mediaText, mediaOctets}

func (m media) String() string {
	switch m {
	case mediaText:
		return "text/plain"
	case mediaOctets:
		return "application/octet-stream"
	}
	return "application/json"
}

// negotiate picks the offer that the Accept headers prefer, the first among
// equals. Without a header it is the first offer. It reports false if none is
// acceptable.
//
// It ignores ranges that it cannot parse, because old clients send such: Java's
// says "*; q=.2".
func negotiate(accept []string, offers []media) (media, bool) {
	if len(accept) == 0 {
		return offers[0], true
	}
	header := strings.Join(accept, ",")
	if header == "" || header == "*/*" {
		return offers[0], true
	}
	best, bestQ := offers[0], 0.0
	for _, m := range offers {
		if header == m.String() {
			return m, true // most clients send this, so it is not parsed
		}
		if q := quality(header, m.String()); q > bestQ {
			best, bestQ = m, q
		}
	}
	return best, bestQ > 0
}

// quality returns the weight that an Accept header gives a type: that of the
// most specific matching range, or 0.
func quality(header, name string) float64 {
	major, _, _ := strings.Cut(name, "/")
	weight, rank := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		r, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rankHere := 0
		switch r {
		case name:
			rankHere = 3
		case major + "/*":
			rankHere = 2
		case "*/*":
			rankHere = 1
		}
		if rankHere <= rank {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			q, err = strconv.ParseFloat(text, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		weight, rank = q, rankHere
	}
	return weight
}
