package respapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/firnid/firn/server/service"
)

// The first word of an error. Clients act on some that Redis has, so these are
// chosen by what clients do:
//
//   - ERR: the same command can never be answered here, or somebody has to change
//     something first. Clients hand it to their callers.
//   - TRYAGAIN: it can be answered a moment later. go-redis tries again by itself,
//     a few times; no ID was taken, so that does no harm. Other clients hand it to
//     their callers, except in cluster mode.
//   - UNAVAILABLE: the store, the clock or the server itself must come back first.
//     Redis has no such word, so that no client acts on it.
//   - NOAUTH, WRONGPASS, NOPERM, NOPROTO: as in Redis.
//
// Not used are LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, MOVED and READONLY: with them
// clients close the connection, look for another server or hide the text.
const (
	codeErr         = "ERR"
	codeTryAgain    = "TRYAGAIN"
	codeUnavailable = "UNAVAILABLE"
)

// A failure is the answer to a command that could not be done.
type failure struct {
	code  string
	text  string
	cause error // what to log, where it is the server that has failed
	level slog.Level
}

// failureOf is what an error of a Backend or its sources is to a client. Texts begin with
// the kind of problem that HTTP has for the error. Late is whether the limit of the
// command has passed.
func failureOf(err error, limit time.Duration, late bool) failure {
	fault := service.FaultOf(err, limit, late)
	f := failure{code: codeErr, text: fault.Kind.String() + ": " + fault.Detail, cause: fault.Cause, level: fault.Level()}
	switch fault.Kind {
	case service.Busy, service.NodesExhausted, service.NoGrant, service.Recreated:
		f.code = codeTryAgain
	default:
		if fault.Kind.Status() == http.StatusServiceUnavailable {
			f.code = codeUnavailable
		}
	}
	return f
}

// A requestError says what is wrong with a command. Nothing was taken for it.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }
