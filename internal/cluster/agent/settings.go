package agent

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Settings describe the setup of an agent on a cluster.
type Settings struct {
	Cluster           string
	ClusterType       string
	Reconciler        string
	Environment       string // of the fleet, by which a hub distinguishes clusters
	Repository        folder.Location
	Credentials       Credentials       // for reading the repository
	CredentialsSecret string            // existing Secret in the agent's namespace, in its form
	Install           []Text            // the agent's own manifests, if any
	Unconfined        bool              // omits the arguments that confine controllers in Install
	Feedback          *Reporting        // reports to a Git host; nil for none
	Decryption        *fleet.Decryption // of SOPS files in the folders; nil for none
	Registration      *Registration     // gives a hub access to the cluster
	Name              string            // of the objects, or its prefix
	Namespace         string
	Interval          time.Duration // of reading the repository; zero means the default
	Timeout           time.Duration // until the objects of a commit are ready; zero means the default
}

// Credentials read a repository. Token and Password are alternatives.
type Credentials struct {
	Token          string // sent as a password
	BearerToken    string // sent as a bearer token
	Username       string
	Password       string
	SSHPrivateKey  string
	SSHPassphrase  string
	SSHKnownHosts  string
	CACertificates string // PEM
	GitHubApp      *GitHubApp
}

// GitHubApp is a GitHub App whose key signs requests. IDs are numbers.
type GitHubApp struct{ ID, InstallationID, PrivateKey, URL string }

// Text is a text of YAML documents.
type Text struct {
	Path string // in the configuration, such as install["flux.yaml"]
	Text string
}

// Reporting configures commit statuses at a Git host.
type Reporting struct {
	Forge forge.Forge // kind of the Git host; "" to derive it from the URL
	// Context has placeholders for cluster and folder as read by flotilla_compliance: "flotilla/{cluster}/{host}".
	Context string
	URL     string // https:// URL of the repository; "" to derive it from the GitOps repository
	APIURL  string // of the Git host; "" to derive it from URL
	// One of Token, App and Secret, the name of an existing Secret, permits setting commit statuses.
	Token  string
	App    *GitHubApp
	Secret string
}

// Registration gives a hub access to a cluster.
type Registration struct {
	Secret        string // existing Secret with the access, instead of all others
	Server        string // of the Kubernetes API
	CACertificate string // PEM
	Token         string // of a service account
	ClientCert    string // PEM
	ClientKey     string // PEM
	TLSServerName string
	Insecure      bool
	Exec          *Exec
	AWS           *AWS
	Labels        map[string]string // of the hub's Secret, in addition to Flotilla's
}

// Exec is a program in Argo CD's image that prints a token.
type Exec struct {
	Command    string
	Args       []string
	Env        map[string]string
	APIVersion string
}

// AWS is an EKS cluster that Argo CD accesses with its own identity.
type AWS struct{ ClusterName, RoleARN string }

const (
	defaultName     = reconciler.AgentName
	defaultInterval = time.Minute
	defaultTimeout  = 5 * time.Minute
	defaultContext  = "flotilla/{cluster}/{host}"
)

func (s *Settings) reconciler() *reconciler.Reconciler {
	return cmp.Or(reconciler.Named(s.Reconciler), &reconciler.Reconciler{})
}

func (s Settings) withDefaults() Settings {
	s.Name = cmp.Or(s.Name, defaultName)
	s.Namespace = cmp.Or(s.Namespace, s.reconciler().Namespace)
	s.Interval = cmp.Or(s.Interval, defaultInterval)
	s.Timeout = cmp.Or(s.Timeout, defaultTimeout)
	s.Repository.Path = strings.Trim(path.Clean("/"+s.Repository.Path), "/")
	if s.Feedback != nil {
		feedback := *s.Feedback
		feedback.Context = cmp.Or(feedback.Context, defaultContext)
		s.Feedback = &feedback
	}
	return s
}

type problemCollector struct{ problems []SettingsProblem }

func (p *problemCollector) problem(path, format string, arguments ...any) {
	p.problems = append(p.problems, SettingsProblem{fleet.Finding{Path: path, Message: fmt.Sprintf(format, arguments...)}, false})
}

func (p *problemCollector) warn(path, format string, arguments ...any) {
	p.problems = append(p.problems, SettingsProblem{fleet.Finding{Path: path, Message: fmt.Sprintf(format, arguments...)}, true})
}

type settingsValidator struct {
	problemCollector
	settings *Settings
}

