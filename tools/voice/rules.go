package main

import (
	"regexp"
	"strconv"
)

// A rule is a phrase, and what to write instead of it.
type rule struct {
	phrase *regexp.Regexp
	except *regexp.Regexp // matches what is good English all the same; may be nil
	write  string
}

// banned makes the rule for a pattern of whole words.
func banned(pattern, write string) rule {
	return rule{phrase: regexp.MustCompile(`(?i)(?:^|[^\w-])(` + pattern + `)(?:$|[^\w-])`), write: write}
}

// but makes an exception for phrases that match pattern as a whole.
func (r rule) but(pattern string) rule {
	r.except = regexp.MustCompile(`(?i)^(?:` + pattern + `)$`)
	return r
}

// rules are narrow: one that is wrong more often than right is left out.
var rules = []rule{
	banned(`(?:is|are|was|were|be) none`, `"no X found", "is not an X"`),
	banned(`(?:\w+ )?(?:is|are|was|were) no [a-z]+`, `"is not an X", "no X found"`).
		but(`there .*|.* no (?:longer|more|less|fewer|\w+er|good|doubt|point|use|need|way|problem)`),
	banned(`whoever|who asks`, `"the caller", "anyone who can …"`),
	banned(`nobody|somebody`, `"no client", "another process"`),
	banned(`or else|(?:can|would|may|might|could) else`, `"otherwise"`),
	banned(`(?:\w+ )?else[,:]`, `"otherwise"`).
		but(`(?:(?:some|any|every|no)(?:thing|one|where|body)|what|who|one) .*`),
	banned(`(?:is|are|be) (?:to be )?had|(?:can|may|could) be had`, `"is available", "can be acquired"`),
	banned(`(?:is|are|was|were) told|says? so`, `"reports", "logs", "returns"`),
	banned(`goes on|go on|went on`, `"continues", "keeps"`),
	banned(`(?:of|that|those) before[.,;:)]`, `"previous"`),
	banned(`(?:is|are|was|were) over(?:[.,;:)]|$| (?:and|but|when|once|before))`, `"has expired", "has ended"`),
	banned(`(?:is|are|was|were) away`, `"is unreachable", "is down"`),
	banned(`at the (?:least|most)|\w+, at most[.,;]`, `"at least N", "up to N" before the number`).
		but(`at the most \w+`),
	banned(`as it (?:would be|is|was)[.,;]`, `"unchanged", "with the same settings"`),
	banned(`it (?:may|can|might) be that`, `"may", "can"`),
	banned(`(?:that|which|who) (?:is|are|was|were) (?:said|meant|spoken)`, `the noun and an active verb`),
	banned(`that which|those which`, `the noun, "what"`),
	banned(`and (?:this|that|these|those) (?:is|are) (?:none|no|one)`, `a sentence of its own`),
	banned(`node numbers?`, `"node ID"`),
}

var quoted = regexp.MustCompile("`[^`]*`")

// phrases returns the banned phrases of one paragraph.
func phrases(path string, p paragraph) []finding {
	text := quoted.ReplaceAllStringFunc(p.text, blank) // keeps the offsets
	var all []finding
	for _, r := range rules {
		for _, m := range r.phrase.FindAllStringSubmatchIndex(text, -1) {
			found := text[m[2]:m[3]]
			if r.except == nil || !r.except.MatchString(found) {
				all = append(all, finding{path, p.lineOf(m[2]), strconv.Quote(found) + ": write " + r.write})
			}
		}
	}
	return all
}
