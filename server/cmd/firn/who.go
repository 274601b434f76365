package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/service"
)

func newWho(a *app) *cobra.Command {
	in := &idInput{app: a}
	var (
		logs   []string
		search issued.Search
		asJSON bool
	)
	cmd := command("who", wantArgs("the ID", 1, -1), func(cmd *cobra.Command, args []string) error {
		var ids []string
		for _, arg := range args {
			if issued.IsLog(arg) { // no list of IDs: the shell has expanded --log logs/*
				logs = append(logs, arg)
			} else {
				ids = append(ids, arg)
			}
		}
		if len(ids) == 0 {
			return misuse(usage(cmd), "the ID is not given: all arguments are issue logs")
		}
		in.out = lines.NewWriter(a.stdout)
		lists := make(map[string]bool) // files, and whether an ID is in it
		err := in.each(cmd.Context(), ids, func(at lines.Place, text string) (bad, err error) {
			as, bad := in.from.Decodings(text, 0)
			if bad == nil {
				search.Queries = append(search.Queries, &issued.Query{Text: text, As: as})
			} else if issued.IsLine(text) {
				return nil, misuse("name it with --log, or --log - for the standard input",
					"%s is a line of an issue log, not an ID", at)
			}
			lists[at.File] = lists[at.File] || bad == nil
			return bad, nil
		})
		if err != nil {
			return err
		}
		for name, has := range lists {
			if name != "" && !has {
				// Perhaps a log compressed in another way: without it, verdicts
				// would be wrong.
				return misuse("decompress it: xzcat FILE | firn who ID --log -",
					"%s has no IDs, and is not an issue log, also not compressed with gzip", name)
			}
		}
		if err := service.CheckName(search.Sequencer); search.Sequencer != "" && err != nil {
			return wrongFlag("sequencer", search.Sequencer, "", "%w", err)
		}
		for _, name := range logs {
			bad := search.Bad
			if err := readLog(cmd.Context(), in, &search, name); errors.Is(err, issued.ErrCut) {
				a.note("%s: %v", name, err)
			} else if err != nil {
				return failed("", "%s: %w", name, err)
			}
			if n := search.Bad - bad; n > 0 {
				a.note("%s: lines that are not of an issue log, or damaged: %d", name, n)
			}
		}
		all := true
		for _, q := range search.Queries {
			v := search.Judge(q)
			all = all && v.Is == issued.Issued
			if asJSON {
				a.printJSON(search.Answer(q, v))
			} else {
				var r rows
				search.Explain(q, v, a.now(), func(id, text string) { r.add(id, "%s", text) })
				r.print(a.stdout, a.style())
			}
		}
		if err := in.result(a, "IDs"); err != nil || all {
			return err
		}
		return answerNo()
	})
	fromVar(cmd, &in.from)
	cmd.Flags().StringArrayVar(&logs, "log", nil,
		"`FILE` of an issue log, also compressed with gzip, or - for the standard input")
	cmd.Flags().StringVar(&search.Sequencer, "sequencer", "", "`NAME` of the only sequencer whose IDs to find")
	cmd.Flags().BoolVar(&search.Complete, "complete", false,
		"no server ran without a log, and all logs are here")
	jsonVar(cmd, &asJSON)
	require(cmd, "log")
	return cmd
}

// readLog reads a log.
func readLog(ctx context.Context, in *idInput, s *issued.Search, name string) error {
	f, _, err := in.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	from, stop := lines.Read(ctx, f, in.out, "")
	defer stop()
	return s.Read(from)
}
