package credential

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

type rule struct {
	id, pattern string
	// keywords are in lower case. A text without them, in any case, has no such token.
	keywords []string
	shortest int
	// entropy is the minimum in bits for each character.
	entropy float64
	allowed []string // patterns of harmless texts

	once     sync.Once
	compiled *regexp.Regexp
	allows   []*regexp.Regexp
}

var ownRules = []*rule{
	// Matches short and truncated keys, too.
	{
		id:       "private-key",
		pattern:  `-----BEGIN[ A-Z0-9]{0,100}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])*[A-Za-z0-9+/=]{8,}`,
		keywords: []string{"-----begin"}, shortest: 32,
	},
}

// tokens indexes the rules by the first characters of their keywords.
type tokens struct {
	starts   [1 << (startLength * startBits)]uint16 // 0: no keyword begins so, else 1 and the index in the lists
	keywords [][]keyword
	shortest int
	common   []*regexp.Regexp // placeholders of all rules
}

type keyword struct {
	text string
	rule *rule
}

var all = sync.OnceValue(func() *tokens {
	t := &tokens{shortest: math.MaxInt}
	for _, rule := range slices.Concat(tokenRules, ownRules) {
		t.shortest = min(t.shortest, rule.shortest)
		for _, text := range rule.keywords {
			t.add(keyword{text, rule})
		}
	}
	for _, pattern := range placeholders {
		t.common = append(t.common, regexp.MustCompile(pattern))
	}
	return t
})

// A start has the lowest bits of each character, which are equal for both cases of a letter.
const startLength, startBits = 3, 5

func nextStart(start int, c byte) int {
	return (start<<startBits | int(c&(1<<startBits-1))) & (1<<(startLength*startBits) - 1)
}

func (t *tokens) add(k keyword) {
	starts := []int{0}
	for i := range startLength {
		var longer []int
		for _, start := range starts {
			if i < len(k.text) {
				longer = append(longer, nextStart(start, k.text[i]))
				continue
			}
			for c := range byte(1 << startBits) {
				longer = append(longer, nextStart(start, c))
			}
		}
		starts = longer
	}
	for _, start := range starts {
		if t.starts[start] == 0 {
			t.keywords = append(t.keywords, nil)
			t.starts[start] = uint16(len(t.keywords))
		}
		list := &t.keywords[t.starts[start]-1]
		*list = append(*list, k)
	}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func findToken(text string) (id string, at int) {
	t := all()
	if len(text) < t.shortest {
		return "", 0
	}
	var tried []*rule
	start := 0
	for last := range len(text) {
		start = nextStart(start, text[last])
		list, i := t.starts[start], last+1-startLength
		if list == 0 || i < 0 {
			continue
		}
		for _, keyword := range t.keywords[list-1] {
			if len(text) < keyword.rule.shortest || !hasPrefixFold(text[i:], keyword.text) || slices.Contains(tried, keyword.rule) {
				continue
			}
			if keyword.text == shortKeyword && !beginsVaultToken(text[i+len(shortKeyword):]) {
				continue
			}
			if at, found := keyword.rule.find(text, t.common); found {
				return keyword.rule.id, at
			}
			tried = append(tried, keyword.rule)
		}
	}
	return "", 0
}

// shortKeyword begins old tokens of Vault. It occurs in most host names, and took half of the time.
const shortKeyword = "s."

func beginsVaultToken(text string) bool {
	const length = 24
	if len(text) < length {
		return false
	}
	for i := range length {
		if c := lower(text[i]); (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

func (r *rule) find(text string, common []*regexp.Regexp) (at int, found bool) {
	r.once.Do(func() {
		r.compiled = regexp.MustCompile(r.pattern)
		for _, pattern := range r.allowed {
			r.allows = append(r.allows, regexp.MustCompile(pattern))
		}
	})
	for _, match := range r.compiled.FindAllStringSubmatchIndex(text, -1) {
		// As in gitleaks, the token is the first non-empty group, or else the whole match.
		token := text[match[0]:match[1]]
		for i := 2; i < len(match); i += 2 {
			if match[i] >= 0 && match[i] < match[i+1] {
				token = text[match[i]:match[i+1]]
				break
			}
		}
		isStopped := slices.ContainsFunc(stopwords, func(word string) bool { return strings.Contains(strings.ToLower(token), word) })
		if !isStopped && !isPlaceholder(token) && !matchesAny(common, token) && !matchesAny(r.allows, token) &&
			(r.entropy == 0 || entropyOf(token) > r.entropy) {
			return match[0], true
		}
	}
	return 0, false
}

func matchesAny(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) })
}

// entropyOf returns Shannon's entropy in bits for each byte.
func entropyOf(text string) (bits float64) {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, count := range counts {
		if share := float64(count) / float64(len(text)); count > 0 {
			bits -= share * math.Log2(share)
		}
	}
	return bits
}
