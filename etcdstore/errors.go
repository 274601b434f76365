package etcdstore

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firnid/firn/grant"
)

var (
	// errTLS: an endpoint did answer, but the TLS settings of the two sides do
	// not match.
	errTLS = errors.New("etcdstore: TLS settings do not match")

	// errAuth: etcd rejects the user or the user's permissions.
	errAuth = errors.New("etcdstore: etcd rejects the user")

	// errClusters: an endpoint has answered that belongs to a different cluster
	// than the previous ones, for example a member that was recreated on its own.
	// Unless most endpoints belong to the other cluster, such an answer is
	// ignored: a read is repeated, and a CAS has an unknown result.
	errClusters = errors.New("etcdstore: the endpoints belong to two clusters")
)

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("%w: etcdstore: the store is closed", grant.ErrNotSent)

// isRefusal reports whether err is an answer of etcd that guarantees that
// nothing was or will be applied. Such answers are given before a request is
// proposed, or by the check that precedes applying it. ErrNoSpace is not among
// them: a member that finds the quota exceeded while it applies a request does
// apply it.
func isRefusal(err error) bool {
	return isOneOf(err, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision,
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrTooManyRequests, rpctypes.ErrRequestTooLarge,
		rpctypes.ErrNotCapable, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner))
}

// isAuth reports whether etcd rejects the user or the user's permissions.
func isAuth(err error) bool {
	return isOneOf(err, rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrRoleNotFound, rpctypes.ErrInvalidAuthMgmt)
}

// isOneOf compares the texts of answers, because a proxy may return the same
// codes for other reasons.
func isOneOf(err error, answers ...error) bool {
	return err != nil && slices.ContainsFunc(answers, func(a error) bool { return errors.Is(rpctypes.Error(err), a) })
}
