// Package naming shortens names to the lengths that Kubernetes, Helm and reconcilers allow. Names that differ stay
// different: a shortened name ends in a hash.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashDigits is the length of the hash in hex. Names that share their first characters number in the hundreds at most,
// and eight digits tell four billion apart.
const hashDigits = 8

// Shortest is the smallest limit of a shortened name: one character, a hyphen and the hash.
const Shortest = 1 + 1 + hashDigits

// Shorten returns a name of at most longest bytes: the name itself if it fits, else its beginning and a hash of all of it.
// longest is at least [Shortest].
func Shorten(name string, longest int) string {
	if len(name) <= longest {
		return name
	}
	return AddHash(name, name, longest)
}

// AddHash returns the beginning of a name, followed by a hash of identity, in at most longest bytes. It replaces [Shorten]
// where the name alone does not identify the object. longest is at least [Shortest].
func AddHash(name, identity string, longest int) string {
	sum := sha256.Sum256([]byte(identity))
	suffix := "-" + hex.EncodeToString(sum[:])[:hashDigits]
	beginning := strings.TrimRight(strings.ToValidUTF8(name[:min(len(name), longest-len(suffix))], ""), "-._")
	return strings.TrimLeft(beginning+suffix, "-")
}
