package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

const execVersion = "client.authentication.k8s.io/v1"

// script is an exec command that a shell runs.
func script(t *testing.T, text string) *kube.Exec {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("commands of this test are shell scripts")
	}
	return &kube.Exec{APIVersion: execVersion, Command: "sh", Args: []string{"-c", text, "canary-argument-51c7"},
		Env: map[string]string{"FLOTILLA_CANARY": "canary-env-77ab", "B": "c"}}
}

// credential is what a command prints.
func credential(status string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"ExecCredential","status":%s}`, execVersion, status)
}

func TestACommandSignsIn(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		answerList(w, "Kustomization", "v1", "", "a")
	})
	cluster := trusted(server)
	cluster.Token = ""
	cluster.Exec = script(
		t,
		`printf '%s' '`+credential(
			`{"token":"TOKEN","expirationTimestamp":"2030-01-01T00:00:00Z"}`,
		)+`' | sed "s/TOKEN/$FLOTILLA_CANARY-$(echo "$KUBERNETES_EXEC_INFO" | tr -cd '[:alnum:]')/"`,
	)
	if found, err := askOne(t, cluster, time.Minute); err != nil || len(found) != 1 {
		t.Fatalf("found is %q: %v", found, err)
	}
	if got := <-asked; got != "Bearer canary-env-77ab-kindExecCredentialapiVersionclientauthenticationk8siov1specinteractivefalse" {
		t.Errorf("asked with %q", got)
	}
}

