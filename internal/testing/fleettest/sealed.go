package fleettest

import (
	"encoding/base64"
	"fmt"
)

// Sealed returns a SealedSecret in JSON without real content.
func Sealed(name, namespace string) string {
	sealed := make([]byte, 2+256+16)
	sealed[0] = 1
	return fmt.Sprintf(
		`{"apiVersion":"bitnami.com/v1alpha1","kind":"SealedSecret","metadata":{"name":%q,"namespace":%q},"spec":{"encryptedData":{"PASSWORD":%q}}}`,
		name,
		namespace,
		base64.StdEncoding.EncodeToString(sealed),
	)
}
