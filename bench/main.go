// Command bench measures the cost of Firn's library and server and of their
// peers, and prints a line for each figure:
//
//	name value unit target ok|short
//
// make bench-core measures the library, make bench everything. Peers are
// measured alternately with what they are compared with, in slices of less than
// a millisecond, so that other activity of the machine affects both: a figure
// NAME:OTHER is the median of these ratios. Each median is followed by its
// quartiles and by what the subject's own format allows.
//
// It is not for comparing machines, nor for deciding whether a change is an
// improvement: the figures of two runs differ by more than most changes do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags of the command line.
type settings struct {
	core    bool
	firn    string
	json    string
	svg     string
	from    string
	doc     string
	only    string
	limit   time.Duration
	variant []string

	bare string

	isVariant bool // another run adopts the figures of this one
}

// command is the program without the process.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.core, "core", false, "measure only the library")
	flags.StringVar(&s.firn, "firn", "bin/firn", "measure this `PROGRAM` as the server")
	flags.StringVar(&s.json, "json", "", "also write the report to `FILE`; - is stdout, in place of the table")
	flags.StringVar(&s.svg, "svg", "", "also write charts of bursts and threads to this `DIRECTORY`")
	flags.StringVar(&s.doc, "doc", "", "also replace the tables of this Markdown `FILE`, between <!-- bench: NAME --> and <!-- end -->")
	flags.StringVar(&s.from, "from", "", "measure nothing, and show the report in this `FILE`, written by -json")
	flags.StringVar(&s.only, "run", "", "measure only figures that match this `REGEXP`")
	flags.DurationVar(&s.limit, "limit", 20*time.Minute, "end after this time, and report what was not measured")
	flags.StringVar(&s.bare, "bare-http", "", "measure nothing, and serve the peer of http/next at `ADDRESS`")
	flags.BoolVar(&s.isVariant, "is-variant", false, "do not report targets without a figure")
	flags.Func("variant", "also run `NAME=REGEXP=PROGRAM`, another build of this program, for the figures that match; their names begin with NAME:", func(v string) error {
		if strings.Count(v, "=") < 2 {
			return errors.New("want NAME=REGEXP=PROGRAM")
		}
		s.variant = append(s.variant, v)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.bare != "" {
		return serveBare(s.bare)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("-limit %v has passed", s.limit))
	defer cancel()
	r := &run{ctx: ctx, report: &Report{Machine: thisMachine(), Begin: time.Now().UTC(), Figures: []Figure{}, Skipped: []Skip{}}, log: stderr}
	if s.only != "" {
		var err error
		if r.only, err = regexp.Compile(s.only); err != nil {
			return fmt.Errorf("-run: %w", err)
		}
	}
	if s.from != "" {
		text, err := os.ReadFile(s.from)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, r.report); err != nil {
			return fmt.Errorf("%s is not a report: %w", s.from, err)
		}
	} else {
		r.all(&s)
		r.report.Lasted = time.Since(r.report.Begin)
	}
	if s.svg != "" {
		if err := draw(r.report, s.svg); err != nil {
			return err
		}
	}
	if s.doc != "" {
		if err := document(r.report, s.doc); err != nil {
			return err
		}
	}
	if s.json == "-" {
		return r.report.writeJSON(stdout)
	}
	if err := r.report.writeTable(stdout); err != nil {
		return err
	}
	r.report.writeSummary(stdout)
	if s.json != "" {
		f, err := os.Create(s.json)
		if err != nil {
			return err
		}
		if err := errors.Join(r.report.writeJSON(f), f.Close()); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (r *run) all(s *settings) {
	r.library()
	r.part("text", r.text)
	r.part("threads", r.threads)
	r.part("bursts", r.bursts)
	r.part("sustained", r.sustained)
	r.variants(s.variant)
	if !s.core {
		r.lookAround()
		r.servers(s.firn)
		r.storage(s.firn)
	}
	want := coreAims()
	if !s.core {
		maps.Copy(want, serverAims())
	}
	if !s.isVariant {
		r.missing(want)
	}
}
