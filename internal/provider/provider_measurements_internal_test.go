package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestWhileCredentialsAreNotKnownNothingIsMeasured(t *testing.T) {
	t.Parallel()
	token := func(value attr.Value) types.Dynamic {
		return types.DynamicValue(types.ObjectValueMust(map[string]attr.Type{"token": types.StringType}, map[string]attr.Value{"token": value}))
	}
	for name, c := range map[string]struct {
		value types.Dynamic
		asks  bool
	}{
		"nothing": {types.DynamicNull(), true}, "a token": {token(types.StringValue("x")), true},
		"an unknown token": {token(types.StringUnknown()), false}, "all": {types.DynamicUnknown(), false},
	} {
		var diagnostics diag.Diagnostics
		settings := decodeMeasurements(c.value, &diagnostics)
		client, err := settings.client("test")
		if diagnostics.HasError() || err != nil || (client != nil) != c.asks {
			t.Errorf("%s: %v, %v, %v", name, client, err, diagnostics)
		}
	}
}

func TestAPlainTokenGoesToPrometheusByHTTPSAndOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	var diagnostics diag.Diagnostics
	settings := decodeMeasurements(types.DynamicValue(types.ObjectValueMust(map[string]attr.Type{"token": types.StringType},
		map[string]attr.Value{"token": types.StringValue("x")})), &diagnostics)
	for address, want := range map[string]string{
		"https://prometheus.example.com/x": "x", "http://127.0.0.1:9090": "x", "http://localhost": "x", "http://prometheus.example.com": "",
	} {
		if got, err := settings.login(address, false); got.Token != want || err != nil {
			t.Errorf("%s gets %q: %v", address, got.Token, err)
		}
		if got, err := settings.login(address, true); got.Token != "" || err != nil {
			t.Errorf("a web server at %s gets %q: %v", address, got.Token, err)
		}
	}
}
