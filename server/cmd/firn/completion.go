package main

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/stores"
)

// completing bounds how long a shell waits for names from a store.
const completing = 2 * time.Second

// completeNames offers the sequencers of the store to the shell, as arguments
// of a command.
func (a *app) completeNames(cmd *cobra.Command, store *string) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.offerNames(cmd.Context(), *store), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSequencer is completeNames for the flag --sequencer.
func (a *app) completeSequencer(cmd *cobra.Command, store *string) {
	err := cmd.RegisterFlagCompletionFunc("sequencer", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.offerNames(cmd.Context(), *store), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}

// offerNames returns the sequencers of a store with their descriptions. It
// returns none if the store does not exist or does not answer.
func (a *app) offerNames(ctx context.Context, url string) (all []string) {
	ctx, cancel := context.WithTimeout(ctx, completing)
	defer cancel()
	s := a.peek(ctx, url)
	if s == nil {
		return nil
	}
	defer s.Close()
	_ = grant.Sequencers(ctx, s, func(name string, i grant.Info, err error) bool {
		if err == nil {
			name += "\t" + i.State.String() + ", layout " + i.Config.Layout.String()
		}
		all = append(all, name)
		return true
	})
	return all
}

// peek opens the store of a command if it exists, and creates nothing;
// otherwise it returns nil.
func (a *app) peek(ctx context.Context, url string) grant.Store {
	url = cmp.Or(url, a.getenv(storeEnv))
	path, err := "", error(nil)
	switch {
	case url == "" && a.container() == "":
		path, err = a.dirs().Own()
	case url == machineStore:
		path, err = a.dirs().Machine()
	case url != "":
		url = strings.ReplaceAll(url, "create=true", "create=false")
		if s, err := stores.Open(ctx, url); err == nil {
			return s
		}
		return nil
	}
	if err != nil || path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	s, err := stores.Open(ctx, "dir:"+path)
	if err != nil {
		return nil
	}
	return s
}
