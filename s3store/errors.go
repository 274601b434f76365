package s3store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/firnid/firn/grant"
)

var errClosed = fmt.Errorf("%w: s3store: the store is closed", grant.ErrNotSent)

// unfitf returns an error that says why a server cannot be a store.
func unfitf(format string, args ...any) error {
	return fmt.Errorf("%w: this server %s: it cannot be a store; docs/object-store.md lists servers that can",
		grant.ErrUnfit, fmt.Sprintf(format, args...))
}

func isUnfit(err error) bool { return errors.Is(err, grant.ErrUnfit) }

// codeOf returns the code and the status of an answer that reports an error;
// status 0 means that no answer came.
func codeOf(err error) (code string, status int) {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status = e.HTTPStatusCode()
	}
	return code, status
}

func isAbsent(err error) bool {
	code, status := codeOf(err)
	return status == http.StatusNotFound && code == "NoSuchKey"
}

// isRefusal reports whether err guarantees that nothing was or will be written.
// Any other answer may come from a server that has written: s3s-fs answers 400
// BadDigest and 500, and a proxy may answer anything.
func isRefusal(err error) bool {
	code, status := codeOf(err)
	switch code {
	case "AccessDenied", "SignatureDoesNotMatch", "RequestTimeTooSkewed":
		return status == http.StatusForbidden
	case "NoSuchBucket":
		return status == http.StatusNotFound
	case "KeyTooLongError":
		return status == http.StatusBadRequest
	}
	return status == http.StatusNotImplemented
}

// isConditionFalse reports whether err is the answer to a write whose condition
// is false, or that met another one. Only the stored bytes show what happened:
// something on the way may have sent the request twice.
func isConditionFalse(err error) bool {
	code, status := codeOf(err)
	conflict := status == http.StatusConflict && code == "ConditionalRequestConflict"
	return status == http.StatusPreconditionFailed || conflict || isAbsent(err)
}

// isUntrusted reports whether the server's certificate is not trusted, or it
// does not speak TLS. A server that is starting does neither.
func isUntrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// isPassing reports whether the same read may succeed a moment later.
func isPassing(err error) bool {
	code, status := codeOf(err)
	return status == 0 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		status >= 500 && status != http.StatusNotImplemented || code == "RequestTimeout" || code == "SlowDown"
}
