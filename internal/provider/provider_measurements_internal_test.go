package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestUnknownCredentialsPreventMeasurements(t *testing.T) {
	t.Parallel()
	token := func(value attr.Value) types.Dynamic {
		return types.DynamicValue(types.ObjectValueMust(
			map[string]attr.Type{"url": types.StringType, "token": types.StringType},
			map[string]attr.Value{"url": types.StringValue("https://prometheus.example.com"), "token": value},
		))
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

func TestATokenOfMeasurementsBelongsToItsURL(t *testing.T) {
	t.Parallel()
	var diagnostics diag.Diagnostics
	settings := decodeMeasurements(types.DynamicValue(types.ObjectValueMust(
		map[string]attr.Type{"url": types.StringType, "token": types.StringType},
		map[string]attr.Value{"url": types.StringValue("https://prometheus.example.com/a"), "token": types.StringValue("x")},
	)), &diagnostics)
	for address, want := range map[string]string{
		"https://prometheus.example.com/a": "x", "https://prometheus.example.com/a/b?c=d": "x", "https://prometheus.example.com/ab": "",
		"http://prometheus.example.com/a": "", "https://prometheus.example.com:8443/a": "", "https://prometheus.example.com.evil.example/a": "",
		"https://evil.example/https://prometheus.example.com/a": "",
	} {
		if got, err := settings.login(address); got.Token != want || err != nil && want != "" {
			t.Errorf("%s gets %q: %v", address, got.Token, err)
		}
	}
}
