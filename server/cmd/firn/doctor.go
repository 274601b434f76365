package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/doctor"
	"github.com/firnid/firn/server/internal/operate/issued"
)

func newDoctor(a *app) *cobra.Command {
	var configFile, store, other string
	var asJSON bool
	cmd := command("doctor", noArgs, func(cmd *cobra.Command, _ []string) error {
		s, err := a.serveSettings(configFile, store)
		if err != nil {
			return err
		}
		return a.doctor(cmd.Context(), s, other, asJSON)
	})
	cmd.Flags().StringVar(&configFile, "config", "", "`FILE` of the server's configuration (default $"+configEnv+")")
	storeVar(cmd, &store)
	textVar(cmd, &other, "other-store", "URL", "another store, for node IDs that are in both")
	jsonVar(cmd, &asJSON)
	return cmd
}

// doctorLimit bounds the time of the checks.
const doctorLimit = time.Minute

// doctor runs the checks of a server and prints the findings.
func (a *app) doctor(ctx context.Context, s *serveCmd, other string, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	if err := cmp.Or(checkStoreURL("store", s.store), checkStoreURL("other-store", other)); err != nil {
		return err
	}
	endpoints, wrong := s.check(true) // as serve does when it starts
	wrong = append(wrong, s.checkFiles()...)
	c := doctor.Config{Version: buildOf().Version, Connections: s.MaxConns, Now: a.now, Listen: textsOf(endpoints)}
	if !s.isStatic() {
		url := cmp.Or(s.store, a.getenv(storeEnv))
		if url != "" || a.container() == "" {
			c.Directory = a.directoryOf(url)
		}
		makes := url == "" || strings.Contains(url, "create=true") // as serve does
		files, err := os.ReadDir(c.Directory)
		c.Missing = c.Directory != "" && makes && len(files) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
	}
	if !s.isStatic() && !c.Missing {
		c.Store, c.StoreError = a.openStore(ctx, s.store, false, func(string, ...any) {})
	}
	if other != "" {
		c.Other, c.OtherError = a.openStore(ctx, other, false, a.note)
	}
	for _, opened := range []grant.Store{c.Store, c.Other} {
		if opened != nil {
			defer opened.Close()
		}
	}
	c.StoreHint, c.OtherHint = hintOf(c.StoreError), hintOf(c.OtherError)
	if c.Forward.URLs = s.ForwardTo; len(wrong) == 0 {
		if s.opened.forwardToken != nil {
			c.Forward.Token = s.opened.forwardToken.Get
		}
		if s.opened.certificates != nil {
			c.Forward.TLS = s.opened.certificates.Client()
		}
	}
	c.TLS = s.opened.certificates
	if s.issueLogPath != issued.Stdout {
		c.IssueLog = s.issueLogPath
	}
	found := doctor.Run(ctx, c)
	for _, f := range wrong {
		found = append(found,
			doctor.Finding{Check: "config", Level: doctor.Fix, Text: "--" + f.flag + ": " + f.err.Error(), Fix: f.hint})
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	a.printFindings(found, asJSON)
	for _, f := range found {
		if f.Level == doctor.Fix {
			return answerNo()
		}
	}
	return nil
}

// hintOf returns the hint of an error, or "".
func hintOf(err error) string {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.hint
	}
	return ""
}

// printFindings prints each finding on a line, followed by what to do.
func (a *app) printFindings(found []doctor.Finding, asJSON bool) {
	if asJSON {
		a.printJSON(found)
		return
	}
	for _, f := range found {
		fmt.Fprintf(a.stdout, "%-7s  %-11s  %s\n", f.Level, f.Check, textfmt.Printable(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(a.stdout, "%-7s  %-11s  → %s\n", "", "", textfmt.Printable(f.Fix))
		}
	}
}
