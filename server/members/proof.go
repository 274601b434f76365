package members

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// Errors about whether two servers use the same store.
var (
	// ErrUnlisted means that this server has not written its record for so long
	// that it cannot prove which store it uses.
	ErrUnlisted = errors.New("members: this server is not listed in its store")

	// ErrOtherStore means that a proof was not found in the store: the server that
	// sent it uses another store.
	ErrOtherStore = errors.New("members: the server uses another store")
)

// A Proof shows which store a server uses: a random text that the server has
// recently written into its record. Only servers that read the same store can
// find it. A store's address or identity does not suffice: addresses are
// reused, and a copy of a store has the identity of the original.
type Proof struct {
	Member string // the server's ID
	Record int    // number of the server's record
	Nonce  string
}

const (
	// nonceFor is how long a nonce is used. If the store behind a server's address
	// is replaced, by a copy for example, it takes this long until the server
	// proves another store.
	nonceFor = 10 * time.Second

	// provedFor is how long a verified proof remains valid without another look.
	// It is longer than a server uses a proof, so that servers of one store can
	// still call each other while the store is unreachable for a while.
	provedFor = time.Minute

	// mostProofs is how many proofs are cached.
	mostProofs = 10_000
)

// A record is a Member in the store. Programs without nonces can read it too.
type record struct {
	Member
	Nonce  string    `json:"nonce,omitempty"`
	Before string    `json:"nonce_before,omitempty"` // which calls in progress may still carry
	Kept   time.Time `json:"kept,omitzero"`          // until when the record of a departed member is not free
}

// nonces are the current nonce of an Announcer and the previous one.
type nonces struct {
	now, before string
	made        time.Time
}

// next returns the nonces to write. Records are written about every nonceFor,
// some a moment early.
func (n nonces) next(now time.Time) nonces {
	if n.now != "" && now.Sub(n.made) < nonceFor*9/10 {
		return n
	}
	return nonces{now: rand.Text(), before: n.now, made: now}
}

// Proof returns the proof of this server's store. It waits until the server has
// tried to write its record once. If the record was not written within three
// times Options.Every, the error is ErrUnlisted.
func (a *Announcer) Proof(ctx context.Context) (Proof, error) {
	select {
	case <-a.tried:
	case <-ctx.Done():
		return Proof{}, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proof.Nonce == "" || time.Since(a.proved) > 3*a.o.Every {
		return Proof{}, ErrUnlisted
	}
	return a.proof, nil
}

// A Verifier looks for the proofs of other servers in this server's store. It
// must be made by NewVerifier, and is safe for concurrent use.
type Verifier struct {
	store grant.Store

	mu    sync.Mutex // guards what follows
	until map[Proof]time.Time
}

// NewVerifier makes a Verifier.
func NewVerifier(s grant.Store) *Verifier {
	return &Verifier{store: s, until: make(map[Proof]time.Time)}
}

// Verify returns nil if a proof is found in the store, ErrOtherStore if not,
// and another error if the store does not answer. Most calls are answered from
// a cache.
func (v *Verifier) Verify(ctx context.Context, p Proof) error {
	v.mu.Lock()
	until, ok := v.until[p]
	v.mu.Unlock()
	if ok && time.Now().Before(until) {
		return nil
	}
	if p.Member == "" || p.Nonce == "" || p.Record < 0 || p.Record >= most {
		return ErrOtherStore
	}
	value, err := v.store.Get(ctx, key(p.Record))
	if err != nil {
		return fmt.Errorf("members: read the record of another server: %w", err)
	}
	var r record
	if json.Unmarshal(value, &r) != nil || r.ID != p.Member || p.Nonce != r.Nonce && p.Nonce != r.Before {
		return ErrOtherStore
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.until) >= mostProofs {
		clear(v.until)
	}
	v.until[p] = time.Now().Add(provedFor)
	return nil
}
