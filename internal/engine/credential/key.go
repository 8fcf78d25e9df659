package credential

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

type kind int

const (
	plain kind = iota
	// secret is a password or the name of a Secret.
	secret
	// token is a text, never a number.
	token
	// password may be any value.
	password
)

type ending struct {
	text string
	kind kind
}

// endings are in lower case. The first match wins.
var endings = []ending{
	{"password", password}, {"passwd", password}, {"passphrase", password}, {"pwd", token},
	{"apikey", token}, {"privatekey", token}, {"secretkey", token}, {"secretaccesskey", token}, {"accesskeysecret", token},
	{"accountkey", token}, {"encryptionkey", token}, {"masterkey", token},
	{"clientsecret", token}, {"appsecret", token}, {"sharedsecret", token}, {"consumersecret", token}, {"jwtsecret", token},
	{"webhooksecret", token}, {"signingsecret", token},
	{"token", token},
	{"secret", secret}, {"credential", secret}, {"credentials", secret},
}

// referring lists words of keys that name another object, such as existingSecret.
var referring = []string{"existing", "pull", "ref", "name", "public", "path", "file", "csrf", "checksum"}

// kindOf classifies a key by its last words. It ignores a trailing number, as in password_2.
func kindOf(key string) kind {
	if key = withoutNumber(key); !hasEnding(key) {
		return plain // most keys
	}
	words := wordsOf(key)
	joined := strings.Join(words, "")
	for _, known := range endings {
		if strings.HasSuffix(joined, known.text) {
			if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(referring, word) }) {
				return plain
			}
			return known.kind
		}
	}
	return plain
}

// endsSpacedKey reports whether text, with its last word, may end in a key of several words, such as "API key".
func endsSpacedKey(text, word string) bool {
	const longest = 64 // bytes
	joined, last := strings.Join(wordsOf(text[max(0, len(text)-longest):]), ""), strings.Join(wordsOf(word), "")
	return slices.ContainsFunc(endings, func(e ending) bool {
		return strings.HasSuffix(joined, e.text) && !strings.HasSuffix(last, e.text)
	})
}

func withoutNumber(key string) string {
	for key != "" {
		c := key[len(key)-1]
		if (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			break
		}
		key = key[:len(key)-1]
	}
	return key
}

func hasEnding(key string) bool {
	const length = 3
	if len(key) < length {
		return false
	}
	last := key[len(key)-length:]
	switch string([]byte{lower(last[0]), lower(last[1]), lower(last[2])}) {
	case "ord", "swd", "ase", "pwd", "key", "ret", "ken", "ial", "als":
		return true
	}
	return false
}

// wordsOf splits DB_PASSWORD, dbPassword, db-password and DBPassword into words in lower case.
func wordsOf(key string) (words []string) {
	runes, start := []rune(key), 0
	end := func(at int) {
		if start < at {
			words = append(words, strings.ToLower(string(runes[start:at])))
		}
		start = at
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			start = i + 1
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
		}
	}
	end(len(runes))
	return words
}

// References to the real value, and placeholders for a later one.
var (
	placeholder = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
		`\$[({]?[\w.:/-]*[)}]?`,                               // $NAME, ${NAME}, $(NAME)
		`.*(?:\{\{|\$\{|\$\().*`,                              // {{ .Values.x }}, also within a text
		`<.*>`, `\[.*\]`, `%[\w.-]+%`, `@[\w.-]+@`, `__\w+__`, // <password>, %NAME%, @NAME@
		`[*x.…-]+`,                // ***
		`ENC\[.*`, `\{cipher\}.*`, // encrypted, by SOPS or Spring
		`(?:vault|ref\+\w+|op|awssm|ssm|sm|gcpsm|azkv|akv|keyvault|arn|file|env|secretref|k8s|kubernetes)://?.*`,
		`(?:vault|arn|env|file|ssm|secretref|secretKeyRef):.*`,
		`projects/[^/]+/secrets/.*`,
		`change[-_ ]?(?:me|it)|replace[-_ ]?me|redacted|to[-_ ]?do|tbd|fixme|placeholder|none|null|nil|n/a|unset|undefined|empty`,
		`your[-_ ].*|.*[-_ ]here`,
	}, "|") + `)$`)
	word    = regexp.MustCompile(`(?i)^(?:true|false|yes|no|on|off|enabled|disabled|required|optional|auto|default)$`)
	number  = regexp.MustCompile(`^[0-9.,_]+(?:[a-z]{1,3})?$`)
	path    = regexp.MustCompile(`^(?:[a-z]+:/)?(?:/[a-z0-9._-]+){2,}/?$`)
	envName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$`)
	// object matches names of Kubernetes objects: words and numbers.
	object  = regexp.MustCompile(`^(?:[a-z]+|v?[0-9]+)(?:[-./](?:[a-z]+|v?[0-9]+))*$`)
	address = regexp.MustCompile(`^https?://[^@\s]+$`)
	prose   = regexp.MustCompile(`^[\p{L}'’,.:;!?()-]+(?:\s+[\p{L}'’,.:;!?()-]+){2,}$`)
)

