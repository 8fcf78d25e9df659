package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// digestMark begins a digest. JSON never begins with it.
const digestMark = "#"

// Digest returns hashes of the data of config containers and their secrets, by name. They reveal changed keys but no
// values, and are kept until the next plan as [Version].Config.
func Digest(config map[string]string) map[string]string {
	digests := make(map[string]string, len(config))
	for name, text := range config {
		if digests[name] = digestOf(text); strings.HasPrefix(name, fleet.SecretsEntry("")) {
			digests[name] = secretsDigest(text)
		}
	}
	return digests
}

func digestOf(text string) string {
	if strings.HasPrefix(text, digestMark) {
		return text
	}
	keys, ok := dataKeys(text)
	if !ok {
		return digestMark + shortHash(text)
	}
	encoded, _ := json.Marshal(Hashes(keys)) // a map of strings always has JSON
	return digestMark + string(encoded)
}

// encryptedFiles is the key for all encrypted files in a digest. References cannot have it.
const encryptedFiles = "/encrypted"

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
	encoded, _ := json.Marshal(keys) // a map of strings always has JSON
	return digestMark + string(encoded)
}

// Hashes returns a hash of each text.
func Hashes[T ~string | ~[]byte](texts map[string]T) map[string]string {
	hashes := make(map[string]string, len(texts))
	for name, text := range texts {
		hashes[name] = shortHash(string(text))
	}
	return hashes
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
