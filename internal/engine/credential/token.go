package credential

import (
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rules.json has those rules of gitleaks that match the token or key itself. tools/credentialrules writes it.
//
//go:embed rules.json
var rulesOfGitleaks []byte

type rule struct {
	ID      string `json:"id"`
	Pattern string `json:"pattern"`
	// Keywords are in lower case. A text without them, in any case, has no such token.
	Keywords []string `json:"keywords"`
	Shortest int      `json:"shortest"`
	// Entropy is the minimum in bits for each character.
	Entropy float64  `json:"entropy"`
	Allowed []string `json:"allowed"` // patterns of harmless texts

	once     sync.Once
	compiled *regexp.Regexp
	allows   []*regexp.Regexp
}

// privateKey matches short and truncated keys, too, which the rule of gitleaks does not.
var privateKey = &rule{
	ID:       "private-key",
	Pattern:  `-----BEGIN[ A-Z0-9]{0,100}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])*[A-Za-z0-9+/=]{8,}`,
	Keywords: []string{"-----begin"}, Shortest: 32,
}

// tokens indexes the rules by the first characters of their keywords.
type tokens struct {
	Rules []*rule `json:"rules"`
	// Placeholders match texts that no rule reports, Stopwords occur only in such texts.
	Placeholders []string `json:"placeholders"`
	Stopwords    []string `json:"stopwords"`

	starts               [1 << (startLength * startBits)][]keyword
	shortest             int
	compiledPlaceholders []*regexp.Regexp
}

type keyword struct {
	text string
	rule *rule
}

var all = sync.OnceValue(func() *tokens {
	t := &tokens{shortest: math.MaxInt}
	if err := json.Unmarshal(rulesOfGitleaks, t); err != nil {
		panic(err) // the file is a part of the program
	}
	for _, rule := range append(t.Rules, privateKey) {
		t.shortest = min(t.shortest, rule.Shortest)
		for _, text := range rule.Keywords {
			t.add(keyword{text, rule}, 0, 0)
		}
	}
	for _, pattern := range t.Placeholders {
		t.compiledPlaceholders = append(t.compiledPlaceholders, regexp.MustCompile(pattern))
	}
	return t
})

// A start has the lowest bits of each character, which are equal for both cases of a letter.
const startLength, startBits = 3, 5

func nextStart(start int, c byte) int {
	return (start<<startBits | int(c&(1<<startBits-1))) & (1<<(startLength*startBits) - 1)
}

// add lists a keyword under its start, and a short one under each start that begins with it.
func (t *tokens) add(k keyword, start, length int) {
	switch {
	case length == startLength:
		t.starts[start] = append(t.starts[start], k)
	case length < len(k.text):
		t.add(k, nextStart(start, k.text[length]), length+1)
	default:
		for c := range byte(1 << startBits) {
			t.add(k, nextStart(start, c), length+1)
		}
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
		i := last + 1 - startLength
		if i < 0 {
			continue
		}
		for _, keyword := range t.starts[start] {
			if len(text) < keyword.rule.Shortest || !hasPrefixFold(text[i:], keyword.text) || slices.Contains(tried, keyword.rule) {
				continue
			}
			if keyword.text == shortKeyword && !beginsVaultToken(text[i+len(shortKeyword):]) {
				continue
			}
			if at, found := t.find(keyword.rule, text); found {
				return keyword.rule.ID, at
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

func (t *tokens) find(r *rule, text string) (at int, found bool) {
	r.once.Do(func() {
		r.compiled = regexp.MustCompile(r.Pattern)
		for _, pattern := range r.Allowed {
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
		isStopped := slices.ContainsFunc(t.Stopwords, func(word string) bool { return strings.Contains(strings.ToLower(token), word) })
		if !isStopped && !isPlaceholder(token) && !matchesAny(t.compiledPlaceholders, token) && !matchesAny(r.allows, token) &&
			(r.Entropy == 0 || entropyOf(token) > r.Entropy) {
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
