package providertest_test

import (
	"reflect"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestParseModuleReadsARootModule(t *testing.T) {
	t.Parallel()
	module, err := providertest.ParseModule(`
terraform {
  required_providers {
    toy = { source = "example/toy" }
  }
}
provider "toy" {
  where = (local.where)
}
locals {
  where = "there"
  made  = provider::toy::join(["a", local.where], { by = "-" })
}
resource "terraform_data" "later" {
  input = "known in the end"
}
resource "terraform_data" "earlier" {
  input = "known by now"
}
resource "toy_toy" "one" {
  name   = local.made
  list   = [for i in range(3) : "x-${i}"]
  number = min(2, 3) * 1.5
  json   = jsonencode({ a = null })
  object = { "a b" = true, c = null, d = terraform_data.later.output, e = terraform_data.earlier.output }
  lifecycle {
    create_before_destroy = true
  }
}
data "toy_data" "all" {
  name       = "x"
  depends_on = [toy_toy.one]
}
output "made" {
  value = local.made
}
import {
  to = toy_toy.one
  id = "1"
}
removed {
  from = toy_toy.two
  lifecycle {
    destroy = false
  }
}
`, map[string]any{"terraform_data.earlier": "known by now", "terraform_data.later": "something else"})
	if err != nil {
		t.Fatal(err)
	}
	made := providertest.Call{Function: "join", Arguments: []any{[]any{"a", "there"}, map[string]any{"by": "-"}}}
	attributes := module.Resources["toy_toy.one"].Attributes
	for _, test := range []struct{ got, want any }{
		{module.Provider, map[string]any{"where": "there"}},
		{attributes["name"], made},
		{attributes["list"], []any{"x-0", "x-1", "x-2"}},
		{attributes["json"], `{"a":null}`},
		{attributes["object"], map[string]any{"a b": true, "c": nil, "d": providertest.Unknown{Then: "known in the end"}, "e": "known by now"}},
		{len(module.Resources), 1},
		{module.Resources["toy_toy.one"].CreateBeforeDestroy, true},
		{module.Data, map[string]map[string]any{"data.toy_data.all": {"name": "x"}}},
		{module.Outputs, map[string]any{"made": made}},
		{module.Later, map[string]any{"terraform_data.later": "known in the end", "terraform_data.earlier": "known by now"}},
		{module.Imports, map[string]string{"toy_toy.one": "1"}},
		{module.Removed, []string{"toy_toy.two"}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %#v, want %#v", test.got, test.want)
		}
	}
}

// ParseModule refuses HCL that it cannot simulate, because a test would otherwise check another configuration.
func TestUnsupportedHCLIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no HCL":                          "a = {",
		"another block":                   "moved {\n}\n",
		"a block within":                  "resource \"a\" \"b\" {\n  c {\n  }\n}\n",
		"too few labels":                  "resource \"a\" {\n}\n",
		"an unknown function":             "locals {}\noutput \"a\" {\n  value = upper(\"a\")\n}\n",
		"an unknown reference":            "output \"a\" {\n  value = toy_toy.one.id\n}\n",
		"a local within others":           "locals {\n  a = \"x\"\n}\noutput \"a\" {\n  value = \"${local.a}-\"\n}\n",
		"a local of itself":               "locals {\n  a = [local.a]\n}\noutput \"a\" {\n  value = local.a\n}\n",
		"a key without text":              "output \"a\" {\n  value = { (null) = 1 }\n}\n",
		"a count":                         "resource \"a\" \"b\" {\n  count = 2\n}\n",
		"a for_each":                      "resource \"a\" \"b\" {\n  for_each = {}\n}\n",
		"an attribute alone":              "a = 1\n",
		"an import without address":       "import {\n  id = \"1\"\n}\n",
		"a removed block without address": "removed {\n}\n",
		"a removed block that destroys":   "removed {\n  from = a.b\n}\n",
	} {
		if module, err := providertest.ParseModule(text, nil); err == nil {
			t.Errorf("%s: got %+v, want an error", name, module)
		}
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add("locals {\n  a = [for i in range(3) : i]\n}\nresource \"a\" \"b\" {\n  c = provider::x::y(local.a)\n}\n")
	f.Add("resource \"terraform_data\" \"a\" {\n  input = 1\n}\noutput \"b\" {\n  value = { c = terraform_data.a.output }\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if module, err := providertest.ParseModule(text, nil); (module == nil) == (err == nil) {
			t.Errorf("got the module %v and the error %v, want one of them", module, err)
		}
	})
}
