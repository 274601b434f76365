package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// nodeUsage describes the values that readNode accepts.
const nodeUsage = "a number, datacenter=9,worker=7, env:NAME, hostname or if:NAME"

// nodeVar adds --node.
func nodeVar(cmd *cobra.Command, node *string, usage string) {
	cmd.Flags().Var(&value[string]{node, notEmpty, nil, "NODE"}, "node", usage+": "+nodeUsage)
}

// readNode returns the node ID that spec names, for the layout l.
func readNode(l firn.Layout, spec string, allowLocal bool) (uint64, error) {
	kind, name, _ := strings.Cut(spec, ":")
	var node uint64
	var err error
	switch kind {
	case "env":
		if name == "" {
			return 0, wrongFlag("node", spec, "write env:NODE_ID for the environment variable NODE_ID", "the name is missing")
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
			return 0, wrongFlag("node", spec, "use --allow-local-mac to accept this address, and make sure that no other host has it", "%w", err)
		}
	default:
		if node, err = l.ParseNode(spec); err != nil {
			return 0, wrongFlag("node", spec, nodeHint(l, err), "%w", textfmt.Plain(err))
		}
		return node, nil
	}
	if err != nil {
		return 0, wrongFlag("node", spec, "", "%w", err)
	}
	if _, err := l.ParseNode(strconv.FormatUint(node, 10)); err != nil {
		hint := fmt.Sprintf("layout %s has nodes 0 to %d", l, l.MaxNode())
		if kind == "if" {
			hint = fmt.Sprintf("a MAC address needs a layout with 48 node bits, such as boundary: %s has %d", l, l.NodeBits())
		}
		return 0, wrongFlag("node", spec, hint, "it is %d: %w", node, textfmt.Plain(err))
	}
	return node, nil
}

// nodeHint says which nodes a layout has.
func nodeHint(l firn.Layout, err error) string {
	var r *firn.RangeError
	switch {
	case !errors.As(err, &r):
		return "NODE is " + nodeUsage
	case l.NodeBits() == 0:
		return fmt.Sprintf("layout %s has no node bits: leave out --node", l)
	}
	return fmt.Sprintf("layout %s has %d node bits; firn layout --plan finds other layouts", l, l.NodeBits())
}
