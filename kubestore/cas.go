package kubestore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/firnid/firn/grant"
)

// settleTime is how long a refused CAS looks for the cause.
const settleTime = 5 * time.Second

// CAS replaces old by next; see grant.Store. It reads the Lease, and replaces
// it if it still has the resourceVersion that was read; a Lease for an absent
// key is created. The write is sent once, with a mark that no other write has.
// So CAS can determine whether a refused write was applied nevertheless: a
// proxy, such as a load balancer, may have sent it twice.
func (s *store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return false, err
	}
	defer leave()
	var applied bool
	if len(old) == 0 {
		applied, err = s.create(call, key, next)
	} else {
		applied, err = s.replace(call, key, old, next)
	}
	if err != nil {
		return false, s.failed(ctx, fmt.Sprintf("replace key %q", key), err)
	}
	return applied, nil
}

// create implements CAS for an absent key.
func (s *store) create(ctx context.Context, key string, next []byte) (bool, error) {
	name, _ := nameOf(s.prefix, key)
	l, mark := newLease(s.namespace, name), rand.Text()
	l.set(s.prefix, key, next, mark)
	l.Metadata.Annotations[createdAnnotation] = mark
	got, sent, err := s.write(ctx, http.MethodPost, s.url("", nil), l)
	r, refused := errors.AsType[*refusal](err)
	switch {
	case !sent:
		return false, grant.NotSent(err)
	case err == nil:
		return s.confirm(got, "", mark, next)
	case !refused || !r.isAboutLease("AlreadyExists", name) && !r.isDenial():
		return false, err
	}
	// A copy of the request may have created it before this one was refused.
	now, e := s.fetch(ctx, name)
	err = r.verdict(now, e, createdAnnotation, mark)
	if err == nil && now == nil {
		err = fmt.Errorf("%w, and it was deleted since", r)
	}
	return false, err
}

// replace implements CAS for a key with a value.
func (s *store) replace(ctx context.Context, key string, old, next []byte) (bool, error) {
	name, _ := nameOf(s.prefix, key)
	for {
		l, err := s.fetch(ctx, name)
		if l == nil || err != nil {
			return false, grant.NotSent(err)
		}
		value, err := l.value()
		if err != nil {
			return false, grant.NotSent(err)
		}
		if !bytes.Equal(value, old) {
			return false, nil
		}
		from, mark := l.Metadata.ResourceVersion, rand.Text()
		l.set(s.prefix, key, next, mark)
		got, sent, err := s.write(ctx, http.MethodPut, s.url(name, nil), l)
		r, refused := errors.AsType[*refusal](err)
		switch {
		case !sent:
			return false, grant.NotSent(err)
		case err == nil:
			return s.confirm(got, from, mark, next)
		case !refused || !r.isAboutLease("Conflict", name) && !r.isDenial():
			return false, err
		}
		successor, e := s.successor(ctx, name, from, r.isDenial())
		if err := r.verdict(successor, e, writeAnnotation, mark); err != nil || successor == nil { // or it was deleted
			return false, err
		}
		// The resourceVersion that the write named is gone, so it is never
		// applied. If, for example, only a label has changed, the value is
		// still there.
		if value, err := successor.value(); err != nil || !bytes.Equal(value, old) {
			return false, nil
		}
	}
}

// verdict returns what a refusal of a write means, by the Lease that stands in
// its place, and whose annotation has the mark of a write: nil if another write
// took the place. e is the error of looking for that Lease.
func (r *refusal) verdict(now *lease, e error, annotation, mark string) error {
	switch {
	case r.isDenial() && is(e, r.code): // reading is not allowed either
		return grant.NotSent(r)
	case e != nil:
		return fmt.Errorf("%w; looking for the write in its place: %w", r, e)
	case now != nil && now.Metadata.Annotations[annotation] == mark:
		return fmt.Errorf("%w, and yet this write was applied: it was sent twice", r)
	case r.isDenial():
		return grant.NotSent(r)
	}
	return nil
}

// confirm checks the answer to a write that succeeded. A write that changes
// nothing also succeeds, and does not change the resourceVersion. Admission may
// have changed the written object.
func (s *store) confirm(got *lease, from, mark string, next []byte) (bool, error) {
	m := got.Metadata
	if m.Annotations[writeAnnotation] != mark || m.ResourceVersion == "" || m.ResourceVersion == from {
		return false, errors.New("the answer is a success but shows another write")
	}
	if value, err := got.value(); err != nil || !bytes.Equal(value, next) {
		return false, fmt.Errorf("the answer is a success but shows another record in lease %s: exempt the leases of Firn "+
			"from the webhook or policy that changes them", m.Name)
	}
	return true, nil
}

// successor returns the first version of a Lease after the resourceVersion
// from, or nil if the Lease was deleted. If the write was denied, there may be
// no later version.
func (s *store) successor(ctx context.Context, name, from string, denied bool) (*lease, error) {
	if denied {
		now, err := s.fetch(ctx, name)
		if err != nil || now != nil && now.Metadata.ResourceVersion == from {
			return now, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var first *lease
	err := s.events(ctx, name, from, func(kind string, l *lease) bool {
		if kind != "DELETED" {
			first = l
		}
		return false
	})
	if errors.Is(err, errStopped) {
		return first, nil
	}
	return nil, cmp.Or(err, errors.New("the watch ended without an event"))
}

// watchQuery returns the query for the events of one Lease.
func watchQuery(name, from string, lasts time.Duration) url.Values {
	q := url.Values{
		"watch":          {"true"},
		"fieldSelector":  {"metadata.name=" + name},
		"timeoutSeconds": {fmt.Sprint(max(1, int(lasts.Seconds())))},
	}
	if from != "" {
		q.Set("resourceVersion", from)
	}
	return q
}
