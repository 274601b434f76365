package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A param is a parameter of a query, as it was given or not.
type param struct {
	value string
	given bool
}

// maxParams is how many parameters a path can have.
const maxParams = 4

// readParams reads a query strictly: a parameter that is not known, is given
// twice or is not URL-encoded is a fault, and the error lists all faults. The
// values are in the order of known.
//
// It is not url.ParseQuery, which makes a map for every request and leaves it to
// its caller to find out what is in it.
func readParams(query string, known []string) (values [maxParams]param, err error) {
	var faults []string
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
			faults = append(faults, fmt.Sprintf("the parameter %s is not URL-encoded", quote(rawName)))
		case i < 0 && len(known) == 0:
			faults = append(faults, fmt.Sprintf("%s is not a parameter here: there are none", quote(name)))
		case i < 0:
			faults = append(faults, fmt.Sprintf("%s is not a parameter here: there are %s", quote(name), list(known)))
		case valueErr != nil:
			faults = append(faults, fmt.Sprintf("the value of %s, %s, is not URL-encoded", name, quote(rawValue)))
		case values[i].given:
			faults = append(faults, name+" is given twice")
		case !hasValue || value == "":
			faults = append(faults, fmt.Sprintf("%s has no value: write %s=… or leave it out", name, name))
			values[i].given = true
		default:
			values[i] = param{value, true}
		}
		if len(faults) == maxFaults {
			faults = append(faults, "and perhaps more")
			break
		}
	}
	if len(faults) > 0 {
		return values, errors.New(strings.Join(faults, "; "))
	}
	return values, nil
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
