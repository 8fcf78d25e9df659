package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

const (
	// maxCredential bounds bytes of output.
	maxCredential = 1 << 20
	// maxCommands is the number of processes at once. Some take 100 MiB.
	maxCommands = 16
	// killGrace is the wait for output of a killed command's processes.
	killGrace = time.Second
)

// commands runs the exec commands of one query, equal ones only once. client-go's implementation cannot be interrupted
// and shows what commands write to standard error.
type commands struct {
	slots *semaphore.Weighted
	runs  wait.Answers[*clientauthentication.ExecCredentialStatus]
}

func newCommands() *commands { return &commands{slots: semaphore.NewWeighted(maxCommands)} }

func (c *commands) signIn(ctx context.Context, connection *config) (secrets []string, err error) {
	info, err := connection.execInfo()
	if err != nil {
		return nil, withAnswer(failf(ReasonConfiguration, "the description of the cluster for the exec command cannot be encoded"), err.Error())
	}
	key, err := json.Marshal([]any{connection.exec, info})
	if err != nil {
		return nil, withAnswer(failf(ReasonConfiguration, "the description of the cluster for the exec command cannot be encoded"), err.Error())
	}
	credential, err := c.runs.Get(ctx, string(key), func() (*clientauthentication.ExecCredentialStatus, error) {
		return connection.exec.run(ctx, info, connection.installHint)
	})
	if err != nil {
		return nil, err
	}
	if credential.Token != "" {
		connection.rest.BearerToken = credential.Token
	}
	if credential.ClientCertificateData != "" {
		connection.rest.CertData, connection.rest.KeyData = normalPEM(credential.ClientCertificateData), normalPEM(credential.ClientKeyData)
		connection.rest.CertFile, connection.rest.KeyFile = "", ""
	}
	return append(secret.KeyForms(credential.ClientKeyData), credential.Token, credential.ClientCertificateData), nil
}

// execInfo returns the value of KUBERNETES_EXEC_INFO.
func (c *config) execInfo() (string, error) {
	spec := clientauthentication.ExecCredentialSpec{}
	if c.provideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(c.rest)
		if err != nil {
			return "", err
		}
		spec.Cluster = &clientauthentication.Cluster{
			Server: cluster.Server, TLSServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
			CertificateAuthorityData: cluster.CertificateAuthorityData, ProxyURL: cluster.ProxyURL,
			DisableCompression: cluster.DisableCompression,
		}
		if unknown, ok := cluster.Config.(*runtime.Unknown); ok {
			spec.Cluster.Config = runtime.RawExtension{Raw: unknown.Raw}
		}
	}
	info, err := json.Marshal(clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: c.exec.APIVersion, Kind: "ExecCredential"}, Spec: spec,
	})
	return string(info), err
}

// run runs the command and parses its output. Errors have its standard error, but not its output, which may be a
// credential.
func (e *Exec) run(ctx context.Context, info, installHint string) (*clientauthentication.ExecCredentialStatus, error) {
	path, err := exec.LookPath(e.Command)
	if err != nil {
		return nil, e.missing(err, installHint)
	}
	command := exec.CommandContext(ctx, path, e.Args...)
	command.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		command.Env = append(command.Env, name+"="+e.Env[name])
	}
	command.Env = append(command.Env, "KUBERNETES_EXEC_INFO="+info)
	printed, complained := &limited{}, &lastLines{}
	command.Stdout, command.Stderr = printed, complained
	command.WaitDelay = killGrace
	killWhole(command)
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, failf(ReasonTimeout, "the exec command %q was stopped: it did not end in time", e.Command)
	case errors.As(err, &exit):
		if said := complained.String(); said != "" {
			return nil, withAnswer(failf(ReasonCommand, "the exec command %q fails (%s)", e.Command, exit.ProcessState), said)
		}
		return nil, failf(ReasonCommand, "the exec command %q fails (%s), and says nothing; run it by hand", e.Command, exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, withAnswer(failf(ReasonCommand, "the exec command %q cannot be run", e.Command), err.Error())
	case printed.over:
		return nil, failf(ReasonCommand, "the exec command %q prints more than a credential", e.Command)
	}
	return e.read(printed.Bytes())
}

func (e *Exec) missing(err error, installHint string) error {
	if installHint != "" {
		return withAnswer(failf(ReasonCommand, "the exec command %q is not installed", e.Command), installHint)
	}
	if errors.Is(err, fs.ErrPermission) {
		return failf(ReasonCommand, "the exec command %q may not be executed; check its permissions", e.Command)
	}
	return failf(ReasonCommand, "the exec command %q is not installed where Terraform runs", e.Command)
}

func (e *Exec) read(printed []byte) (*clientauthentication.ExecCredentialStatus, error) {
	var credential clientauthentication.ExecCredential
	if err := json.Unmarshal(printed, &credential); err != nil || credential.Kind != "ExecCredential" {
		return nil, failf(ReasonCommand, "the exec command %q prints no ExecCredential", e.Command)
	}
	status := credential.Status
	switch {
	case credential.APIVersion != e.APIVersion:
		return nil, failf(ReasonCommand, "the exec command %q prints an ExecCredential of another version than %q", e.Command, e.APIVersion)
	case status == nil || status.Token == "" && status.ClientCertificateData == "" && status.ClientKeyData == "":
		return nil, failf(ReasonCommand, "the exec command %q prints an ExecCredential without a credential", e.Command)
	case (status.ClientCertificateData == "") != (status.ClientKeyData == ""):
		return nil, failf(ReasonCommand, "the exec command %q prints a certificate without its key, or a key without its certificate", e.Command)
	case strings.ContainsAny(status.Token, "\r\n"):
		return nil, failf(ReasonCommand, "the exec command %q prints a token with a line break in it", e.Command)
	}
	return status, nil
}

type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(text []byte) (int, error) {
	if l.Len()+len(text) > maxCredential {
		l.over = true
		return 0, fmt.Errorf("more than %d bytes", maxCredential)
	}
	return l.Buffer.Write(text)
}

// maxComplaint bounds standard error in bytes.
const maxComplaint = 2 << 10

// lastLines keeps the last whole lines, because scrubbers would miss a part of a secret.
type lastLines struct {
	text  []byte
	isCut bool
}

func (l *lastLines) Write(text []byte) (int, error) {
	l.text = append(l.text, text...)
	if over := len(l.text) - maxComplaint; over > 0 {
		l.text, l.isCut = append([]byte(nil), l.text[over:]...), true
	}
	return len(text), nil
}

func (l *lastLines) String() string {
	text := l.text
	if l.isCut {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
