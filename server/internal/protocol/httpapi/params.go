package httpapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// maxParams is how many parameters a path can have.
const maxParams = 4

// faults are the errors in a query. The answer lists all of them, so that a
// user need not find them one request at a time.
type faults []string

func (f *faults) add(format string, a ...any) { *f = append(*f, fmt.Sprintf(format, a...)) }

// problem returns the answer, or nil if there are no faults.
func (f faults) problem() *problem {
	if len(f) == 0 {
		return nil
	}
	return problemf(service.BadParameter, "%s", strings.Join(f, "; "))
}

// readParams parses a query strictly: a parameter that is unknown, repeated or
// not URL-encoded is a fault. The values are in the order of known; that of a
// parameter that is not given, or has a fault, is "".
//
// It replaces url.ParseQuery, which allocates a map for every request and does
// not report any of this.
func readParams(query string, known []string) (values [maxParams]string, f faults) {
	var seen [maxParams]bool
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		i := slices.Index(known, name)
		switch {
		case nameErr != nil:
			f.add("the parameter %s is not URL-encoded", textfmt.Quote(rawName))
		case i < 0:
			f.add("unknown parameter %s: this path has %s", textfmt.Quote(name), cmp.Or(list(known), "no parameters"))
		case valueErr != nil:
			f.add("the value of %s, %s, is not URL-encoded", name, textfmt.Quote(rawValue))
		case seen[i]:
			f.add("%s is given twice", name)
			values[i] = ""
		case value == "":
			f.add("%s has no value: write %s=… or leave it out", name, name)
		default:
			values[i] = value
		}
		if i >= 0 {
			seen[i] = true
		}
		if len(f) == maxFaults {
			f.add("and possibly more")
			break
		}
	}
	return values, f
}

// maxFaults bounds the length of an error that a client could make long.
const maxFaults = 8

// list formats names as "a, b and c".
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
