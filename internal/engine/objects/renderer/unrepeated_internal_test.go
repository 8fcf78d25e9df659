package renderer

import (
	"errors"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

func TestErrorsShowNamesOfChartsButNoSecrets(t *testing.T) {
	t.Parallel()
	files := &tree{files: map[string][]byte{
		"Chart.yaml": []byte("name: storefront\ndependencies: [{name: storefront-api, repository: \"file://../storefront-api\"}]\n"),
		"templates/secret.yaml": []byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ include \"storefront-api.fullname\" . }}\n" +
			"data:\n  name: {{ include \"storefront.fullname\" . }}\n"),
	}, names: []string{"Chart.yaml", "templates/secret.yaml"}}
	request := &objects.Request{Helm: &objects.Helm{Values: map[string]any{"a": "storefront-s3cret-value", "b": "storefront"}}}
	for text, want := range map[string]string{
		`chart "storefront" depends on storefront-api at file://../storefront-api`:    `chart "storefront" depends on storefront-api at file://../storefront-api`,
		`chart "storefront" depends on version "2" of storefront-api, and it has "1"`: `chart "storefront" depends on version "2" of storefront-api, and it has "1"`,
		`no storefront-s3cret-value`:                 `no ***`,
		`depends on storefront-s3cret-value`:         `depends on ***`,
		`the value storefront is not a valid option`: `the value *** is not a valid option`,
	} {
		if got := withoutValues(errors.New(text), request, files).Error(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
