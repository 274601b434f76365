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
	best, distance := "", max(2, len(word)/3)+1
	for _, w := range words {
		if d := edits(strings.ToLower(word), strings.ToLower(w)); d < distance {
			best, distance = w, d
		}
	}
	return best
}

// edits returns how many letters must be changed, added or removed to turn a
// into b.
func edits(a, b string) int {
	costs := make([]int, len(b)+1) // of a's beginning, for each beginning of b
	for j := range costs {
		costs[j] = j
	}
	for i := range len(a) {
		diagonal := costs[0]
		costs[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = costs[j+1]
			costs[j+1] = min(change, diagonal+1, costs[j]+1)
		}
	}
	return costs[len(b)]
}
