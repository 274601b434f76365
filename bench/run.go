package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A run measures, and collects the results. It is for one goroutine.
type run struct {
	ctx    context.Context
	report *Report
	only   *regexp.Regexp // of names of figures; nil: all
	log    io.Writer      // for failures and progress

	// busy is a note for all figures that are added while other programs use
	// the machine: the effects of processes that run at once cannot be
	// distinguished from disturbances.
	busy string
}

// wants reports whether a figure with this name is requested.
func (r *run) wants(name string) bool {
	return r.ctx.Err() == nil && (r.only == nil || r.only.MatchString(name))
}

// add records a figure if it is requested. The non-empty fields of extra are
// used.
func (r *run) add(name string, s spread, unit string, extra Figure) {
	if r.wants(name) {
		r.take(name, s, unit, extra)
	}
}

// take records a figure, whether requested or not.
func (r *run) take(name string, s spread, unit string, extra Figure) {
	if s.n == 0 {
		r.skip(name, "no sample was usable")
		return
	}
	f := newFigure(name, s, unit)
	f.Bound, f.Note = extra.Bound, extra.Note
	if r.busy != "" && slices.Contains(timeUnits(), unit) {
		f.Note = strings.TrimPrefix(f.Note+"; "+r.busy, "; ")
	}
	r.report.Figures = append(r.report.Figures, f)
}

// timeUnits returns the units of figures of elapsed time, and of their ratios.
func timeUnits() []string { return []string{"s", "ms", "/s", "k/s", "M/s", "x"} }

// skip records what was not measured, and logs it at once.
func (r *run) skip(name, reason string) {
	if r.ctx.Err() != nil {
		reason = "the run ended: " + context.Cause(r.ctx).Error()
	}
	fmt.Fprintf(r.log, "SKIPPED: %s: %s\n", name, reason)
	r.report.Skipped = append(r.report.Skipped, Skip{name, reason})
}

// part runs a part of the program, logs how long it took, and recovers from its
// panics.
func (r *run) part(name string, f func()) {
	if r.ctx.Err() != nil {
		r.skip(name, "")
		return
	}
	begin := time.Now()
	defer func() {
		if x := recover(); x != nil {
			r.skip(name, reason(x))
		}
		fmt.Fprintf(r.log, "bench: %s took %v\n", name, time.Since(begin).Round(10*time.Millisecond))
	}()
	f()
}

// reason describes a panic. Errors, except those of the runtime, are how this
// program ends a part that cannot continue.
func reason(x any) string {
	if err, ok := x.(error); ok {
		if _, isRuntime := x.(runtime.Error); !isRuntime {
			return err.Error()
		}
	}
	return fmt.Sprintf("it panicked: %v", x)
}

// lookAround sets busy if the load is higher than this program allows.
func (r *run) lookAround() {
	load, err := strconv.ParseFloat(loadAverage(), 64)
	if most := 2 * float64(runtime.NumCPU()); err == nil && load > most {
		r.busy = "busy machine, load " + number(load)
	}
}

// one returns the spread of a single number.
func one(x float64) spread { return spread{x, x, x, 1} }
