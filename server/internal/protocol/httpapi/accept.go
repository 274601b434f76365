package httpapi

import (
	"cmp"
	"mime"
	"path"
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

// negotiate picks the offer with the greatest weight in the Accept headers: the
// one that they name first among equals, or the first offer without a header.
// It reports false if none is acceptable. The weight of application/json;q=0
// excludes it, whatever */* beside it says (RFC 9110, section 12.5.1).
//
// It ignores ranges that it cannot parse, because old clients send such: Java's
// says "*; q=.2".
func negotiate(accept []string, offers []media) (media, bool) {
	header := strings.Join(accept, ",")
	if header == "" || header == "*/*" {
		return offers[0], true
	}
	for _, m := range offers {
		if header == m.String() {
			return m, true // most clients send this, so it is not parsed
		}
	}
	ranges := parseRanges(header)
	best, weight, place := offers[0], 0.0, len(ranges)
	for _, m := range offers {
		q, i := weigh(ranges, m)
		if q > weight || q == weight && i < place {
			best, weight, place = m, q, i
		}
	}
	return best, weight > 0
}

// A mediaRange is a part of an Accept header, such as text/*;q=0.5.
type mediaRange struct {
	pattern string
	weight  float64
}

func parseRanges(header string) (all []mediaRange) {
	for part := range strings.SplitSeq(header, ",") {
		pattern, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if q, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64); err == nil {
			all = append(all, mediaRange{pattern, q})
		}
	}
	return all
}

// weigh returns the weight of a media type, and which range has it: the most
// specific one that fits.
func weigh(ranges []mediaRange, m media) (weight float64, place int) {
	place, least := len(ranges), 3 // more than the wildcards of any range
	for i, r := range ranges {
		if fits, _ := path.Match(r.pattern, m.String()); !fits {
			continue
		}
		if n := strings.Count(r.pattern, "*"); n < least {
			weight, place, least = r.weight, i, n
		}
	}
	return weight, place
}
