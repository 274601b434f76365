package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/service"
)

// A param is a parameter of a query, as it was given or not.
type param struct {
	value string
	given bool
}

// maxParams is how many parameters a path can have.
const maxParams = 4

// faults are what is wrong with a query. Its answer names all of them, so that
// nobody has to find them one request at a time.
type faults []string

func (f *faults) add(format string, a ...any) { *f = append(*f, fmt.Sprintf(format, a...)) }

// problem is the answer, or nil where there are no faults.
func (f faults) problem() *problem {
	if len(f) == 0 {
		return nil
	}
	return problemf(service.BadParameter, "%s", strings.Join(f, "; "))
}

// readParams reads a query strictly: a parameter that is not known, is given
// twice or is not URL-encoded is a fault. The values are in the order of known;
// one that has a fault here counts as not given.
//
// It is not url.ParseQuery, which makes a map for every request and leaves it
// to its caller to find out what is in it.
func readParams(query string, known []string) (values [maxParams]param, f faults) {
	var seen [maxParams]bool
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		rawName, rawValue, hasValue := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		i := slices.Index(known, name)
		switch {
		case nameErr != nil:
			f.add("the parameter %s is not URL-encoded", inspect.Quote(rawName))
		case i < 0 && len(known) == 0:
			f.add("%s is not a parameter here: there are none", inspect.Quote(name))
		case i < 0:
			f.add("%s is not a parameter here: there are %s", inspect.Quote(name), list(known))
		case valueErr != nil:
			f.add("the value of %s, %s, is not URL-encoded", name, inspect.Quote(rawValue))
		case seen[i]:
			f.add("%s is given twice", name)
			values[i] = param{}
		case !hasValue || value == "":
			f.add("%s has no value: write %s=… or leave it out", name, name)
		default:
			values[i] = param{value, true}
		}
		if i >= 0 {
			seen[i] = true
		}
		if len(f) == maxFaults {
			f.add("and perhaps more")
			break
		}
	}
	return values, f
}

// maxFaults bounds an error's text, which the client could make long.
const maxFaults = 8

// list writes names as "a, b and c".
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
