package secret

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// KeyForms returns the texts of a private key in PEM that are secret: the key as it is given and as it is read, and each of
// its lines, since an error may repeat one line alone. It finds the key with \n in place of line breaks, too.
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
