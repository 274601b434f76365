package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
)

// nodeUsage describes what readNode takes.
const nodeUsage = "a number, datacenter=9,worker=7, env:NAME, hostname or if:NAME"

// staticAhead is MaxAhead for a static node. A generator of one starts that far
// ahead of the clock, so a layout's own would be seen in the IDs' times; this
// is enough for waits that take a moment too long not to slow down the making
// of many. It is one value for all commands: one after the other is then safe.
const staticAhead = 5 * time.Millisecond

// nodeVar adds --node.
func nodeVar(cmd *cobra.Command, node *string, usage string) {
	cmd.Flags().Var(&value[string]{node, notEmpty, nil, "NODE"}, "node", usage+": "+nodeUsage+" (default 0)")
}

// readNode finds the node ID that spec names, for the layout l.
func readNode(l firn.Layout, spec string, allowLocal bool) (uint64, error) {
	kind, name, _ := strings.Cut(spec, ":")
	var node uint64
	var err error
	switch kind {
	case "env":
		if name == "" {
			return 0, misuse("write env:NODE_ID for the environment variable NODE_ID", "--node %s: there is no name", spec)
		}
		node, err = firn.NodeFromEnv(name)
	case "hostname":
		node, err = firn.NodeFromHostname(name)
	case "if":
		node, err = firn.NodeFromInterface(name, allowLocal)
		if err == nil || allowLocal {
			break
		}
		if _, e := firn.NodeFromInterface(name, true); e == nil {
			return 0, misuse("--allow-local-mac takes such an address; make sure that no other host has it", "%w", err)
		}
	default:
		if node, err = l.ParseNode(spec); err != nil {
			return 0, misuse(nodeHint(l, err), "--node %q: %w", spec, plain(err))
		}
		return node, nil
	}
	if err != nil {
		return 0, misuse("", "%w", err)
	}
	if node > l.MaxNode() {
		hint := fmt.Sprintf("layout %s has nodes 0 to %d", l, l.MaxNode())
		if kind == "if" {
			hint = fmt.Sprintf("a MAC address needs a layout with 48 bits of node, such as boundary: %s has %d", l, l.NodeBits())
		}
		return 0, misuse(hint, "--node %s is %d: %w", spec, node, plain(&firn.RangeError{
			Field: "node", Value: strconv.FormatUint(node, 10), Min: "0", Max: strconv.FormatUint(l.MaxNode(), 10),
		}))
	}
	return node, nil
}

// nodeHint says which nodes a layout has.
func nodeHint(l firn.Layout, err error) string {
	var r *firn.RangeError
	switch {
	case !errors.As(err, &r):
		return "--node takes " + nodeUsage
	case l.NodeBits() == 0:
		return fmt.Sprintf("layout %s has no bits for a node: leave --node out", l)
	}
	return fmt.Sprintf("layout %s has %d bits for the node; firn layout --plan weighs other widths", l, l.NodeBits())
}

// plain is err without the words that the command line says itself.
func plain(err error) error {
	var p *firn.ParseError
	if errors.As(err, &p) {
		return errors.New(p.Reason)
	}
	if text, ok := strings.CutPrefix(err.Error(), "firn: "); ok {
		return errors.New(text)
	}
	return err
}
