package httpapi

import (
	"cmp"
	"mime"
	"path"
	"slices"
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
// It reports false if none is acceptable.
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
	best, weight := offers[0], 0.0
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
		i := slices.IndexFunc(offers, func(m media) bool {
			fits, _ := path.Match(name, m.String())
			return fits
		})
		if err == nil && i >= 0 && q > weight {
			best, weight = offers[i], q
		}
	}
	return best, weight > 0
}