// A kubeconfig's command may be told about its cluster.
func TestACommandOfAKubeconfigKnowsItsCluster(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		answerList(w, "Kustomization", "v1", "", "a")
	})
	file := filepath.Join(t.TempDir(), "info.json")
	run := script(t, `echo "$KUBERNETES_EXEC_INFO" > `+file+`; echo '`+credential(`{"token":"abc"}`)+`'`)
	user, err := json.Marshal(map[string]any{"exec": map[string]any{
		"apiVersion": execVersion, "command": run.Command, "args": run.Args, "provideClusterInfo": true, "interactiveMode": "Never",
	}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := json.Marshal(map[string]any{
		"server": server.URL, "certificate-authority-data": []byte(certificateOf(server)),
		"extensions": []any{map[string]any{"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"audience": "a-1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := askOne(t, kube.Cluster{Kubeconfig: aKubeconfig(string(at), string(user))}, time.Minute); err != nil || len(found) != 1 {
		t.Fatalf("found is %q: %v", found, err)
	}
	if got := <-asked; got != "Bearer abc" {
		t.Errorf("asked with %q", got)
	}
	info, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(info), `"server":"`+server.URL+`"`) || !strings.Contains(string(info),
		`"config":{"audience":"a-1"}`) {
		t.Errorf("the command was told %s: %v", info, err)
	}
}

// What is wrong with a command is a reason, and nothing of what it was given or has printed is in it.
func TestWhatIsWrongWithACommandIsAReason(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	certificate, _ := kubetest.SelfSigned(t)
	inJSON, err := json.Marshal(certificate)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script string
		reason kube.Reason
		want   string
	}{
		"fails": {`echo "canary-printed-9d"; echo "Unable to locate credentials: $FLOTILLA_CANARY" >&2; exit 3`, kube.ReasonCommand,
			`the exec command "sh" fails (exit status 3): Unable to locate credentials: `},
		"fails without a word": {`exit 3`, kube.ReasonCommand, `the exec command "sh" fails (exit status 3), and says nothing; run it by hand`},
		"says a lot": {`i=0; while [ $i -lt 500 ]; do echo "canary $FLOTILLA_CANARY" | tr -d '\n' >&2; i=$((i+1)); done; echo >&2; echo "token expired" >&2; exit 1`, kube.ReasonCommand,
			`the exec command "sh" fails (exit status 1): token expired`},
		"prints nothing": {`true`, kube.ReasonCommand, `the exec command "sh" prints no ExecCredential`},
		"prints garbage": {`echo canary-printed-9d`, kube.ReasonCommand, `the exec command "sh" prints no ExecCredential`},
		"prints another kind": {`echo '{"kind":"Secret","status":{"token":"canary-printed-9d"}}'`, kube.ReasonCommand,
			`the exec command "sh" prints no ExecCredential`},
		"another version": {`echo '{"kind":"ExecCredential","apiVersion":"v2","status":{"token":"canary-printed-9d"}}'`,
			kube.ReasonCommand, `the exec command "sh" prints an ExecCredential of another version than "client.authentication.k8s.io/v1"`},
		"no status": {`echo '` + credential("null") + `'`, kube.ReasonCommand,
			`the exec command "sh" prints an ExecCredential without a credential`},
		"no key": {`echo '` + credential(`{"clientCertificateData":"canary-printed-9d"}`) + `'`, kube.ReasonCommand,
			`the exec command "sh" prints a certificate without its key, or a key without its certificate`},
		"a line break": {`printf '%s' '` + credential(`{"token":"canary-printed-9d\nx"}`) + `'`, kube.ReasonCommand,
			`the exec command "sh" prints a token with a line break in it`},
		"a key that is none": {`printf '%s' '` + credential(`{"clientCertificateData":`+string(inJSON)+`,"clientKeyData":"canary-printed-9d"}`) + `'`, kube.ReasonConfiguration, `its certificates cannot be used: `},
		"too much":           {`head -c 3000000 /dev/zero`, kube.ReasonCommand, `the exec command "sh" `},
		"hangs":              {`sleep 1000 & sleep 1000`, kube.ReasonTimeout, `the exec command "sh" was stopped: it did not end in time`},
		"leaves one behind": {`sleep 60 & echo '` + credential("null") + `'`, kube.ReasonCommand,
			`the exec command "sh" prints an ExecCredential without a credential`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := trusted(server)
			cluster.Exec = script(t, c.script)
			deadline := time.Minute
			if name == "hangs" {
				deadline = time.Second
			}
			_, err := askOne(t, cluster, deadline)
			if err == nil || kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("the error is %v, reason %q; want %q: %q", err, kube.ReasonOf(err), c.reason, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error has a secret in it: %v", err)
			}
		})
	}
}

func TestACommandThatIsMissingIsAReason(t *testing.T) {
	t.Parallel()
	cluster := kube.Cluster{Host: "https://api.example.com", Exec: &kube.Exec{APIVersion: execVersion, Command: "flotilla-no-such-command"}}
	_, err := askOne(t, cluster, time.Minute)
	if kube.ReasonOf(err) != kube.ReasonCommand ||
		err.Error() != `the exec command "flotilla-no-such-command" is not installed where Terraform runs` {
		t.Errorf("the error is %v", err)
	}
	user := `{exec: {apiVersion: client.authentication.k8s.io/v1, command: flotilla-no-such-command, installHint: "see https://example.com\nfor how"}}`
	_, err = askOne(t, kube.Cluster{Kubeconfig: aKubeconfig(`{server: "https://api.example.com"}`, user)}, time.Minute)
	if kube.ReasonOf(err) != kube.ReasonCommand ||
		err.Error() != `the exec command "flotilla-no-such-command" is not installed: see https://example.com for how` {
		t.Errorf("the error is %v", err)
	}
}

// Clusters with equal commands share one run.
func TestEqualCommandsAreRunOnce(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "", "a") })
	file := filepath.Join(t.TempDir(), "runs")
	shared := script(t, `echo run >> `+file+`; echo '`+credential(`{"token":"abc"}`)+`'`)
	clusters := map[string]kube.Cluster{}
	for i := range 40 {
		cluster := trusted(server)
		cluster.Exec = shared
		clusters[fmt.Sprint(i)] = cluster
	}
	for name, answer := range kube.QueryAll(t.Context(), clusters, kube.QueryOptions{}, names) {
		if answer.Err != nil || !slices.Equal(answer.Value, []string{"a"}) {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if runs, err := os.ReadFile(file); err != nil || string(runs) != "run\n" {
		t.Errorf("runs are %q: %v", runs, err)
	}
}

func TestTheEndOfTheQuestionEndsCommands(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "runs")
	cluster := kube.Cluster{Host: "https://api.example.com", Exec: script(t, `echo run > `+file+`; sleep 1000`)}
	go func() {
		for {
			if _, err := os.Stat(file); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	answer := kube.QueryAll(ctx, map[string]kube.Cluster{"a": cluster}, kube.QueryOptions{Deadline: time.Minute}, names)["a"]
	if kube.ReasonOf(answer.Err) != kube.ReasonCanceled {
		t.Errorf("the answer is %v", answer)
	}
}
