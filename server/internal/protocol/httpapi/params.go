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

// paramErrors are the errors in a query. The answer lists all of them, so that
// a user need not find them one request at a time.
type paramErrors []string

func (e *paramErrors) add(format string, a ...any) { *e = append(*e, fmt.Sprintf(format, a...)) }

// problem returns the answer, or nil if there are no errors.
func (e paramErrors) problem() *service.Problem {
	if len(e) == 0 {
		return nil
	}
	return service.Problemf(service.BadParameter, "%s", strings.Join(e, "; "))
}

// maxParams is how many parameters a path can have.
const maxParams = 4

// maxParamErrors bounds the length of an answer that a client could make long.
const maxParamErrors = 8

// readParams parses a query strictly: a parameter that is unknown, repeated,
// empty or not URL-encoded is an error. The values are in the order of known;
// that of a parameter that is not given is "". Unlike url.ParseQuery it does
// not allocate.
func readParams(query string, known ...string) (values [maxParams]string, errs paramErrors) {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		i := slices.Index(known, name)
		switch {
		case len(errs) == maxParamErrors:
			errs.add("and possibly more")
			return values, errs
		case nameErr != nil || valueErr != nil:
			errs.add("the parameter %s is not URL-encoded", textfmt.Quote(pair))
		case i < 0:
			errs.add("unknown parameter %s: this path has %s", textfmt.Quote(name), cmp.Or(joinNames(known), "no parameters"))
		case value == "":
			errs.add("%s has no value: write %s=… or leave it out", name, name)
		case values[i] != "":
			errs.add("%s is given twice", name)
		default:
			values[i] = value
		}
	}
	return values, errs
}

// joinNames formats names as "a, b and c".
func joinNames(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
