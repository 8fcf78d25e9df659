package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestEnvironmentVariablesReplaceAttributesThatAreNotSet(t *testing.T) {
	t.Setenv("FLOTILLA_GIT_TOKEN", "from the environment")
	t.Setenv("FLOTILLA_GIT_USERNAME", "somebody")
	object := func(attributes map[string]attr.Value) types.Dynamic {
		kinds := map[string]attr.Type{}
		for name := range attributes {
			kinds[name] = types.StringType
		}
		return types.DynamicValue(types.ObjectValueMust(kinds, attributes))
	}
	for name, c := range map[string]struct {
		value    types.Dynamic
		token    string
		complete bool
	}{
		"nothing":  {types.DynamicNull(), "from the environment", true},
		"null":     {object(map[string]attr.Value{"token": types.StringNull()}), "from the environment", true},
		"a token":  {object(map[string]attr.Value{"token": types.StringValue("given")}), "given", true},
		"an empty": {object(map[string]attr.Value{"token": types.StringValue("")}), "", true},
		"unknown":  {object(map[string]attr.Value{"token": types.StringUnknown()}), "", false},
		"all":      {types.DynamicUnknown(), "from the environment", false},
		// The configuration has precedence over the environment.
		"a password":      {object(map[string]attr.Value{"password": types.StringValue("given")}), "", true},
		"an unknown one":  {object(map[string]attr.Value{"password": types.StringUnknown()}), "", false},
		"a null password": {object(map[string]attr.Value{"password": types.StringNull()}), "from the environment", true},
		"both of them":    {object(map[string]attr.Value{"password": types.StringValue("given"), "token": types.StringValue("token")}), "token", true},
	} {
		var diagnostics diag.Diagnostics
		settings := decodeGit(c.value, &diagnostics)
		if diagnostics.HasError() || settings.credentials.Token != c.token || settings.complete != c.complete ||
			settings.credentials.Username != "somebody" {
			t.Errorf("%s: the token is %q, complete %t: %v", name, settings.credentials.Token, settings.complete, diagnostics)
		}
	}
}
