// Command credentialrules writes rules of gitleaks as JSON, for internal/engine/credential/rules.json. go.mod has their version.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"regexp"
	"regexp/syntax"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

const module = "github.com/zricethezav/gitleaks/v8"

// leftOut maps rules that find no credentials to the reason.
var leftOut = map[string]string{
	"flutterwave-public-key":   "is public",
	"sourcegraph-access-token": "takes every commit for a token where a text has the word sourcegraph",
	"curl-auth-header":         "takes shell variables with modifiers for a token",
	"curl-auth-user":           "takes names of users and shell variables for a password",
}

// byName begins the rules that report any text of a certain length after the name of a service. They would take identifiers
// and hashes for tokens.
const byName = `[\w.-]{0,50}?(?:`

type allowlist struct {
	Target    string   `toml:"regexTarget"`
	Regexes   []string `toml:"regexes"`
	Stopwords []string `toml:"stopwords"`
}

type rules struct {
	Allowlist allowlist `toml:"allowlist"`
	Rules     []struct {
		ID          string      `toml:"id"`
		Regex       string      `toml:"regex"`
		Path        string      `toml:"path"`
		SecretGroup int         `toml:"secretGroup"`
		Entropy     float64     `toml:"entropy"`
		Keywords    []string    `toml:"keywords"`
		Allowlists  []allowlist `toml:"allowlists"`
	} `toml:"rules"`
}

func main() {
	text, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		log.Fatal(err)
	}
}

// written is the form of rules.json.
type written struct {
	Source  string   `json:"source"`
	License []string `json:"license"`
	// Rules match the token or key itself.
	Rules []writtenRule `json:"rules"`
	// Placeholders match texts that gitleaks never reports, Stopwords occur only in such texts.
	Placeholders []string `json:"placeholders"`
	Stopwords    []string `json:"stopwords"`
}

type writtenRule struct {
	ID       string   `json:"id"`
	Pattern  string   `json:"pattern"`
	Keywords []string `json:"keywords"`
	Shortest int      `json:"shortest"`
	Entropy  float64  `json:"entropy,omitempty"`
	Allowed  []string `json:"allowed,omitempty"`
}

func generate() ([]byte, error) {
	var all rules
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &all); err != nil {
		return nil, err
	}
	result := written{
		Source: module + " " + version(), License: strings.Split(license, "\n"),
		Placeholders: all.Allowlist.Regexes, Stopwords: all.Allowlist.Stopwords,
	}
	for _, rule := range all.Rules {
		if rule.Regex == "" || rule.Path != "" || strings.Contains(rule.Regex, byName) || leftOut[rule.ID] != "" {
			continue
		}
		if _, err := regexp.Compile(rule.Regex); err != nil {
			return nil, fmt.Errorf("%s: %w", rule.ID, err)
		}
		shortest, err := shortest(rule.Regex)
		if err != nil || len(rule.Keywords) == 0 || rule.SecretGroup != 0 {
			return nil, fmt.Errorf("%s: has no keyword, or a group: %w", rule.ID, err)
		}
		one := writtenRule{ID: rule.ID, Pattern: rule.Regex, Keywords: rule.Keywords, Shortest: shortest, Entropy: rule.Entropy}
		for _, list := range rule.Allowlists {
			if list.Target != "" || len(list.Stopwords) > 0 {
				return nil, fmt.Errorf("%s: has an allowlist of another kind", rule.ID)
			}
			one.Allowed = append(one.Allowed, list.Regexes...)
		}
		result.Rules = append(result.Rules, one)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(result)
	return b.Bytes(), err
}

// shortest is the length of the shortest text that a regular expression matches, in characters.
func shortest(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return least(parsed), nil
}

func least(r *syntax.Regexp) int {
	sum := 0
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			sum += least(sub)
		}
	case syntax.OpAlternate:
		return least(slices.MinFunc(r.Sub, func(a, b *syntax.Regexp) int { return cmp.Compare(least(a), least(b)) }))
	case syntax.OpCapture, syntax.OpPlus:
		return least(r.Sub[0])
	case syntax.OpRepeat:
		return r.Min * least(r.Sub[0])
	}
	return sum
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return ""
}

const license = `MIT License

Copyright (c) 2019 Zachary Rice

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`
