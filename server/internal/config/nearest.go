package config

import "strings"

// didYouMean returns the end of a sentence about an unknown word: the most
// similar known one, if any.
func didYouMean(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// Nearest returns the word most similar to one that is not among the words, or
// "" if none is similar enough.
func Nearest(word string, words []string) string {
	best, distance := "", tooFar(word)
	for _, w := range words {
		if d := edits(strings.ToLower(word), strings.ToLower(w), distance); d < distance {
			best, distance = w, d
		}
	}
	return best
}

// tooFar is the distance from which words are not similar.
func tooFar(word string) int { return max(2, len(word)/3) + 1 }

// edits returns how many letters must be changed, added, removed or swapped
// with the next one to turn a into b, if that is less than most.
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
