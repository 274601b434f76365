package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/stores"
)

// completing bounds how long a shell waits for names from a store.
const completing = 2 * time.Second

// names returns what offers the sequencers of a store to the shell, with their
// descriptions. It creates no store, and offers nothing if the store does not
// answer.
func (a *app) names(store *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (all []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		url, _ := a.storeURL(*store)
		ctx, cancel := context.WithTimeout(cmd.Context(), completing)
		defer cancel()
		s, err := stores.Open(ctx, strings.ReplaceAll(url, "create=true", "create=false"))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		_ = grant.Sequencers(ctx, s, func(name string, i grant.Info, err error) bool {
			if err == nil {
				name += "\t" + i.State.String() + ", layout " + i.Config.Layout.String()
			}
			all = append(all, name)
			return true
		})
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}
