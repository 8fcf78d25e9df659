package secret

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

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
