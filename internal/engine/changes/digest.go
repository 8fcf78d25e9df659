package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// digestMark is the first character of a digest. No JSON begins with it.
const digestMark = "#"

// Digest returns hashes of the data of config containers, and of what they have beside them, by name. They show which keys
// changed and have no value in them. They are kept until the next plan, as [Version].Config, and can be compared with the data
// itself.
func Digest(config map[string]string) map[string]string {
	digests := make(map[string]string, len(config))
	for name, text := range config {
		if digests[name] = digestOf(text); strings.HasPrefix(name, fleet.SecretsEntry("")) {
			digests[name] = secretsDigest(text)
		}
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

// encryptedFiles is in a digest what stands for all encrypted files of a container. No reference has such a key.
const encryptedFiles = "/encrypted"

// secretsDigest returns the digest of what a container has beside its data, "" for nothing, by the keys of references; of a
// digest, itself.
func secretsDigest(text string) string {
	var secrets struct {
		References map[string]json.RawMessage `json:"secrets"`
		Encrypted  json.RawMessage            `json:"encrypted"`
	}
	switch {
	case strings.HasPrefix(text, digestMark):
		return text
	case text == "":
		return digestMark + "{}"
	case text == fleet.UnknownEntry || json.Unmarshal([]byte(text), &secrets) != nil:
		return digestMark + shortHash(text)
	}
	keys := Hashes(secrets.References)
	if secrets.Encrypted != nil {
		keys[encryptedFiles] = shortHash(string(secrets.Encrypted))
	}
	encoded, _ := json.Marshal(keys) // never fails: a map of texts always has a JSON form
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
