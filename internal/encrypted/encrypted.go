// Package encrypted reads files that somebody else has encrypted: SOPS documents and SealedSecrets, each of which becomes a
// Secret on a cluster. It checks that nothing in them is plain, and decrypts nothing. It is pure.
package encrypted

// Method is how a file is encrypted.
type Method string

// The methods.
const (
	SOPS         Method = "sops"
	SealedSecret Method = "sealed-secret"
)

// File is an encrypted file: one YAML document.
type File struct {
	Method          Method
	Name, Namespace string // of the Secret; Namespace is "" where the file does not say it
	Text            string // as it was given
}
