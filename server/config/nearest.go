package config

import "strings"

// didYouMean is the end of a sentence about a word that is not among those
// known.
func didYouMean(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// Nearest returns which of the words is most like one that is not among them,
// or "" if none is.
func Nearest(word string, words []string) string {
	best, distance := "", tooFar(word)
	for _, w := range words {
		if d := edits(strings.ToLower(word), strings.ToLower(w), distance); d < distance {
			best, distance = w, d
		}
	}
	return best
}

// IsNear reports whether Nearest can return a word for another one.
func IsNear(word, w string) bool {
	far := tooFar(word)
	return edits(strings.ToLower(word), strings.ToLower(w), far) < far
}

// IsTypo reports whether a name may be another one, mistyped: they differ in
// one letter, or two if they are long, or in case. Names that differ in numbers
// alone are of a series.
func IsTypo(name, other string) bool {
	most := 1 + 1
	switch n := min(len(name), len(other)); {
	case name == other, n < 3, withoutDigits(name) == withoutDigits(other):
		return false
	case n >= 6:
		most = 2 + 1
	}
	return edits(strings.ToLower(name), strings.ToLower(other), most) < most
}

// withoutDigits is a name without its digits.
func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// tooFar is the distance of words that are not like a word.
func tooFar(word string) int { return max(2, len(word)/3) + 1 }

// edits counts the letters that must be changed, added, left out or swapped
// with the next one to make b of a, as far as it is less than most.
func edits(a, b string, most int) int {
	if d := len(a) - len(b); d >= most || -d >= most {
		return most
	}
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		now[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			now[j+1] = min(last[j+1]+1, now[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
