package provider

import (
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// loginReader reads a provider attribute with credentials, strictly.
type loginReader struct {
	*fleet.ObjectReader
	reader *fleet.Reader
}

func readLogin(table *fleet.Table, value types.Dynamic) loginReader {
	reader := &fleet.Reader{}
	if given := tfvalue.Plain(value); given != nil {
		if object := reader.Object(table, nil, given); object != nil {
			return loginReader{object, reader}
		}
	}
	return loginReader{reader.Object(table, nil, map[string]any{}), reader}
}

// textOr returns the text of a key, or of an environment variable if the key is absent.
func (r loginReader) textOr(key, variable string) string {
	if !r.Has(key) {
		return os.Getenv(variable)
	}
	return r.Text(key)
}

// login reads token, username and password. A token in the environment must not override a configured password.
func (r loginReader) login(prefix string) git.Login {
	login := git.Login{Username: r.textOr("username", prefix+"USERNAME"), Password: r.textOr("password", prefix+"PASSWORD")}
	if r.Has("password") {
		login.Token = r.Text("token")
	} else {
		login.Token = r.textOr("token", prefix+"TOKEN")
	}
	return login
}

// finish reports the mistakes of the attribute, and whether it is known.
func (r loginReader) finish(attribute string, diagnostics *diag.Diagnostics) bool {
	r.Finish()
	for _, finding := range r.reader.Findings {
		reportInvalid(diagnostics, attribute, finding.String())
	}
	return !r.reader.Unknown
}

func reportInvalid(diagnostics *diag.Diagnostics, attribute, message string) {
	diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, tfvalue.Sentence(message))
}
