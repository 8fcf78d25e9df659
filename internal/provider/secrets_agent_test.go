package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// TestSecretsOfAgentsAppearNowhere gives agents every kind of credential. The clusters refuse them in the plan or in the apply, and repeat
// them in the refusal.
func TestSecretsOfAgentsAppearNowhere(t *testing.T) {
	requireAcceptance(t)
	_, key := kubetest.SelfSigned(t)
	secrets := map[string]string{
		"token": `agent-t0ken-01/+ü%`, "bearer": "b3arer-token-0123", "password": `p4ssword "q" & /+ü`, "ssh": key, "passphrase": "phr4se-secret-0123",
		"feedback": "f33dback-token-0123", "cluster": "cluster-t0ken-0123456", "spoke": "sp0ke-token-0123456789",
	}
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var object struct {
			Data map[string]string `json:"data"`
		}
		_ = json.Unmarshal(body, &object)
		echoed := string(body) + " " + r.Header.Get("Authorization")
		for _, name := range slices.Sorted(maps.Keys(object.Data)) {
			text, _ := base64.StdEncoding.DecodeString(object.Data[name])
			echoed = string(text) + " " + echoed
		}
		route, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		code, _ := strconv.Atoi(strings.TrimPrefix(route, "code-"))
		w.WriteHeader(code)
		_ = json.NewEncoder(w).
			Encode(map[string]any{"kind": "Status", "message": `admission webhook "x" denied the request: ` + echoed, "reason": echoed, "code": code})
	}
	agents := map[string]string{
		"token":    `credentials_wo = { token = var.secret.token, feedback = { token = var.secret.feedback } }, feedback = { forge = "gitea" }`,
		"bearer":   `credentials_wo = { bearer_token = var.secret.bearer }`,
		"password": `credentials_wo = { username = "me", password = var.secret.password }`,
		"ssh":      `credentials_wo = { ssh_private_key = var.secret.ssh, ssh_passphrase = var.secret.passphrase, ssh_known_hosts = "git.example.com ssh-ed25519 AAAA" }, gitops_repo = { url = "ssh://git@git.example.com/a/b", branch = "dev" }`,
	}
	good, refusing := &standInCluster{}, &standInCluster{refuse: echo}
	goodURL, certificate := good.start(t)
	refusingURL, refusingCertificate := refusing.start(t)
	later := &standInCluster{}
	later.refuse = func(w http.ResponseWriter, r *http.Request) { // accepts dry runs
		if r.URL.Query().Get("dryRun") != "" {
			text, _ := io.ReadAll(r.Body)
			_, _ = w.Write(text)
			return
		}
		echo(w, r)
	}
	laterURL, laterCertificate := later.start(t)
	config := func(clusters map[string]string) string {
		var text strings.Builder
		text.WriteString("variable \"secret\" {\n  type      = map(string)\n  ephemeral = true\n}\nprovider \"flotilla\" {\n  clusters = {\n")
		for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
			fmt.Fprintf(&text, "    %s = { %s, token = var.secret.cluster }\n", cluster, clusters[cluster])
		}
		text.WriteString("  }\n}\n")
		for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
			for _, name := range slices.Sorted(maps.Keys(agents)) {
				attributes := strings.ReplaceAll(agents[name], ", feedback = {", "\n  feedback = {")
				attributes = strings.ReplaceAll(attributes, "}\n  feedback = { token", "}, feedback = { token")
				attributes = strings.ReplaceAll(attributes, ", gitops_repo", "\n  gitops_repo")
				if !strings.Contains(attributes, "gitops_repo") {
					attributes += "\n  gitops_repo = { url = \"https://git.example.com/a/b\", branch = \"dev\" }"
				}
				fmt.Fprintf(
					&text,
					"resource \"flotilla_agent\" \"%s-%s\" {\n  cluster = %q\n  cluster_type = \"edge\"\n  name = %q\n  %s\n}\n",
					cluster,
					name,
					cluster,
					name,
					attributes,
				)
			}
		}
		return requiredProviders + text.String()
	}
	hostArgs := func(url, certificate, path string) string {
		return fmt.Sprintf("host = %q, cluster_ca_certificate = %q", url+"/"+path, certificate)
	}
	refusingClusters := map[string]string{}
	for _, code := range []string{"400", "401", "403", "409", "422", "500"} {
		refusingClusters["code-"+code] = hostArgs(refusingURL, refusingCertificate, "code-"+code)
	}
	encoded, err := json.Marshal(secrets)
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_VAR_secret", string(encoded))
			w := newWorkdir(t, tool, map[string]string{"main.tf": config(map[string]string{"good": hostArgs(goodURL, certificate, "good")})})
			for i, arguments := range [][]string{
				{"plan", "-input=false", "-out=plan.out"}, {"apply", "-input=false", "plan.out"}, {"plan", "-input=false", "-detailed-exitcode", "-out=after.out"}, {"show", "-json", "after.out"},
			} {
				if printed, err := w.runTraced(t, fmt.Sprint("good-", i), arguments...); err != nil {
					t.Fatalf("%s: %v\n%s", arguments[0], err, printed)
				}
			}
			writeFile(t, filepath.Join(w.path, "main.tf"), config(refusingClusters))
			printed, err := w.runTraced(t, "refused", "plan", "-input=false", "-no-color")
			if err == nil || !strings.Contains(printed, "denied the request") {
				t.Errorf("no cluster refuses: %v\n%s", err, printed)
			}
			writeFile(t, filepath.Join(w.path, "main.tf"), config(map[string]string{"later": hostArgs(laterURL, laterCertificate, "code-422")}))
			printed, err = w.runTraced(t, "later", "apply", "-input=false", "-no-color", "-auto-approve")
			if err == nil || !strings.Contains(printed, "denied the request") {
				t.Errorf("no cluster refuses: %v\n%s", err, printed)
			}
			checkNoSecrets(t, w.path, secrets)
		})
	}
}
