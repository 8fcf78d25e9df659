// Package secret keeps credentials out of text that leaves the provider.
package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// Scrubber replaces credentials in every form that a URL, a header, a server or a library produces. The zero value replaces
// nothing.
type Scrubber []string

var escapePattern = regexp.MustCompile(`%[0-9A-F]{2}`)

// NewScrubber returns a Scrubber for secrets and the usernames sent beside them.
func NewScrubber(secrets []string, usernames ...string) Scrubber {
	forms := map[string]bool{}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		inURLs := []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret),
			url.UserPassword("", secret).String()[1:], (&url.URL{Path: "/" + secret}).EscapedPath()[1:],
		}
		for _, form := range inURLs {
			quoted := strconv.Quote(form)
			encoded, _ := json.Marshal(form) //nolint:errchkjson // a string always has a JSON form
			for _, written := range []string{
				form, quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1]), html.EscapeString(form),
				escapePattern.ReplaceAllStringFunc(form, strings.ToLower),
			} {
				forms[written] = true
				forms[strings.ReplaceAll(written, "/", `\/`)] = true // some JSON encoders escape slashes
			}
		}
		for _, username := range append(slices.Clone(usernames), "") {
			for _, plain := range []string{secret, username + ":" + secret} {
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
					forms[strings.TrimRight(encoding.EncodeToString([]byte(plain)), "=")] = true
				}
			}
		}
	}
	ordered := make(Scrubber, 0, len(forms))
	for form := range forms {
		ordered = append(ordered, form)
	}
	// A form may contain another, so replace longest first.
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return ordered
}

// Scrub replaces each secret in the text with three asterisks.
func (s Scrubber) Scrub(text string) string {
	for _, form := range s {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}

// IsJWT reports whether a token is a signed JSON Web Token (RFC 7519), such as one of Microsoft Entra ID. Other tokens have no
// dots.
func IsJWT(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return false
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	return json.Unmarshal(text, &header) == nil && header.Algorithm != ""
}

// KeyForms returns the secret texts of a private key in PEM: as given, as parsed, and each line, because an error may repeat one
// line.
func KeyForms(pem string) []string {
	normal := armor.Normalize(pem)
	forms := []string{pem, normal, strings.TrimSpace(normal)}
	for line := range strings.Lines(normal) {
		if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
			forms = append(forms, line)
		}
	}
	return forms
}

const (
	// window is the number of bytes of a value that an error must not repeat: a library may truncate values.
	window = 8
	// shortest is the minimum length of a whole word.
	shortest = 4
)

// Unrepeated masks every part of an error's text that repeats a text or a long number of the JSON values: as it is, truncated,
// quoted, escaped, in base64 or in hexadecimal. It does not mask parts that match keep, such as
// names of files; keep may be nil.
func Unrepeated(text string, keep *regexp.Regexp, values ...any) string {
	r := repeated{text: text, windows: make(map[uint64]bool, len(text)), words: map[string]bool{}, starts: map[string]bool{}}
	for i := range len(text) - window + 1 {
		r.windows[binary.LittleEndian.Uint64([]byte(text[i:i+window]))] = false
	}
	for _, value := range values {
		r.value(value)
	}
	return r.masked(keep)
}

type repeated struct {
	text    string
	windows map[uint64]bool // of the text; true: also in a value
	words   map[string]bool // values shorter than a window
	starts  map[string]bool // beginnings of values, to recognize truncated ones
}

func (r *repeated) value(value any) {
	switch value := value.(type) {
	case string:
		r.add(value)
	case []any:
		for _, element := range value {
			r.value(element)
		}
	case map[string]any:
		for _, member := range value {
			r.value(member)
		}
	case map[string]string:
		for _, member := range value {
			r.add(member)
		}
	case nil, bool:
	default:
		if number := fmt.Sprint(value); len(number) > shortest {
			r.add(number)
		}
	}
}

func (r *repeated) add(value string) {
	value = strings.TrimSpace(value)
	if at, err := url.Parse(value); err == nil && at.User != nil {
		if password, has := at.User.Password(); has {
			r.form(password)
		}
	}
	for line := range strings.Lines(value) {
		r.form(strings.TrimSpace(line))
	}
	if len(value) < shortest || plainWords[strings.ToLower(value)] {
		return
	}
	r.form(value)
	quoted := strconv.Quote(value)
	inJSON, _ := json.Marshal(value) //nolint:errchkjson // a string always has a JSON form
	for _, form := range []string{
		quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]), html.EscapeString(value), strings.ReplaceAll(value, "'", "''"),
		url.QueryEscape(value), url.PathEscape(value), strings.ToUpper(value), strings.ToLower(value), hex.EncodeToString([]byte(value)),
	} {
		r.form(form)
	}
	// Text before the value shifts its base64 form, and mixes with the characters at its ends.
	const block, moved = 3, 2
	for before := range block {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", before) + value))
		for _, form := range []string{encoded, strings.NewReplacer("+", "-", "/", "_").Replace(encoded)} {
			r.form(form[min(len(form), moved*before):max(min(len(form), moved*before), len(form)-1)])
		}
	}
}

// plainWords reveal nothing.
var plainWords = map[string]bool{"true": true, "false": true, "null": true, "none": true}

func (r *repeated) form(form string) {
	for n := shortest; n <= min(len(form), window); n++ {
		r.starts[form[:n]] = true
	}
	if len(form) < window {
		if len(form) >= shortest && !plainWords[strings.ToLower(form)] {
			r.words[form] = true
		}
		return
	}
	for i := range len(form) - window + 1 {
		key := binary.LittleEndian.Uint64([]byte(form[i : i+window]))
		if _, has := r.windows[key]; has {
			r.windows[key] = true
		}
	}
}

var wordPattern = regexp.MustCompile("[^\\s\"'`,;:=(){}\\[\\]<>|&]+")

func (r *repeated) masked(keep *regexp.Regexp) string {
	repeats := make([]bool, len(r.text))
	mark := func(from, to int, as bool) {
		for i := from; i < to; i++ {
			repeats[i] = as
		}
	}
	for i := range len(r.text) - window + 1 {
		if r.windows[binary.LittleEndian.Uint64([]byte(r.text[i:i+window]))] {
			mark(i, i+window, true)
		}
	}
	for _, at := range wordPattern.FindAllStringIndex(r.text, -1) {
		word := r.text[at[0]:at[1]]
		if r.words[word] || r.words[strings.TrimRight(word, ".")] {
			mark(at[0], at[1], true)
		}
	}
	for at := range r.text {
		if !strings.HasPrefix(r.text[at:], "...") {
			continue
		}
		for n := shortest; n <= min(at, window); n++ {
			if r.starts[r.text[at-n:at]] {
				mark(at-n, at, true)
			}
		}
	}
	if keep != nil {
		for _, at := range keep.FindAllStringIndex(r.text, -1) {
			mark(at[0], at[1], false)
		}
	}
	var b strings.Builder
	for i := range len(r.text) {
		switch {
		case !repeats[i]:
			b.WriteByte(r.text[i])
		case i == 0 || !repeats[i-1]:
			b.WriteString("***")
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}