func (v *settingsValidator) checkNames() {
	s := v.settings
	v.checkLabel("cluster", s.Cluster, true)
	v.checkLabel("cluster_type", s.ClusterType, true)
	v.checkLabel("environment", s.Environment, false)
	v.checkLabel("name", s.Name, false)
	longest := maxName
	if of := s.reconciler().LongestName; of > 0 {
		longest = of - len("-cluster-type")
	}
	if len(s.Name) > longest {
		v.problem("name", "%q is longer than %d characters", s.Name, longest)
	}
	v.checkLabel("namespace", s.Namespace, false)
	switch {
	case s.Reconciler == "":
		v.problem("reconciler", "is required")
	case !s.reconciler().HasAgent():
		known := reconciler.Agents()
		v.problem("reconciler", "must be one of %s, not %q%s", strings.Join(known, ", "), s.Reconciler, fleet.DidYouMean(s.Reconciler, known))
	}
	if s.Interval < time.Second {
		v.problem("interval", "is shorter than a second")
	}
	if s.Timeout < time.Second {
		v.problem("timeout", "is shorter than a second")
	}
}

func (v *settingsValidator) checkDecryption() {
	d := v.settings.Decryption
	if d == nil {
		return
	}
	if reason := v.settings.reconciler().NoSOPS; reason != "" {
		v.problem("decryption", "cannot be set: %s", reason)
	}
	for _, named := range []struct{ at, name string }{{"secret", d.Secret}, {"service_account", d.ServiceAccount}} {
		if problem := fleet.CheckSubdomainName(named.name); named.name != "" && problem != "" {
			v.problem("decryption."+named.at, "%q %s", named.name, problem)
		}
	}
}

// maxName leaves room for suffixes.
const maxName = 40

func (v *settingsValidator) checkLabel(path, value string, required bool) {
	switch problem := fleet.CheckLabelName(value); {
	case value == "" && required:
		v.problem(path, "is required")
	case value != "" && problem != "":
		v.problem(path, "%q %s", value, problem)
	}
}

func (v *settingsValidator) checkRepository() {
	at, repository := "gitops_repo", &v.settings.Repository
	if err := git.CheckURL(repository.URL); err != nil {
		v.problem(at+".url", "%s", err)
	} else if repository.URL = clusterURL(repository.URL); repository.URL == "" {
		v.problem(at+".url", "is a repository on this machine, which no cluster can read: use https://, http:// or ssh://")
	}
	if err := git.CheckBranch(repository.Branch); err != nil {
		v.problem(at+".branch", "%s", err)
	}
	if repository.Path != "" {
		if err := git.CheckPath(repository.Path); err != nil {
			v.problem(at+".path", "%s", err)
		}
	}
}

// clusterURL returns a URL for agents, without SSH's short form; "" for repositories on this machine.
func clusterURL(address string) string {
	if scheme, _, found := strings.Cut(address, "://"); found {
		if strings.EqualFold(scheme, "file") {
			return ""
		}
		return address
	}
	if remote := reconciler.WithScheme(address); remote != address {
		return remote
	}
	return ""
}

func (s *Settings) isSSH() bool {
	return strings.HasPrefix(strings.ToLower(s.Repository.URL), "ssh:")
}

func (v *settingsValidator) checkCredentials() {
	at, c, ssh := "credentials", &v.settings.Credentials, v.settings.isSSH()
	if v.settings.CredentialsSecret != "" {
		if problem := fleet.CheckSubdomainName(v.settings.CredentialsSecret); problem != "" {
			v.problem("credentials_secret", "%q %s", v.settings.CredentialsSecret, problem)
		}
		if *c != (Credentials{}) {
			v.problem("credentials_secret", "cannot be set together with credentials")
		}
		return
	}
	ways := countTrue(c.Token != "", c.BearerToken != "", c.Password != "", c.SSHPrivateKey != "", c.GitHubApp != nil)
	switch {
	case ways > 1:
		v.problem(at, "has more than one of token, bearer_token, password, ssh_private_key and github_app")
	case ssh && c.SSHPrivateKey == "":
		v.problem(
			at+".ssh_private_key",
			"is required for a repository that is read by ssh; or give the name of an existing Secret in credentials_secret",
		)
	case !ssh && c.SSHPrivateKey != "":
		v.problem(at+".ssh_private_key", "is for a repository that is read by ssh, and this one has another URL")
	}
	if c.Password != "" && c.Username == "" {
		v.problem(at+".username", "is required with password")
	}
	if ways > 0 && !ssh && strings.HasPrefix(strings.ToLower(v.settings.Repository.URL), "http:") {
		v.warn("gitops_repo.url", "is not https: the credentials are sent over the network unencrypted")
	}
	if c.SSHPrivateKey != "" && !strings.Contains(c.SSHPrivateKey, "PRIVATE KEY-----") {
		v.problem(at+".ssh_private_key", "is no PEM text of a private key")
	}
	if c.CACertificates != "" && !strings.Contains(c.CACertificates, "-----BEGIN CERTIFICATE-----") {
		v.problem(at+".ca_certificates", "is no PEM text of certificates")
	}
	v.checkApp(at+".github_app", c.GitHubApp)
	v.checkSupported(at, c)
}

