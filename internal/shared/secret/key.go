package secret

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

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
