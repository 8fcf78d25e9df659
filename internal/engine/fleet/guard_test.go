package fleet_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// decodeGuarded decodes a fleet with one config container.
func decodeGuarded(t *testing.T, attributes string) (*fleet.Decoded, fleet.Findings) {
	t.Helper()
	return fleet.Decode(input(t, `{"environment": "dev", "config_containers": [{"name": "db", `+attributes+`}]}`))
}

const guardAdvice = `), and plain values are committed as they are: give a reference to it in secrets of a config container, or an encrypted file; if it is none, add allow_plain = `

func TestCredentialsAreReportedByNameWithoutTheirValue(t *testing.T) {
	const prefix = `config_containers["db"].data.`
	_, findings := decodeGuarded(t, `"data": {
		"DB_PASSWORD": "canary-1", "HOST": "db.example.com", "PORT": 5432, "database": {"password": "canary-2", "users": [{"name": "a", "token": "canary-3"}]},
		"app.yaml": "db:\n  host: x\n  password: canary-4\n", "URL": "postgres://shop:canary-5@db/shop", "LATER": "(known after apply)", "TLS_PASSWORD": "(known after apply)"
	}`)
	wantFindings(t, findings,
		prefix+`DB_PASSWORD: looks like a credential (rule password`+guardAdvice+`["DB_PASSWORD"]`,
		prefix+`URL: looks like a credential (rule password-in-url`+guardAdvice+`["URL"]`,
		prefix+`app.yaml: looks like a credential in line 3 (rule password`+guardAdvice+`["app.yaml"]`,
		prefix+`database.password: looks like a credential (rule password`+guardAdvice+`["database.password"]`,
		prefix+`database.users[a].token: looks like a credential (rule password`+guardAdvice+`["database.users[a].token"]`,
	)
	if strings.Contains(findings.Error(), "canary") {
		t.Errorf("a finding contains a value: %s", findings.Error())
	}
}

func TestAllowPlainAcceptsTheNamesInTheError(t *testing.T) {
	data := `"data": {"DB_PASSWORD": "x1", "database": {"users": [{"token": "x1"}]}, "app.yaml": "db:\n  password: x1\n"}`
	decoded, findings := decodeGuarded(t, data+`, "allow_plain": ["DB_PASSWORD", "database.users[0].token", "app.yaml", "not_there"]`)
	wantFindings(t, findings)
	plain, _ := decodeGuarded(t, strings.ReplaceAll(data, "x1", ""))
	if got, want := len(decoded.Fleet.ConfigContainers), len(plain.Fleet.ConfigContainers); got != want || decoded.Config["db"] == "" {
		t.Errorf("%d containers, want %d; config %q", got, want, decoded.Config["db"])
	}
	_, findings = decodeGuarded(t, data+`, "allow_plain": ["DB_PASSWORD", "database", "token", "app.yaml"]`)
	wantFindings(
		t,
		findings,
		`config_containers["db"].data.database.users[0].token: looks like a credential (rule password`+guardAdvice+`["database.users[0].token"]`,
	)
	for _, unknown := range []string{`"(known after apply)"`, `["DB_PASSWORD", "(known after apply)"]`} {
		decoded, findings = decodeGuarded(t, data+`, "allow_plain": `+unknown)
		wantFindings(t, findings)
		if !decoded.Known || decoded.Config["db"] == "" {
			t.Errorf("allow_plain = %s makes the fleet unknown", unknown)
		}
	}
	_, findings = decodeGuarded(t, `"data": {}, "allow_plain": "DB_PASSWORD"`)
	wantFindings(t, findings, `config_containers["db"].allow_plain: must be a list of strings, not a string`)
}

func TestConfigMapsOfAControlPlaneAreGuarded(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, labels: {platform-config: 'true'}}\ndata: {A: '1', DB_PASSWORD: canary-1, db: '{password: canary-2}'}\n"
	_, findings := fleet.DecodeControlPlane("dev", []any{text})
	const prefix, advice = `documents[0] document 1 (line 1, ConfigMap "values").data.`, `), and plain values are committed as they are: give a reference to it in secrets of a config container, or an encrypted file; if it is none, `
	wantFindings(t, findings,
		prefix+`DB_PASSWORD: looks like a credential (rule password`+advice+`add "DB_PASSWORD" to its annotation flotilla.dev/allow-plain`,
		prefix+`db: looks like a credential (rule password`+advice+`add "db" to its annotation flotilla.dev/allow-plain`,
	)
	_, findings = fleet.DecodeControlPlane(
		"dev",
		[]any{strings.Replace(text, "{name: values,", "{name: values, annotations: {flotilla.dev/allow-plain: 'db, DB_PASSWORD'},", 1)},
	)
	wantFindings(t, findings)
}
