package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"
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
	cmd := command("who", nil, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return misuse(usage(cmd), "no IDs given")
		}
		in := &idInput{app: a, out: records.NewWriter(a.stdout), from: from}
		err := in.each(cmd.Context(), args, func(_ records.Place, text string) (bad, err error) {
			as, bad := from.Decodings(text, 0)
			if bad == nil {
				search.Queries = append(search.Queries, &issued.Query{Text: text, As: as})
			}
			return bad, nil
		})
		if err != nil {
			return err
		}
		if err := service.CheckName(search.Sequencer); search.Sequencer != "" && err != nil {
			return wrongFlag("sequencer", search.Sequencer, "", "%w", err)
		}
		for _, name := range logs {
			if err := readLog(cmd.Context(), a, &search, name); err != nil {
				return failed("", "%s: %w", name, err)
			}
		}
		if search.Bad > 0 {
			a.note("%d lines are not of an issue log, or damaged", search.Bad)
		}
		all := true
		for _, q := range search.Queries {
			verdict, at, reason := search.Judge(q)
			all = all && verdict == issued.Issued
			if asJSON {
				a.printJSON(whoJSON{q.Text, verdict, at, reason, q.Found})
			} else {
				a.printWho(q, verdict, at, reason)
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
	Time    time.Time       `json:"time,omitzero"`
	Reason  string          `json:"reason,omitempty"`
	Issued  []issued.Record `json:"issued,omitempty"`
}

// printWho prints the verdict on an ID.
func (a *app) printWho(q *issued.Query, verdict string, at time.Time, reason string) {
	var r rows
	for _, m := range q.Found {
		r.add(q.Text, "issued to %s at %s", cmp.Or(m.Client, m.Address, "a client"), issued.Stamp(m.Time))
		r.add("", "sequencer %s, address %s, request %s, server %s", m.Sequencer, cmp.Or(m.Address, "unknown"),
			cmp.Or(m.Request, "unknown"), cmp.Or(m.Server, "unknown"))
	}
	switch verdict {
	case issued.NotIssued:
		r.add(q.Text, "not issued by these servers while the log covers it (its time is %s)", issued.Stamp(at))
	case issued.NotCovered:
		if at.IsZero() {
			r.add(q.Text, "the log does not cover it: %s", reason)
		} else {
			r.add(q.Text, "the log does not cover that time, %s: %s", issued.Stamp(at), reason)
		}
	}
	r.print(a.stdout, a.style())
}

// readLog reads a log, which may be compressed.
func readLog(ctx context.Context, a *app, s *issued.Search, name string) error {
	in := idInput{app: a}
	f, _, err := in.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	var magic [2]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil {
		return nil // it is empty
	}
	r := io.MultiReader(bytes.NewReader(magic[:n]), f)
	if magic == [2]byte{0x1f, 0x8b} {
		if r, err = gzip.NewReader(r); err != nil {
			return err
		}
	}
	return s.Read(r)
}
