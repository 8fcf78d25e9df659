package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Validation reports each mistake at the attribute, without showing a secret.
func TestTheProvidersGitBlockIsReadStrictly(t *testing.T) {
	t.Parallel()
	app := func(changes ...any) map[string]any {
		return with(map[string]any{"id": "1", "installation_id": "2", "private_key": "hunter2"}, changes...)
	}
	credentials := func(attributes map[string]any) map[string]any {
		return map[string]any{"credentials": []any{attributes}}
	}
	for name, c := range map[string]struct {
		git  any
		want string
	}{
		"nothing":                     {},
		"null attributes":             {git: map[string]any{"token": nil, "credentials": nil}},
		"an empty object":             {git: map[string]any{}},
		"everything unknown":          {git: providertest.Unknown{}},
		"an unknown token":            {git: map[string]any{"token": providertest.Unknown{Then: "x"}}},
		"unknown credentials":         {git: map[string]any{"credentials": providertest.Unknown{}}},
		"an unknown entry":            {git: map[string]any{"credentials": []any{providertest.Unknown{}}}},
		"an unknown url":              {git: credentials(map[string]any{"url": providertest.Unknown{Then: "https://x"}, "token": "hunter2"})},
		"entries":                     {git: map[string]any{"credentials": []any{map[string]any{"url": "https://git.example.com/platform", "token": "hunter2"}, map[string]any{"url": "ssh://git@git.example.com", "ssh_private_key": "hunter2"}, map[string]any{"url": "git@git.example.com:platform", "ssh_known_hosts": "x"}}}},
		"no object":                   {git: "hunter2", want: "Must be an object, not a string"},
		"a misspelt key":              {git: map[string]any{"tokn": "hunter2"}, want: `tokn: unknown attribute; did you mean "token"?`},
		"a key of nothing":            {git: map[string]any{"zzzzzzzz": nil}, want: `zzzzzzzz: unknown attribute.`},
		"a number":                    {git: map[string]any{"author_name": 5}, want: "author_name: must be a string, not a number"},
		"a list for a text":           {git: map[string]any{"token": []any{"hunter2"}}, want: "token: must be a string, not a list"},
		"credentials, no list":        {git: map[string]any{"credentials": map[string]any{"url": "https://x"}}, want: "credentials: must be a list of objects, not an object"},
		"an entry, no object":         {git: map[string]any{"credentials": []any{"hunter2"}}, want: "credentials[0]: must be an object, not a string"},
		"no url":                      {git: credentials(map[string]any{"token": "hunter2"}), want: "credentials[0]: url is missing"},
		"a misspelt key inside":       {git: credentials(map[string]any{"url": "https://git.example.com", "pasword": "hunter2"}), want: `credentials[0].pasword: unknown attribute; did you mean "password"?`},
		"a number inside":             {git: credentials(map[string]any{"url": "https://git.example.com", "token": 1}), want: `credentials[0].token: must be a string, not a number`},
		"a local path":                {git: credentials(map[string]any{"url": "/srv/git", "token": "hunter2"}), want: "credentials[0]: the URL is of a local repository, which needs no credentials"},
		"another scheme":              {git: credentials(map[string]any{"url": "ftp://git.example.com", "token": "hunter2"}), want: `credentials[0]: the URL's scheme "ftp" is not supported`},
		"no parsable url":             {git: credentials(map[string]any{"url": "https://git.example.com:port/x", "token": "hunter2"}), want: "credentials[0]: the URL cannot be parsed"},
		"no host":                     {git: credentials(map[string]any{"url": "https:///x", "token": "hunter2"}), want: "credentials[0]: the URL has no host"},
		"a password in the url":       {git: credentials(map[string]any{"url": "https://me:hunter2@git.example.com"}), want: "credentials[0]: the URL has credentials in it"},
		"a token for ssh":             {git: credentials(map[string]any{"url": "ssh://git.example.com", "token": "hunter2"}), want: "token is for http and https, but this url is for ssh"},
		"a key for https":             {git: credentials(map[string]any{"url": "https://git.example.com", "ssh_private_key": "hunter2"}), want: "ssh_private_key is for ssh, but this url is not"},
		"one url twice":               {git: map[string]any{"credentials": []any{map[string]any{"url": "https://x.example", "token": "a"}, map[string]any{"url": "https://x.example", "token": "b"}}}, want: `credentials: there are two for "https://x.example"`},
		"an App, no PEM text":         {git: map[string]any{"github_app": app()}, want: "github_app.private_key: must be the PEM text of the RSA private key that GitHub made for the App"},
		"an App with an unknown":      {git: map[string]any{"github_app": app("private_key", providertest.Unknown{Then: "x"})}},
		"an unknown App":              {git: map[string]any{"github_app": providertest.Unknown{}}},
		"an App of nothing":           {git: map[string]any{"github_app": map[string]any{"installation_id": "2", "private_key": providertest.Unknown{Then: "x"}}}, want: "github_app.id: is required"},
		"an App by a client ID":       {git: map[string]any{"github_app": app("id", "hunter2", "private_key", providertest.Unknown{Then: "x"})}, want: "github_app.id: must be a number, in quotes"},
		"a misspelt key of an App":    {git: map[string]any{"github_app": app("private_key", providertest.Unknown{Then: "x"}, "pem", "x")}, want: "github_app.pem: unknown attribute"},
		"an App and a token":          {git: map[string]any{"token": "hunter2", "github_app": app("private_key", providertest.Unknown{Then: "x"})}, want: "github_app: cannot be set together with token: remove one of the two"},
		"an App, no PEM text, inside": {git: credentials(map[string]any{"url": "https://github.com/owner", "github_app": app()}), want: "credentials[0].github_app.private_key: must be the PEM text"},
		"certificates":                {git: map[string]any{"ca_certificates": "hunter2"}, want: "ca_certificates: the CA"},
		"an unknown signer":           {git: map[string]any{"allowed_signers": []any{providertest.Unknown{Then: "x"}}}},
		"unknown signers":             {git: map[string]any{"allowed_signers": providertest.Unknown{}}},
		"signers, no list":            {git: map[string]any{"allowed_signers": "hunter2"}, want: "allowed_signers: must be a list of strings, not a string"},
		"a signer, no text":           {git: map[string]any{"allowed_signers": []any{5}}, want: "allowed_signers[0]: must be a string, not a number"},
		"a signer, no key":            {git: map[string]any{"allowed_signers": []any{"hunter2"}}, want: "allowed_signers[0]: the key cannot be read"},
		"signers, no key":             {git: map[string]any{"allowed_signers": []any{}}, want: "allowed_signers needs a signing_key"},
		"a signing key":               {git: map[string]any{"signing_key": "hunter2"}, want: "signing_key: the ssh key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			_, diags := w.Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"git": c.git}})
			if c.want == "" {
				if len(diags) > 0 {
					t.Errorf("got %s", diags)
				}
				return
			}
			if len(diags) != 1 || diags[0].At != `AttributeName("git")` || !strings.Contains(diags[0].Detail, c.want) {
				t.Errorf("got %s, want %q", diags, c.want)
			}
			if strings.Contains(diags.String(), "hunter2") {
				t.Errorf("the diagnostics contain the secret: %s", diags)
			}
		})
	}
}

func TestEveryMistakeInTheProvidersGitBlockIsReported(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	_, diags := w.Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"git": map[string]any{
		"tokn": "x", "author_name": true, "credentials": []any{map[string]any{"url": "x"}, map[string]any{"token": "y"}},
	}}})
	if len(diags) != 4 {
		t.Errorf("got %d diagnostics, want 4: %s", len(diags), diags)
	}
}