func isPlaceholder(text string) bool { return placeholder.MatchString(text) }

func isLiteral(kind kind, text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || isPlaceholder(text) || word.MatchString(text) || path.MatchString(text) || envName.MatchString(text) ||
		address.MatchString(text) || prose.MatchString(text) {
		return false
	}
	return kind == password || !number.MatchString(text) && (kind == token || !object.MatchString(text))
}

// Values after a key in YAML, JSON, TOML, environment files and connection strings: quoted, or one word up to the end
// of the line, list or part.
var (
	quoted = regexp.MustCompile(`^[:=][ \t]*(?:"([^"\n]+)"|'([^'\n]+)')`)
	bare   = regexp.MustCompile(`^(?::[ \t]+|=[ \t]*)([^\s"'{}\[\]()|>&;,#]+)`)
	ended  = regexp.MustCompile(`^[ \t]*(?:$|[,;}&\r\n#]|\s[A-Za-z_]+=)`)
)

const schemeEnd = "://"

var userinfo = regexp.MustCompile(`^://[^\s/?#:@"'<>]*:([^\s/?#@"'<>]+)@[^\s"'<>]`)

// findPassword finds a URL with a password, or a literal under a key for passwords, but in comments only URLs. Its
// time is linear, because it skips the whole word after such a key.
func findPassword(text string) (rule string, at int) {
	isComment := false // from "#" at the beginning of a line or after white space to the end of the line
	end := 0           // of the last word
	for i := range len(text) {
		switch text[i] {
		case '\n':
			isComment = false
		case '#':
			isComment = isComment || i == 0 || strings.IndexByte("\n \t", text[i-1]) >= 0
		}
		if text[i] != ':' && text[i] != '=' {
			continue
		}
		if strings.HasPrefix(text[i:], schemeEnd) && beginsUserinfo(text[i:]) {
			return "password-in-url", i
		}
		if i < end || isComment {
			continue
		}
		key := text[:i]
		for key != "" && (key[len(key)-1] == ' ' || key[len(key)-1] == '\t') {
			key = key[:len(key)-1]
		}
		if quote := len(key) - 1; quote >= 0 && (key[quote] == '"' || key[quote] == '\'') {
			key = key[:quote]
		}
		at := 1 + strings.LastIndexFunc(key, func(r rune) bool { return !isOfKey(r) })
		kind := kindOf(key[at:])
		if kind == plain {
			continue
		}
		isFound := false
		if match := quoted.FindStringSubmatch(text[i:]); match != nil {
			isFound = isLiteral(kind, match[1]) || isLiteral(kind, match[2])
		} else if match := bare.FindStringSubmatch(text[i:]); match != nil {
			end = i + len(match[0])
			isFound = ended.MatchString(text[end:]) && !expression.MatchString(match[1]) && isLiteral(kind, match[1])
		}
		if isFound {
			return "password", at
		}
	}
	return "", 0
}

func hasPasswordInURL(text string) bool {
	if !strings.Contains(text, "@") {
		return false
	}
	for {
		at := strings.Index(text, schemeEnd)
		if at < 0 {
			return false
		}
		if beginsUserinfo(text[at:]) {
			return true
		}
		text = text[at+len(schemeEnd):]
	}
}

// beginsUserinfo reports a password in text, which begins with "://".
func beginsUserinfo(text string) bool {
	match := userinfo.FindStringSubmatch(text)
	return match != nil && !isPlaceholder(match[1])
}

func isOfKey(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.'
}

// expression matches references such as var.token.
var expression = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
