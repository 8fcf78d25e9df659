package connection

import (
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A cluster with unknown arguments waits and does not affect other clusters.
func TestUnknownClustersWait(t *testing.T) {
	t.Parallel()
	object := func(attributes map[string]attr.Value) attr.Value {
		kinds := map[string]attr.Type{}
		for name, value := range attributes {
			kinds[name] = value.Type(t.Context())
		}
		return types.ObjectValueMust(kinds, attributes)
	}
	host := types.StringValue("https://api.example.com")
	command := func(argument attr.Value) attr.Value {
		return object(map[string]attr.Value{
			"api_version": types.StringValue("client.authentication.k8s.io/v1"), "command": types.StringValue("aws"),
			"args": types.ListValueMust(types.StringType, []attr.Value{types.StringValue("eks"), argument}),
			"env":  types.MapValueMust(types.StringType, map[string]attr.Value{"A": types.StringValue("b"), "C": types.StringNull()}),
		})
	}
	var diagnostics diag.Diagnostics
	settings := DecodeClusters(types.DynamicValue(object(map[string]attr.Value{
		"known":            object(map[string]attr.Value{"host": host, "token": types.StringValue("t"), "proxy_url": types.StringNull()}),
		"command":          object(map[string]attr.Value{"host": host, "exec": command(types.StringValue("get-token"))}),
		"null":             types.ObjectNull(map[string]attr.Type{"host": types.StringType}),
		"unknown":          types.ObjectUnknown(map[string]attr.Type{"host": types.StringType}),
		"unknown-dynamic":  types.DynamicUnknown(),
		"unknown-host":     object(map[string]attr.Value{"host": types.StringUnknown()}),
		"unknown-argument": object(map[string]attr.Value{"host": host, "exec": command(types.StringUnknown())}),
	})), &diagnostics)
	if diagnostics.HasError() {
		t.Fatal(diagnostics)
	}
	if got := slices.Sorted(maps.Keys(settings.Known)); !slices.Equal(got, []string{"command", "known"}) || settings.Unknown {
		t.Errorf("got known clusters %q, unknown %t", got, settings.Unknown)
	}
	if got := slices.Sorted(maps.Keys(settings.Waiting)); !slices.Equal(
		got,
		[]string{"unknown", "unknown-argument", "unknown-dynamic", "unknown-host"},
	) {
		t.Errorf("got waiting clusters %q", got)
	}
	if known := settings.Known["known"]; known.Host != "https://api.example.com" || known.Token != "t" || known.Exec != nil {
		t.Errorf("cluster \"known\" has %q %q %v", known.Host, known.Token, known.Exec)
	}
	if exec := settings.Known["command"].Exec; exec == nil || !slices.Equal(exec.Args, []string{"eks", "get-token"}) ||
		!maps.Equal(exec.Env, map[string]string{"A": "b"}) {
		t.Errorf("cluster \"command\" has exec %v", exec)
	}
	if all := DecodeClusters(types.DynamicUnknown(), &diagnostics); !all.Unknown || len(all.Known)+len(all.Waiting) > 0 ||
		diagnostics.HasError() {
		t.Errorf("an unknown value is decoded as %v: %v", all, diagnostics)
	}
}