func (v *settingsValidator) checkSupported(at string, c *Credentials) {
	of := v.settings.reconciler()
	switch {
	case of.Agent.KnownHosts != "" && c.SSHKnownHosts != "":
		v.warn(at+".ssh_known_hosts", "is not used: %s knows the keys of Git hosts from %s", of.Product, of.Agent.KnownHosts)
	case of.Agent.KnownHosts == "" && c.SSHPrivateKey != "" && c.SSHKnownHosts == "":
		v.problem(at+".ssh_known_hosts", "is required with ssh_private_key: the agent has to know the keys of the Git host")
	}
	if c.SSHPassphrase != "" && !of.Agent.Passphrases {
		v.problem(
			at+".ssh_passphrase",
			"is for %s alone: give the other agents a private key without a passphrase",
			wording.List(reconciler.WithPassphrases(), wording.Named),
		)
	}
	if c.BearerToken != "" && of.HasAgent() && !of.Agent.BearerTokens {
		v.problem(at+".bearer_token", "cannot be used with %s: use token, which is sent as a password", of.Product)
	}
}

func (v *settingsValidator) checkApp(at string, app *GitHubApp) {
	if app == nil {
		return
	}
	number := func(name, text string) {
		if text == "" || strings.Trim(text, "0123456789") != "" {
			v.problem(at+"."+name, "must be a number, in quotes")
		}
	}
	number("id", app.ID)
	number("installation_id", app.InstallationID)
	if !strings.Contains(app.PrivateKey, "PRIVATE KEY-----") {
		v.problem(at+".private_key", "is no PEM text of a private key")
	}
	if app.URL != "" && !isWebURL(app.URL) {
		v.problem(at+".url", "is no https:// URL")
	}
}

func countTrue(given ...bool) int {
	return len(slices.DeleteFunc(given, func(is bool) bool { return !is }))
}

func isWebURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "" && parsed.User == nil
}

func (v *settingsValidator) checkRegistration() {
	at, to := "registration", v.settings.Registration
	if !v.settings.reconciler().OnHub() {
		if to != nil {
			v.problem(at, "is for the reconciler %q", reconciler.Hub().Name)
		}
		return
	}
	v.checkLabel("environment", v.settings.Environment, true)
	if to == nil {
		v.problem(at, "is required: how the hub reaches the cluster")
		return
	}
	if to.Secret != "" {
		if problem := fleet.CheckSubdomainName(to.Secret); problem != "" {
			v.problem(at+".secret", "%q %s", to.Secret, problem)
		}
		if !reflect.DeepEqual(*to, Registration{Secret: to.Secret}) {
			v.problem(at+".secret", "cannot be set together with other attributes: the Secret has all of them")
		}
		return
	}
	if parsed, err := url.Parse(to.Server); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		v.problem(at+".server", "must be the https:// URL of the cluster's API, as the hub reaches it")
	} else if name := parsed.Hostname(); name == "localhost" || name == "kubernetes.default.svc" {
		v.problem(at+".server", "is the name by which every cluster reaches itself: give the URL by which the hub reaches this one")
	}
	ways := countTrue(to.Token != "", to.ClientCert != "" || to.ClientKey != "", to.Exec != nil, to.AWS != nil)
	switch {
	case ways == 0:
		v.problem(at, "has none of token, client_certificate, exec and aws, of which the hub needs one")
	case ways > 1:
		v.problem(at, "has more than one of token, client_certificate, exec and aws")
	case (to.ClientCert == "") != (to.ClientKey == ""):
		v.problem(at, "has only one of client_certificate and client_key")
	}
	switch {
	case to.Insecure && to.CACertificate != "":
		v.problem(at+".insecure", "cannot be set together with cluster_ca_certificate")
	case to.CACertificate != "" && !strings.Contains(to.CACertificate, "-----BEGIN CERTIFICATE-----"):
		v.problem(at+".cluster_ca_certificate", "is no PEM text of certificates; cloud providers often give it in base64, so decode it first")
	}
	v.checkLabels(at+".labels", to.Labels)
}

func (v *settingsValidator) checkLabels(at string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := at + "[" + strconv.Quote(key) + "]"
		if problem := fleet.CheckLabelKey(key); problem != "" {
			v.problem(path, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(labels[key]); problem != "" {
			v.problem(path, "%s", problem)
		}
		if strings.HasPrefix(key, reconciler.LabelPrefix) || strings.HasPrefix(reconciler.Hub().Agent.Registers, key+"=") {
			v.problem(path, "is a label that Flotilla sets")
		}
	}
}
