package main

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

var sizeUnits = [...]struct {
	name string
	size uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}}

// parseSize parses a number of bytes such as 64KiB, 2G or 512.
func parseSize(s string) (uint64, error) {
	unit := uint64(1)
	digits := s
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = rest, u.size
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	hi, total := bits.Mul64(n, unit)
	if err != nil || hi != 0 || total >= 1<<62 {
		return 0, errors.New("it is not a size such as 512MiB or 2GiB")
	}
	return total, nil
}

// formatSize formats a number of bytes exactly, in the form of parseSize.
func formatSize(n uint64) string {
	for _, u := range sizeUnits[:3] {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}

// parseNumber parses a decimal integer of 64 bits.
func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("it exceeds 64 bits")
	case err != nil:
		return 0, errors.New("it must be an integer of 0 or more")
	}
	return n, nil
}
