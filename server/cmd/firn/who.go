package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/records"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/service"
)

func newWho(a *app) *cobra.Command {
	var (
		from   form.Form
		logs   []string
		search issued.Search
		asJSON bool
	)
	cmd := command("who", takes("the ID", 1, -1), func(cmd *cobra.Command, args []string) error {
		var ids []string
		for _, arg := range args {
			if isIssueLog(arg) { // the shell has expanded --log logs/*
				logs = append(logs, arg)
			} else {
				ids = append(ids, arg)
			}
		}
		if len(ids) == 0 {
			return misuse(usage(cmd), "the ID is missing: all arguments are issue logs")
		}
		in := &idInput{app: a, out: records.NewWriter(a.stdout), from: from}
		lists := make(map[string]bool) // files, and whether an ID is in it
		err := in.each(cmd.Context(), ids, func(at records.Place, text string) (bad, err error) {
			as, bad := from.Decodings(text, 0)
			if bad == nil {
				search.Queries = append(search.Queries, &issued.Query{Text: text, As: as})
			} else if issued.IsLine(text) {
				return nil, misuse("name it with --log, or --log - for the standard input", "%s is a line of an issue log, not an ID", at)
			}
			lists[at.File] = lists[at.File] || bad == nil
			return bad, nil
		})
		if err != nil {
			return err
		}
		for name, has := range lists {
			if name != "" && !has { // a log compressed in another way, perhaps: without it, verdicts would be wrong
				return misuse("decompress it: xzcat FILE | firn who ID --log -",
					"%s has no IDs, and is not an issue log, also not compressed with gzip", name)
			}
		}
		if err := service.CheckName(search.Sequencer); search.Sequencer != "" && err != nil {
			return wrongFlag("sequencer", search.Sequencer, "", "%w", err)
		}
		for _, name := range logs {
			if err := readLog(cmd.Context(), in, &search, name); errors.Is(err, issued.ErrCut) {
				a.note("%s: %v", name, err)
			} else if err != nil {
				return failed("", "%s: %w", name, err)
			}
		}
		if search.Bad > 0 {
			a.note("%d lines are not of an issue log, or damaged", search.Bad)
		}
		all := true
		for _, q := range search.Queries {
			v := search.Judge(q)
			all = all && v.Is == issued.Issued
			if asJSON {
				a.printJSON(whoJSON{q.Text, v.Is, v.Layout, v.Time, v.Reasons, q.Found, search.Servers()})
			} else {
				a.printWho(q, v, search.Servers())
			}
		}
		if err := in.result(a, "IDs"); err != nil || all {
			return err
		}
		return answerNo()
	})
	encodingVar(cmd, &from)
	cmd.Flags().StringArrayVar(&logs, "log", nil, "`FILE` of an issue log, also compressed with gzip, or - for the standard input")
	cmd.Flags().StringVar(&search.Sequencer, "sequencer", "", "`NAME` of the only sequencer whose IDs to find")
	jsonVar(cmd, &asJSON)
	require(cmd, "log")
	return cmd
}

type whoJSON struct {
	ID      string          `json:"id"`
	Verdict string          `json:"verdict"`
	Layout  string          `json:"layout,omitempty"` // in which the ID has the time
	Time    time.Time       `json:"time,omitzero"`
	Reasons []string        `json:"reasons,omitempty"`
	Issued  []issued.Record `json:"issued,omitempty"`
	Servers []string        `json:"servers"` // whose logs were read
}

// printWho prints the verdict on an ID, by the logs of some servers.
func (a *app) printWho(q *issued.Query, v issued.Verdict, servers []string) {
	var r rows
	for _, m := range q.Found {
		r.add(q.Text, "issued to %s at %s", cmp.Or(m.Client, m.Address, "a client"), issued.Stamp(m.Time))
		r.add("", "sequencer %s, address %s, request %s, server %s", m.Sequencer, cmp.Or(m.Address, "unknown"),
			cmp.Or(m.Request, "unknown"), cmp.Or(m.Server, "unknown"))
	}
	when := fmt.Sprintf("%s in layout %s", issued.Stamp(v.Time), v.Layout)
	switch {
	case v.Is == issued.NotIssued && v.Layout == "":
		r.add(q.Text, "not issued by this sequencer")
	case v.Is == issued.NotIssued:
		r.add(q.Text, "not issued by these servers while the log covers it (its time is %s): %s", when, strings.Join(servers, ", "))
	case v.Is == issued.NotCovered && v.Layout == "":
		r.add(q.Text, "the log does not cover it")
	case v.Is == issued.NotCovered:
		r.add(q.Text, "the log does not cover its time, %s", when)
	}
	for _, reason := range v.Reasons {
		r.add("", "%s", reason)
	}
	r.print(a.stdout, a.style())
}

// isIssueLog reports whether an argument names an issue log, which cannot be a
// list of IDs. A pipe is not read for that.
func isIssueLog(arg string) bool {
	if info, err := os.Stat(arg); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(arg)
	if err != nil {
		return false
	}
	defer f.Close()
	return issued.IsLog(f)
}

// readLog reads a log.
func readLog(ctx context.Context, in *idInput, s *issued.Search, name string) error {
	f, _, err := in.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	from, stop := records.Read(ctx, f, in.out, "")
	defer stop()
	return s.Read(from)
}
