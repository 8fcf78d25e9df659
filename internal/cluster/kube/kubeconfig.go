package kube

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// maxKubeconfig is more than a thousand clusters in bytes.
const maxKubeconfig = 8 << 20

var linePattern = regexp.MustCompile(`line (\d+)`)

type kubeconfig struct {
	config  *api.Config
	context string
	cluster *api.Cluster
	user    *api.AuthInfo
}

func checkKubeconfig(found *problems, text, context string, unknownContext bool) {
	config := parseKubeconfig(found, text)
	if config == nil || unknownContext {
		return
	}
	read := selectContext(found, config, context)
	if read == nil {
		return
	}
	var inside problems
	if read.cluster.Server == "" {
		inside.add("server", "is missing")
	}
	checkServer(&inside, "server", read.cluster.Server)
	checkProxy(&inside, "proxy-url", read.cluster.ProxyURL)
	checkCA(&inside, "certificate-authority-data", string(read.cluster.CertificateAuthorityData))
	read.checkFiles(&inside)
	read.checkUser(&inside)
	for _, problem := range inside {
		found.add("kubeconfig", "is wrong in its context %q: %s %s", read.context, problem.Path, problem.Message)
	}
}

// Unverified reports whether the kubeconfig accepts any certificate.
func (c Cluster) Unverified() bool {
	if !strings.Contains(c.Kubeconfig, "insecure-skip-tls-verify") {
		return false
	}
	read := readKubeconfig(c)
	return read != nil && read.cluster != nil && read.cluster.InsecureSkipTLSVerify
}

// parseKubeconfig returns nil after a problem.
func parseKubeconfig(found *problems, text string) *api.Config {
	trimmed := strings.TrimSpace(text)
	switch {
	case len(text) > maxKubeconfig:
		found.add("kubeconfig", "is larger than 8 MiB")
		return nil
	case !strings.Contains(trimmed, "\n") && !strings.HasPrefix(trimmed, "{"):
		found.add("kubeconfig", "must be the text of a kubeconfig, but is a single line; use file() to read the file at a path")
		return nil
	case hasAliases(text):
		found.add("kubeconfig", "has YAML aliases in it; replace them by their values")
		return nil
	}
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		// The parser's error may quote the text, which is secret.
		at := ""
		if line := linePattern.FindString(err.Error()); line != "" {
			at = " (" + line + ")"
		}
		found.add("kubeconfig", "cannot be read: it is no YAML or JSON of the kind Config%s", at)
		return nil
	}
	return config
}

// hasAliases reports whether a YAML text has aliases, which expand kilobytes to gigabytes.
func hasAliases(text string) bool {
	if !strings.Contains(text, "&") || !strings.Contains(text, "*") {
		return false
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return false // the next parser reports the error
	}
	pending := []*yaml.Node{&document}
	for len(pending) > 0 {
		node := pending[len(pending)-1]
		if node.Kind == yaml.AliasNode {
			return true
		}
		pending = append(pending[:len(pending)-1], node.Content...)
	}
	return false
}

// selectContext returns a context by name, or the current one for "".
func selectContext(found *problems, config *api.Config, name string) *kubeconfig {
	names, current := slices.Sorted(maps.Keys(config.Contexts)), name == ""
	if current {
		name = config.CurrentContext
	}
	context := config.Contexts[name]
	switch {
	case len(names) == 0:
		found.add("kubeconfig", "has no contexts; it must be the text of a kubeconfig")
	case name == "":
		found.add("kubeconfig", "has no current-context; set context to one of its contexts: %s", wording.List(names, wording.Named))
	case context == nil && current:
		found.add("kubeconfig", "has the current-context %q, and no such context%s", name, wording.DidYouMean(name, names))
	case context == nil:
		found.add("context", "is %q, which the kubeconfig does not have%s", name, wording.DidYouMean(name, names))
	}
	if context == nil {
		return nil
	}
	read := &kubeconfig{config: config, context: name, cluster: config.Clusters[context.Cluster], user: config.AuthInfos[context.AuthInfo]}
	if read.cluster == nil {
		found.add("kubeconfig", "has no cluster %q, which its context %q is about%s", context.Cluster, name,
			wording.DidYouMean(context.Cluster, slices.Sorted(maps.Keys(config.Clusters))))
	}
	switch {
	case read.user != nil:
	case context.AuthInfo == "":
		read.user = &api.AuthInfo{} // anonymous
	default:
		found.add("kubeconfig", "has no user %q, as whom its context %q signs in%s", context.AuthInfo, name,
			wording.DidYouMean(context.AuthInfo, slices.Sorted(maps.Keys(config.AuthInfos))))
	}
	if read.cluster == nil || read.user == nil {
		return nil
	}
	return read
}

