// Package naming shortens names to the limits of Kubernetes, Helm and reconcilers. A shortened name ends in a hash.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashDigits tell four billion names apart; hundreds at most share their first characters.
const hashDigits = 8

// Shortest is the smallest limit: a character, a hyphen and the hash.
const Shortest = 1 + 1 + hashDigits

// Shorten returns a name of at most longest bytes, which is at least [Shortest].
func Shorten(name string, longest int) string {
	if len(name) <= longest {
		return name
	}
	return AddHash(name, name, longest)
}

// AddHash returns the beginning of a name and a hash of identity, in at most longest bytes. It replaces [Shorten] for names
// that do not identify the object.
func AddHash(name, identity string, longest int) string {
	sum := sha256.Sum256([]byte(identity))
	suffix := "-" + hex.EncodeToString(sum[:])[:hashDigits]
	beginning := strings.TrimRight(strings.ToValidUTF8(name[:min(len(name), longest-len(suffix))], ""), "-._")
	return strings.TrimLeft(beginning+suffix, "-")
}
