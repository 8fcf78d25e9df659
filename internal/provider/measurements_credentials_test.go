package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestCredentialsOfMeasurementsBelongToAnOrigin(t *testing.T) {
	t.Parallel()
	answer := func(string) string { return vectorResult(`"cluster":"drone-1"`, "1") }
	plain, other := newPrometheusStandIn(t, answer), newPrometheusStandIn(t, answer)
	block := map[string]any{
		"url":   plain.URL,
		"token": "plain-token-1",
		"credentials": []any{
			map[string]any{"url": other.URL, "username": "me", "password": "hunter2-two", "headers": map[string]any{"x-api-key": "key-three"}},
		},
	}
	webCheck := func(url string) map[string]any {
		return map[string]any{
			"name": "web " + url,
			"of":   "fleet",
			"pass": "value == 1.0",
			"web":  map[string]any{"url": url, "headers": map[string]any{"x-scope-orgid": "team"}},
		}
	}
	values, diags := readMeasurements(
		t,
		block,
		newCheck(plain.URL, nil),
		newCheck(other.URL, map[string]any{"name": "b"}),
		webCheck(plain.URL+"/x"),
		webCheck(other.URL+"/x"),
	)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	sentCredentials := func(s *prometheusStandIn) []string {
		var all []string
		for _, header := range s.headers {
			if header.Get("User-Agent") != "terraform-provider-flotilla/test" {
				t.Errorf("got User-Agent %s", header.Get("User-Agent"))
			}
			all = append(
				all,
				strings.TrimSpace(fmt.Sprintf("%s %s %s", header.Get("Authorization"), header.Get("X-Api-Key"), header.Get("X-Scope-Orgid"))),
			)
		}
		slices.Sort(all)
		return all
	}
	if got, want := sentCredentials(plain), []string{"Bearer plain-token-1", "Bearer plain-token-1  team"}; !slices.Equal(got, want) {
		t.Errorf("the server of the plain token: got %q, want %q", got, want)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:hunter2-two"))
	if got, want := sentCredentials(other), []string{basic + " key-three", basic + " key-three team"}; !slices.Equal(got, want) {
		t.Errorf("the other server: got %q, want %q", got, want)
	}
	if text := fmt.Sprint(values); strings.Contains(text, "hunter2") || strings.Contains(text, "plain-token") ||
		strings.Contains(text, "key-three") {
		t.Errorf("the values contain a secret: %s", text)
	}
}

func TestCredentialsOfMeasurementsCanComeFromTheEnvironment(t *testing.T) {
	server := newPrometheusStandIn(t, func(string) string { return vectorResult(`"cluster":"drone-1"`, "1") })
	for name, value := range map[string]string{"URL": server.URL, "TOKEN": "from-environment", "USERNAME": "env-user", "PASSWORD": "env-password"} {
		t.Setenv("FLOTILLA_MEASUREMENTS_"+name, value)
	}
	readMeasurements(t, nil, newCheck(server.URL, nil))
	readMeasurements(t, map[string]any{"password": "mine"}, newCheck(server.URL, nil))
	readMeasurements(t, map[string]any{"url": "https://other.example"}, newCheck(server.URL, nil))
	var got []string
	for _, header := range server.headers {
		got = append(got, header.Get("Authorization"))
	}
	if want := []string{"Bearer from-environment", "Basic " + base64.StdEncoding.EncodeToString([]byte("env-user:mine")), ""}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// repeatSecrets returns a handler that repeats secrets and received credentials in errors, warnings and bodies.
func repeatSecrets(secrets map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secretText := strings.Join(append(slices.Sorted(maps.Values(secrets)), r.Header.Get("Authorization"), r.Header.Get("X-Api-Key")), " ")
		quoted, _ := json.Marshal(secretText)
		w.Header().Set("Content-Type", "application/json")
		switch r.FormValue("query") {
		case "error":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":%s}`, quoted)
		case "text":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, secretText)
		case "redirect":
			http.Redirect(w, r, "https://"+url.PathEscape(secrets["token"])+".example.com/"+url.PathEscape(secretText), http.StatusFound)
		default:
			fmt.Fprintf(
				w,
				`{"status":"success","warnings":[%s],"data":{"resultType":"vector","result":[{"metric":{"cluster":%s},"value":[1,"1"]}]}}`,
				quoted,
				quoted,
			)
		}
	}
}

func TestSecretsRepeatedByAServerAreNotShown(t *testing.T) {
	t.Parallel()
	const token, password, key = "canary-token-7f3a", "canary-password-91bc", "canary-key-55de"
	repeat := httptest.NewServer(repeatSecrets(map[string]string{"token": token, "password": password, "key": key}))
	t.Cleanup(repeat.Close)
	for name, login := range map[string]map[string]any{
		"token": {"token": token, "headers": map[string]any{"x-api-key": key}}, "password": {"username": "me", "password": password, "headers": map[string]any{"x-api-key": key}},
	} {
		login["url"] = repeat.URL
		var checks []any
		for _, query := range []string{"error", "text", "redirect", "warn"} {
			for _, subject := range []string{"cluster", "fleet"} {
				checks = append(
					checks,
					newCheck(repeat.URL, map[string]any{"name": query + subject, "of": subject, "prometheus": map[string]any{"url": repeat.URL, "query": query}}),
				)
			}
		}
		checks = append(
			checks,
			map[string]any{
				"name": "web",
				"of":   "fleet",
				"pass": "true",
				"web":  map[string]any{"url": repeat.URL, "value": "double(body.warnings[0])"},
			},
		)
		values, diags := readMeasurements(t, map[string]any{"credentials": []any{login}}, checks...)
		if diags.Err() != nil || values == nil {
			t.Fatal(diags)
		}
		text := fmt.Sprint(values, diags)
		for _, secret := range []string{login["headers"].(map[string]any)["x-api-key"].(string), fmt.Sprint(login["token"]), fmt.Sprint(login["password"]), base64.StdEncoding.EncodeToString([]byte("me:" + password))} {
			if secret != "<nil>" && strings.Contains(text, secret) {
				t.Errorf("%s: the result contains %s: %s", name, secret, text)
			}
		}
	}
}