// checkFiles reports relative paths: the kubeconfig has no location.
func (k *kubeconfig) checkFiles(found *problems) {
	for _, file := range []struct{ attribute, instead, path string }{
		{"certificate-authority", "certificate-authority-data", k.cluster.CertificateAuthority},
		{"client-certificate", "client-certificate-data", k.user.ClientCertificate},
		{"client-key", "client-key-data", k.user.ClientKey},
		{"tokenFile", "token", k.user.TokenFile},
	} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			found.add(
				file.attribute,
				"is the relative path %q, but the text of a kubeconfig has no folder; write an absolute path, or %s",
				file.path,
				file.instead,
			)
		}
	}
	if exec := k.user.Exec; exec != nil && exec.Command != "" && filepath.Base(exec.Command) != exec.Command && !filepath.IsAbs(exec.Command) {
		found.add(
			"exec.command",
			"is the relative path %q, but the text of a kubeconfig has no folder; write an absolute path, or a name that is in PATH",
			exec.Command,
		)
	}
}

func (k *kubeconfig) checkUser(found *problems) {
	user := k.user
	certificate := user.ClientCertificate != "" || len(user.ClientCertificateData) > 0
	checkPair(found, [2]string{"client-certificate-data", "client-key-data"}, string(user.ClientCertificateData), string(user.ClientKeyData),
		certificate, user.ClientKey != "" || len(user.ClientKeyData) > 0)
	if (user.Token != "" || user.TokenFile != "") && (user.Username != "" || user.Password != "") {
		found.add("token", "cannot be set together with username and password; use one of them")
	}
	if user.AuthProvider != nil {
		found.add(
			"auth-provider",
			"is %q, but Flotilla does not run auth providers; use exec, with a command such as kubelogin",
			user.AuthProvider.Name,
		)
	}
	if exec := user.Exec; exec != nil {
		if exec.Command == "" {
			found.add("exec.command", "is missing: the command that prints a credential")
		}
		checkAPIVersion(found, "exec.apiVersion", exec.APIVersion, false)
		if exec.InteractiveMode == api.AlwaysExecInteractiveMode {
			found.add(
				"exec.interactiveMode",
				"is %q, but Terraform has no terminal for the command; it must be Never or IfAvailable",
				exec.InteractiveMode,
			)
		}
	}
	if plainServer(k.cluster.Server) && (user.Token != "" || user.TokenFile != "" || user.Exec != nil || user.Password != "" || certificate) {
		found.add("server", "is reached over plain http, where the credentials can be read on the way; it must begin with https://")
	}
	if user.Impersonate == "" && (user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0) {
		found.add("as", "is missing: the user for as-uid, as-groups and as-user-extra")
	}
}

func (k *kubeconfig) secrets() []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(k.config.AuthInfos)) {
		user := k.config.AuthInfos[name]
		found = append(found, user.Token, user.Password, string(user.ClientCertificateData))
		found = append(found, secret.KeyForms(string(user.ClientKeyData))...)
		if exec := user.Exec; exec != nil {
			found = append(found, execOf(exec).secrets()...)
		}
		if user.AuthProvider != nil {
			found = append(found, slices.Collect(maps.Values(user.AuthProvider.Config))...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.config.Clusters)) {
		found = append(found, passwordOf(k.config.Clusters[name].ProxyURL))
	}
	return found
}

func execOf(given *api.ExecConfig) *Exec {
	exec := &Exec{APIVersion: given.APIVersion, Command: given.Command, Args: given.Args, Env: map[string]string{}}
	for _, variable := range given.Env {
		exec.Env[variable.Name] = variable.Value
	}
	return exec
}
