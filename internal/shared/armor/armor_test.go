package armor_test

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	const block = "-----BEGIN PRIVATE KEY-----\nAAAA\nBBBB\n-----END PRIVATE KEY-----\n"
	const pgp = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: made in C:\\new\n\nAAAA\n=BBBB\n-----END PGP PUBLIC KEY BLOCK-----\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                     {"", ""},
		"an ssh public key":         {" ssh-ed25519 AAAA me\\new\r\n", " ssh-ed25519 AAAA me\\new\r\n"},
		"base64":                    {"LS0tLS1CRUdJTg==", "LS0tLS1CRUdJTg=="},
		"a block":                   {block, block},
		"without a final newline":   {strings.TrimSpace(block), block},
		"literal \\n":               {strings.ReplaceAll(block, "\n", `\n`), block},
		"literal \\r\\n":            {strings.ReplaceAll(block, "\n", `\r\n`), block},
		"literal \\n and a newline": {strings.ReplaceAll(strings.TrimSpace(block), "\n", `\n`) + "\n", block},
		"CRLF":                      {strings.ReplaceAll(block, "\n", "\r\n"), block},
		"CR":                        {strings.ReplaceAll(block, "\n", "\r"), block},
		"indented":                  {"\n    " + strings.ReplaceAll(block, "\n", "\n    "), block},
		"indented by tabs":          {"\t" + strings.ReplaceAll(block, "\n", "\n\t"), block},
		"two, escaped":              {strings.ReplaceAll(block+block, "\n", `\n`), block + block},
		"two, one of them escaped":  {block + strings.ReplaceAll(block, "\n", `\n`), block + block},
		"a header with a path":      {pgp, pgp},
		"a header, indented":        {strings.ReplaceAll(pgp, "\n", "\n  "), pgp},
	} {
		if got := armor.Normalize(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add(`-----BEGIN A-----\nAAAA\n-----END A-----`, []byte("content"))
	f.Add("  -----BEGIN A-----\r\n AAAA\n\n-----END A-----", []byte{})
	f.Add(`\n\\nn-----BEGIN A----- \r\n\`, []byte(nil))
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		once := armor.Normalize(text)
		if twice := armor.Normalize(once); twice != once {
			t.Errorf("normalizing %q gives %q, then %q", text, once, twice)
		}
		if !strings.Contains(text, "-----BEGIN ") && once != text {
			t.Errorf("%q has no block, and became %q", text, once)
		}
		block := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: content}))
		for _, form := range []string{
			block, strings.TrimSpace(block), strings.ReplaceAll(block, "\n", `\n`), strings.ReplaceAll(block, "\n", "\r\n"),
			"  " + strings.ReplaceAll(block, "\n", "\n  "),
		} {
			normal := armor.Normalize(form)
			if read, rest := pem.Decode([]byte(normal)); normal != block || read == nil || len(rest) > 0 || !bytes.Equal(read.Bytes, content) {
				t.Errorf("%q became %q", form, normal)
			}
		}
	})
}
