package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A Machine describes where a report was made.
type Machine struct {
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
	Load string `json:"load,omitempty"` // of the last minute before the run
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s %s/%s, %d x %s", m.Go, m.OS, m.Arch, m.CPUs, m.CPU)
	if m.Load != "" {
		s += ", load " + m.Load
	}
	return s
}

// thisMachine reads what Linux reports; on other systems the name of the
// processor is unknown.
func thisMachine() Machine {
	m := Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, "unknown processor", runtime.NumCPU(), ""}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	m.Load = loadAverage()
	return m
}

// loadAverage returns the average number of runnable programs in the last
// minute, or "" if the system does not report it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
