package httpapi

import (
	"net/http"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/inspect"
)

// inspectParams are the parameters of inspect.
var inspectParams = []string{"layout", "from"}

// inspect answers with what an ID says: the likeliest reading, and the others.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request) *problem {
	values, err := readParams(r.URL.RawQuery, inspectParams)
	if err != nil {
		return problemf(badParameter, "%v", err)
	}
	var o inspect.Options
	if layout := values[0]; layout.given {
		if o.Layout, err = firn.ParseLayout(layout.value); err != nil {
			return problemf(badParameter, "%s", detailOf(err))
		}
	}
	if from := values[1]; from.given {
		if o.From, err = inspect.ParseEncoding(from.value); err != nil {
			return problemf(badParameter, "%s", detailOf(err))
		}
	}
	if _, ok := negotiate(r.Header["Accept"], []media{mediaJSON}); !ok {
		return problemf(notAcceptable, "Accept is %s: readings can be had as %s", quote(r.Header["Accept"][0]), mediaJSON)
	}
	result, err := inspect.Read(r.PathValue("id"), o)
	if err != nil {
		return problemf(badID, "%s", detailOf(err))
	}
	w.Header()["Content-Type"] = contentTypes[mediaJSON]
	w.Write(append(result.AppendJSON(nil), '\n'))
	return nil
}
