package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
)

// variants runs another build of this program, and adopts its measurements.
func (r *run) variants(all []string) {
	for _, v := range all {
		name, rest, _ := strings.Cut(v, "=")
		i := strings.LastIndexByte(rest, '=')
		only, program := rest[:i], rest[i+1:]
		if r.ctx.Err() != nil {
			r.skip(name, "")
			continue
		}
		cmd := exec.CommandContext(r.ctx, program, "-core", "-is-variant", "-json", "-", "-run", only)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil {
			r.skip(name, err.Error()+": "+strings.TrimSpace(log.String()))
			continue
		}
		var report Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			r.skip(name, err.Error())
			continue
		}
		r.takeVariant(name, &report)
	}
}

// takeVariant adds the figures of a variant's report, with names that identify
// the variant.
func (r *run) takeVariant(variant string, report *Report) {
	for _, f := range report.Figures {
		if name := variant + ":" + f.Name; r.wants(name) || r.wants(f.Name) {
			r.take(name, spread{f.Value, f.Low, f.High, f.Samples}, f.Unit, Figure{Bound: f.Bound, Note: f.Note})
		}
	}
	for _, s := range report.Skipped {
		r.skip(variant+":"+s.Name, s.Reason)
	}
}
