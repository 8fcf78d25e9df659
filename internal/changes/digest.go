package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// digestMark is the first character of a digest. No JSON begins with it.
const digestMark = "#"

// Digest returns hashes of the data of config containers, by name. They show which keys changed and have no
// value in them. They are kept until the next plan, as [Version].Config, and can be compared with the data
// itself.
func Digest(config map[string]string) map[string]string {
	digests := make(map[string]string, len(config))
	for name, text := range config {
		digests[name] = digestOf(text)
	}
	return digests
}

// digestOf returns the digest of a container's data; of a digest, itself.
func digestOf(text string) string {
	if strings.HasPrefix(text, digestMark) {
		return text
	}
	keys, ok := dataKeys(text)
	if !ok {
		return digestMark + shortHash(text)
	}
	encoded, _ := json.Marshal(Hashes(keys)) // never fails: a map of texts always has a JSON form
	return digestMark + string(encoded)
}

// Hashes returns a hash for each text, to find out whether one has changed.
func Hashes[T ~string | ~[]byte](texts map[string]T) map[string]string {
	hashes := make(map[string]string, len(texts))
	for name, text := range texts {
		hashes[name] = shortHash(string(text))
	}
	return hashes
}

// shortHash is a hash of 12 characters, to find out whether a text has changed.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
