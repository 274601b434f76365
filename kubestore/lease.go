package kubestore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firnid/firn/grant"
)

// What Firn writes into a Lease besides its specification. The record is the
// value of the key; everything else is for people, except for the two marks.
const (
	recordAnnotation = "firn/record"
	base64Annotation = "firn/record-base64" // for a value that is not UTF-8
	keyAnnotation    = "firn/key"           // if the name has a hash of the key

	// writeAnnotation is the random mark of the last write, and
	// createdAnnotation that of the write that created the Lease. They show
	// whether a write was applied if its answer was lost or belongs to a copy
	// of the request.
	writeAnnotation   = "firn/write"
	createdAnnotation = "firn/created"

	managedByLabel = "app.kubernetes.io/managed-by"
	prefixLabel    = "firn/prefix"
	sequencerLabel = "firn/sequencer"
	nodeLabel      = "firn/node"
	stateLabel     = "firn/state"

	manager = "firn"
)

// A lease is the part of an object of coordination.k8s.io/v1 that Firn reads
// and writes. Labels, annotations and finalizers set by others are kept. Owner
// references are not, because an object is deleted with its owners.
type lease struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   metadata  `json:"metadata"`
	Spec       leaseSpec `json:"spec"`
}

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Finalizers      []string          `json:"finalizers,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// A leaseSpec shows people who holds the node ID.
type leaseSpec struct {
	HolderIdentity       string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int64  `json:"leaseDurationSeconds,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
}

// newLease returns a Lease without a value.
func newLease(namespace, name string) *lease {
	return &lease{
		APIVersion: "coordination.k8s.io/v1",
		Kind:       "Lease",
		Metadata: metadata{
			Name:        name,
			Namespace:   namespace,
			Labels:      map[string]string{managedByLabel: manager},
			Annotations: make(map[string]string),
		},
	}
}

// shown returns the value of one of many Leases or, for a damaged one, the text
// of the error.
func (l *lease) shown() []byte {
	value, err := l.value()
	if err != nil {
		return []byte(err.Error())
	}
	return value
}

// value returns the value in a Lease.
func (l *lease) value() ([]byte, error) {
	text, isText := l.Metadata.Annotations[recordAnnotation]
	encoded, isEncoded := l.Metadata.Annotations[base64Annotation]
	switch {
	case isText && isEncoded:
		return nil, l.foreign("it has both annotations, %s and %s", recordAnnotation, base64Annotation)
	case isText && text != "":
		return []byte(text), nil
	case isEncoded && encoded != "":
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, l.foreign("its annotation %s is not base64", base64Annotation)
		}
		return value, nil
	}
	return nil, l.foreign("it has no annotation %s", recordAnnotation)
}

// foreign returns the error for a Lease that Firn has not written in this form.
// Treating it as absent would mean that the key can be created.
func (l *lease) foreign(format string, args ...any) error {
	return fmt.Errorf("%w: kubestore: lease %s in namespace %s has no valid record: %s: it was changed or created by "+
		"another program; restore the annotation from a copy, and fence (firn node fence); under another prefix IDs would "+
		"repeat: %w",
		grant.ErrNotSent, l.Metadata.Name, l.Metadata.Namespace, fmt.Sprintf(format, args...), grant.ErrDamaged)
}

// set puts a value into a Lease, with everything that describes it.
func (l *lease) set(prefix, key string, value []byte, mark string) {
	m := &l.Metadata
	if m.Annotations == nil {
		m.Annotations = make(map[string]string)
	}
	if m.Labels == nil {
		m.Labels = make(map[string]string)
	}
	delete(m.Annotations, recordAnnotation)
	delete(m.Annotations, base64Annotation)
	if utf8.Valid(value) {
		m.Annotations[recordAnnotation] = string(value)
	} else {
		m.Annotations[base64Annotation] = base64.StdEncoding.EncodeToString(value)
	}
	m.Annotations[writeAnnotation] = mark
	if _, hashed := nameOf(prefix, key); hashed {
		m.Annotations[keyAnnotation] = key
	}
	m.Labels[managedByLabel] = manager
	m.Labels[prefixLabel] = strings.ReplaceAll(prefix, "/", ".")
	l.describe(key, value)
}

// describe fills in what kubectl shows of a node ID's record: the holder, since
// when, and for how long.
func (l *lease) describe(key string, value []byte) {
	labels := l.Metadata.Labels
	for _, name := range []string{sequencerLabel, nodeLabel, stateLabel} {
		delete(labels, name)
	}
	l.Spec = leaseSpec{}
	version, rest, _ := strings.Cut(key, "/")
	sequencer, kind, _ := strings.Cut(rest, "/")
	if version != "v1" || kind == "" {
		return
	}
	label := func(name, value string) {
		if labelValue.MatchString(value) {
			labels[name] = value
		}
	}
	label(sequencerLabel, sequencer)
	// The record may have a later version, so fields that do not parse are
	// omitted.
	var r struct {
		Owner string `json:"owner"`
		State string `json:"state"`
		Host  string `json:"host"`
		Until int64  `json:"until"`
		Wall  int64  `json:"wall"`
	}
	if json.Unmarshal(value, &r) != nil {
		return
	}
	label(stateLabel, r.State)
	node, isNode := strings.CutPrefix(kind, "n/")
	if !isNode {
		return
	}
	label(nodeLabel, node)
	if r.State != "held" && r.State != "closing" {
		return
	}
	l.Spec.HolderIdentity = r.Owner
	if r.Host != "" {
		l.Spec.HolderIdentity = r.Host + "/" + r.Owner[:min(8, len(r.Owner))]
	}
	// The API requires at least one second.
	l.Spec.LeaseDurationSeconds = min(max(int64(math.Ceil(float64(r.Until-r.Wall)/1000)), 1), math.MaxInt32)
	l.Spec.RenewTime = time.UnixMilli(r.Wall).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// labelValue matches the value of a label.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
