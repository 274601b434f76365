package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firnid/firn/grant"
)

// Errors of Open, and ErrClusters of calls, that a caller may want to tell
// apart. Each comes with what is known of the endpoints.
var (
	// ErrUnreachable means that no endpoint has answered within the time
	// allowed, or that those that did have no leader.
	ErrUnreachable = errors.New("etcdstore: etcd does not answer")

	// ErrTLS comes with ErrUnreachable if an endpoint did answer, and the settings
	// of TLS on the two sides do not match: waiting does not help.
	ErrTLS = errors.New("etcdstore: TLS settings do not match")

	// ErrAuth means that etcd refuses the user, or what the user may do.
	ErrAuth = errors.New("etcdstore: etcd refuses the user")

	// ErrVersion means that a member of etcd is older than 3.5.5, which may
	// lose what it has acknowledged.
	ErrVersion = errors.New("etcdstore: etcd is too old")

	// ErrOptions means that the Options do not make sense.
	ErrOptions = errors.New("etcdstore: bad options")

	// ErrClusters means that an endpoint has answered that is of another cluster
	// than the one that answered before: a member that was made anew on its own,
	// for instance. As long as not most endpoints are of the other cluster, such
	// an answer counts as none: a read is made again, and a CAS has an unknown
	// result.
	ErrClusters = errors.New("etcdstore: the endpoints are of two clusters")
)

// errClosed is of calls after Close.
var errClosed = fmt.Errorf("%w: etcdstore: the store is closed", grant.ErrNotSent)

// notSent makes err one that is grant.ErrNotSent.
func notSent(err error) error {
	if errors.Is(err, grant.ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", grant.ErrNotSent, err)
}

// refusals are the answers by which etcd says that it has done nothing. They
// are given before a request is proposed, or by the very check that precedes
// applying it. ErrNoSpace is not among them: the member that finds the quota
// exceeded while it applies a request does apply it.
var refusals = [...]error{
	rpctypes.ErrPermissionDenied,
	rpctypes.ErrInvalidAuthToken,
	rpctypes.ErrAuthOldRevision,
	rpctypes.ErrUserEmpty,
	rpctypes.ErrUserNotFound,
	rpctypes.ErrTooManyRequests,
	rpctypes.ErrRequestTooLarge,
	rpctypes.ErrNotCapable,
}

// isRefusal reports whether err is an answer of etcd that says for certain that
// nothing was or will be applied. It compares texts, as a proxy between may
// give the same codes for other reasons.
func isRefusal(err error) bool {
	if err == nil {
		return false
	}
	answer := rpctypes.Error(err)
	for _, r := range refusals {
		if errors.Is(answer, r) {
			return true
		}
	}
	return false
}

// isAuth reports whether etcd refuses who we are or what we may do.
func isAuth(err error) bool {
	answer := rpctypes.Error(err)
	for _, r := range [...]error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty,
		rpctypes.ErrUserNotFound, rpctypes.ErrRoleNotFound, rpctypes.ErrInvalidAuthMgmt,
	} {
		if errors.Is(answer, r) {
			return true
		}
	}
	return false
}

// explain adds what was done and, where the context is why it ended, the
// context's error.
func explain(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("etcdstore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("etcdstore: %s: %w", what, err)
}
