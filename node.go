package firn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/firnid/firn/internal/short"
)

// The functions in this file determine a node ID without a store. None of them
// can detect that another process has the same one: uniqueness depends on the
// configuration, the host names or the network cards. Two generators with the
// same node ID at the same time make the same IDs. A store of grants prevents
// that.

// ParseNode parses a node ID for the layout: a plain number, or the parts that
// the preset names, such as "datacenter=9,worker=7" for flake-idgen. Omitted
// parts are 0. Values are never masked: a number that does not fit is a
// *RangeError, and any other mistake is a *ParseError.
func (l Layout) ParseNode(s string) (uint64, error) {
	if err := l.checkValid(); err != nil {
		return 0, err
	}
	fail := func(format string, a ...any) (uint64, error) {
		return 0, nodeError("node", s, fmt.Sprintf(format, a...))
	}
	number := func(name, text string, most uint64) (uint64, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		switch {
		case err == nil && n <= most:
			return n, nil
		case err == nil || errors.Is(err, strconv.ErrRange):
			return 0, &RangeError{name, short.Text(text), "0", strconv.FormatUint(most, 10)}
		}
		return fail("%s is not a number from 0 to %d%s", quoteShort(text), most, l.partsHint())
	}
	if !strings.Contains(s, "=") {
		return number("node", s, l.MaxNode())
	}
	parts := l.presetOf().nodeParts
	given := make(map[string]uint64)
	for part := range strings.SplitSeq(s, ",") {
		name, text, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(parts, func(p namedBits) bool { return p.name == name })
		if i < 0 {
			return fail("the layout %s has no node part %s%s", l, quoteShort(name), l.partsHint())
		}
		if _, twice := given[name]; twice {
			return fail("%s is given twice", name)
		}
		n, err := number(name, text, mask(parts[i].width))
		if err != nil {
			return 0, err
		}
		given[name] = n
	}
	var node uint64
	for _, p := range parts {
		node = node<<p.width | given[p.name]
	}
	return node, nil
}

func nodeError(what, text, reason string) error {
	return &ParseError{What: what, Text: short.Text(text), Pos: -1, Reason: reason}
}

// partsHint describes the other form in which a node ID of the layout can be
// written.
func (l *Layout) partsHint() string {
	var texts []string
	for _, part := range l.presetOf().nodeParts {
		texts = append(texts, fmt.Sprintf("%s=0..%d", part.name, mask(part.width)))
	}
	if texts == nil {
		return ""
	}
	return "; it can also be written " + strings.Join(texts, ",")
}

// A NodePart is a named part of a node ID.
type NodePart struct {
	Name  string
	Value uint64 // 0 to the maximum of the part
}

// NodeParts splits a node ID into the parts that the layout's preset names, for
// example datacenter and worker. It returns nil if the preset names none, and
// for a number beyond the layout's MaxNode.
func (l Layout) NodeParts(node uint64) []NodePart {
	named := l.presetOf().nodeParts
	if len(named) == 0 || node > l.MaxNode() {
		return nil
	}
	parts := make([]NodePart, len(named))
	for i, part := range slices.Backward(named) {
		parts[i] = NodePart{part.name, node & mask(part.width)}
		node >>= part.width
	}
	return parts
}

// NodeFromEnv reads a node ID from an environment variable. It is an error if
// the variable is unset, and a *ParseError if its value is not a number.
//
// NodeFromEnv is not safe if the environment is copied: all replicas of a
// container template have the same variables.
func NodeFromEnv(name string) (uint64, error) {
	text, ok := os.LookupEnv(name)
	if !ok {
		return 0, fmt.Errorf("firn: node ID: the environment variable %s is not set", name)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, nodeError("node", text, fmt.Sprintf("the environment variable %s is not a number", name))
	}
	return n, nil
}

// NodeFromHostname returns the number at the end of a host name, after a hyphen
// and without the domain: 7 for "ids-7.ids.default.svc". In a Kubernetes
// StatefulSet, that is the ordinal of the pod. An empty name means the name of
// this host.
//
// NodeFromHostname is not safe if a pod is force-deleted from an unreachable
// host, because two pods with one ordinal may then run. Nor is it safe if a pod
// is rescheduled to a host whose clock is behind, or across two StatefulSets.
// Names whose last number is not an ordinal are rejected: those that end in an
// address (ip-10-0-12-7) and those that end in five digits, because the pods of
// a Deployment, a DaemonSet or a Job end in five random characters
// (ids-5f7d9c-12345). An error about the name is a *ParseError.
func NodeFromHostname(name string) (uint64, error) {
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return 0, fmt.Errorf("firn: node ID: read the host name: %w", err)
		}
	}
	host, _, _ := strings.Cut(name, ".")
	parts := strings.Split(host, "-")
	last := parts[len(parts)-1]
	n, err := strconv.ParseUint(last, 10, 64)
	switch tail := parts[max(0, len(parts)-4):]; {
	case net.ParseIP(strings.Join(tail, ".")) != nil:
		return 0, nodeError("host name", name, "it ends in an address, not in the ordinal of a StatefulSet")
	case len(parts) < 2 || err != nil:
		return 0, nodeError("host name", name,
			"it does not end in a hyphen and a number, as those of a StatefulSet do (ids-7)")
	case len(last) == 5:
		return 0, nodeError("host name", name, "it ends in five digits, which can be the random suffix of a pod: "+
			"use a StatefulSet, or set the number itself")
	}
	return n, nil
}

// NodeFromInterface returns the 48-bit MAC address of a network interface as a
// node ID. Boundary's flake does the same, and its layout has room for it. An
// empty name means the first interface, by index, with a usable address.
//
// Zero, group and locally administered addresses are rejected: the last kind is
// made up by software (containers, virtual machines, private Wi-Fi) and often
// repeats across hosts. If allowLocal is set, locally administered addresses
// are accepted.
//
// NodeFromInterface is not safe for two processes on one host, nor for cloned
// virtual machines.
func NodeFromInterface(name string, allowLocal bool) (uint64, error) {
	interfaces, err := net.Interfaces()
	if name != "" {
		var named *net.Interface
		if named, err = net.InterfaceByName(name); err == nil {
			interfaces = []net.Interface{*named}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("firn: node ID: no network interface %s: %w", quoteShort(name), err)
	}
	return nodeFromFirst(interfaces, allowLocal)
}

// nodeFromFirst returns the first usable address.
func nodeFromFirst(interfaces []net.Interface, allowLocal bool) (uint64, error) {
	var refused []string
	for _, i := range interfaces {
		node, err := nodeFromMAC(i.HardwareAddr, allowLocal)
		if err == nil {
			return node, nil
		}
		refused = append(refused, fmt.Sprintf("%s: %v", i.Name, err))
	}
	return 0, fmt.Errorf("firn: node ID: no network interface with a usable address (%s)", strings.Join(refused, "; "))
}

// nodeFromMAC returns an EUI-48 address as a number: IEEE 802, big-endian.
func nodeFromMAC(mac net.HardwareAddr, allowLocal bool) (uint64, error) {
	if len(mac) != 6 {
		return 0, fmt.Errorf("it has an address of %d bytes, not 6", len(mac))
	}
	var n uint64
	for _, b := range mac {
		n = n<<8 | uint64(b)
	}
	switch {
	case n == 0:
		return 0, errors.New("its address is zero")
	case mac[0]&1 != 0:
		return 0, fmt.Errorf("its address %s is a group address", mac)
	case mac[0]&2 != 0 && !allowLocal:
		return 0, fmt.Errorf("its address %s is locally administered, so another host may have it too", mac)
	}
	return n, nil
}
