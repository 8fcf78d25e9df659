package agent

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Settings say how an agent on a cluster is set up.
type Settings struct {
	Cluster     string
	ClusterType string
	Reconciler  string
	// Environment is that of the fleet, by which a hub distinguishes clusters; only for a hub.
	Environment string
	Repository  folder.Location
	// Credentials are for reading the repository; the zero value is none.
	Credentials Credentials
	// CredentialsSecret is the name of an existing Secret in the agent's namespace that has the credentials in the
	// form that the agent needs; "" for none.
	CredentialsSecret string
	// Install are the agent's own manifests; none where the agent is installed in another way.
	Install []Text
	// Unconfined leaves the controllers among Install without the arguments that confine them.
	Unconfined bool
	// Feedback says how the agent reports to a Git host; nil where it does not.
	Feedback *Reporting
	// Decryption is how the agent decrypts SOPS files of the folders; nil where it does not.
	Decryption *fleet.Decryption
	// Registration is how the hub reaches the cluster; only for a hub.
	Registration *Registration
	// Name is the name of the objects, or the first part of their names.
	Name string
	// Namespace is where the agent's objects are.
	Namespace string
	// Interval is how often the agent reads the repository; zero is the default.
	Interval time.Duration
	// Timeout is how long the objects of a commit may take to be ready; zero is the default.
	Timeout time.Duration
}

// Credentials are for reading a repository. Token and Password are alternatives.
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

// GitHubApp is a GitHub App whose key signs requests. IDs are numbers, as text.
type GitHubApp struct{ ID, InstallationID, PrivateKey, URL string }

// Text is a text of one or more YAML documents, and its path in the configuration.
type Text struct {
	Path string // such as install["flux.yaml"]
	Text string
}

// Reporting says how an agent sets commit statuses at a Git host.
type Reporting struct {
	// Forge is the kind of the Git host; "" where it follows from the URL.
	Forge forge.Forge
	// Context is the context of the statuses, with placeholders for cluster and folder, as flotilla_compliance reads
	// them: "flotilla/{cluster}/{host}".
	Context string
	// URL is the https:// URL of the repository at the Git host; "" where it follows from the GitOps repository's.
	URL string
	// APIURL is the URL of the Git host's API; "" where it follows from URL.
	APIURL string
	// One of Token, App and Secret gives the right to set commit statuses. Secret is the name of an existing Secret.
	Token  string
	App    *GitHubApp
	Secret string
}

// Registration says how a hub reaches a cluster.
type Registration struct {
	Server        string // URL of the Kubernetes API
	CACertificate string // PEM
	Token         string // of a service account
	ClientCert    string // PEM
	ClientKey     string // PEM
	TLSServerName string
	Insecure      bool
	Exec          *Exec
	AWS           *AWS
	Labels        map[string]string // of the hub's Secret, besides Flotilla's
}

// Exec is a program in Argo CD's image that gives it a token, such as argocd-k8s-auth.
type Exec struct {
	Command    string
	Args       []string
	Env        map[string]string
	APIVersion string
}

// AWS is an EKS cluster that Argo CD may reach by its own identity.
type AWS struct{ ClusterName, RoleARN string }

const (
	defaultName     = reconciler.AgentName
	defaultInterval = time.Minute
	defaultTimeout  = 5 * time.Minute
	defaultContext  = "flotilla/{cluster}/{host}"
)

// of is what is known of the reconciler; nothing where its name is wrong.
func (s *Settings) of() *reconciler.Reconciler {
	return cmp.Or(reconciler.Named(s.Reconciler), &reconciler.Reconciler{})
}

func (s Settings) withDefaults() Settings {
	s.Name = cmp.Or(s.Name, defaultName)
	s.Namespace = cmp.Or(s.Namespace, s.of().Namespace)
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

func (r *renderer) problem(path, format string, arguments ...any) {
	r.problems = append(r.problems, Problem{fleet.Finding{Path: path, Message: fmt.Sprintf(format, arguments...)}, false})
}

func (r *renderer) warn(path, format string, arguments ...any) {
	r.problems = append(r.problems, Problem{fleet.Finding{Path: path, Message: fmt.Sprintf(format, arguments...)}, true})
}

// check finds all problems of the settings.
func (r *renderer) check() {
	r.checkNames()
	r.checkRepository()
	r.checkCredentials()
	r.checkFeedback()
	r.checkRegistration()
	r.checkDecryption()
}

// checkNames finds problems of names, of the reconciler and of times.
func (r *renderer) checkNames() {
	s := r.settings
	r.label("cluster", s.Cluster, true)
	r.label("cluster_type", s.ClusterType, true)
	r.label("environment", s.Environment, false)
	r.label("name", s.Name, false)
	longest := maxName
	if of := s.of().LongestName; of > 0 {
		longest = of - len("-cluster-type")
	}
	if len(s.Name) > longest {
		r.problem("name", "%q is longer than %d characters", s.Name, longest)
	}
	r.label("namespace", s.Namespace, false)
	switch {
	case s.Reconciler == "":
		r.problem("reconciler", "is required")
	case !s.of().HasAgent():
		known := reconciler.Agents()
		r.problem("reconciler", "must be one of %s, not %q%s", strings.Join(known, ", "), s.Reconciler, fleet.DidYouMean(s.Reconciler, known))
	}
	if s.Interval < time.Second {
		r.problem("interval", "is shorter than a second")
	}
	if s.Timeout < time.Second {
		r.problem("timeout", "is shorter than a second")
	}
}

// checkDecryption finds decryption that the agent cannot do.
func (r *renderer) checkDecryption() {
	d := r.settings.Decryption
	if d == nil {
		return
	}
	if reason := r.settings.of().NoSOPS; reason != "" {
		r.problem("decryption", "cannot be set: %s", reason)
	}
	for _, named := range []struct{ at, name string }{{"secret", d.Secret}, {"service_account", d.ServiceAccount}} {
		if problem := fleet.CheckSubdomainName(named.name); named.name != "" && problem != "" {
			r.problem("decryption."+named.at, "%q %s", named.name, problem)
		}
	}
}

// maxName leaves room for the suffixes of object names.
const maxName = 40

func (r *renderer) label(path, value string, required bool) {
	switch problem := fleet.CheckLabelName(value); {
	case value == "" && required:
		r.problem(path, "is required")
	case value != "" && problem != "":
		r.problem(path, "%q %s", value, problem)
	}
}

func (r *renderer) checkRepository() {
	at, repository := "gitops_repo", &r.settings.Repository
	if err := git.CheckURL(repository.URL); err != nil {
		r.problem(at+".url", "%s", err)
	} else if repository.URL = clusterURL(repository.URL); repository.URL == "" {
		r.problem(at+".url", "is a repository on this machine, which no cluster can read: use https://, http:// or ssh://")
	}
	if err := git.CheckBranch(repository.Branch); err != nil {
		r.problem(at+".branch", "%s", err)
	}
	if repository.Path != "" {
		if err := git.CheckPath(repository.Path); err != nil {
			r.problem(at+".path", "%s", err)
		}
	}
}

// clusterURL is the address of a repository as agents want it: without the short form of ssh; "" for what
// only this machine can read.
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

func (r *renderer) isSSH() bool {
	return strings.HasPrefix(strings.ToLower(r.settings.Repository.URL), "ssh:")
}

func (c *Credentials) isZero() bool { return *c == Credentials{} }

// checkCredentials finds credentials that do not fit the repository, or each other.
func (r *renderer) checkCredentials() {
	at, c, ssh := "credentials", &r.settings.Credentials, r.isSSH()
	if r.settings.CredentialsSecret != "" {
		if problem := fleet.CheckSubdomainName(r.settings.CredentialsSecret); problem != "" {
			r.problem("credentials_secret", "%q %s", r.settings.CredentialsSecret, problem)
		}
		if !c.isZero() {
			r.problem("credentials_secret", "cannot be set together with credentials")
		}
		return
	}
	ways := count(c.Token != "", c.BearerToken != "", c.Password != "", c.SSHPrivateKey != "", c.GitHubApp != nil)
	switch {
	case ways > 1:
		r.problem(at, "has more than one of token, bearer_token, password, ssh_private_key and github_app")
	case ssh && c.SSHPrivateKey == "":
		r.problem(
			at+".ssh_private_key",
			"is required for a repository that is read by ssh; or give the name of an existing Secret in credentials_secret",
		)
	case !ssh && c.SSHPrivateKey != "":
		r.problem(at+".ssh_private_key", "is for a repository that is read by ssh, and this one has another URL")
	}
	if c.Password != "" && c.Username == "" {
		r.problem(at+".username", "is required with password")
	}
	if ways > 0 && !ssh && strings.HasPrefix(strings.ToLower(r.settings.Repository.URL), "http:") {
		r.warn("gitops_repo.url", "is not https: the credentials are sent over the network unencrypted")
	}
	if c.SSHPrivateKey != "" && !strings.Contains(c.SSHPrivateKey, "PRIVATE KEY-----") {
		r.problem(at+".ssh_private_key", "is no PEM text of a private key")
	}
	if c.CACertificates != "" && !strings.Contains(c.CACertificates, "-----BEGIN CERTIFICATE-----") {
		r.problem(at+".ca_certificates", "is no PEM text of certificates")
	}
	r.checkApp(at+".github_app", c.GitHubApp)
	r.checkSupported(at, c)
}

// checkSupported finds credentials that the agent cannot use.
func (r *renderer) checkSupported(at string, c *Credentials) {
	of := r.settings.of()
	switch {
	case of.Agent.KnownHosts != "" && c.SSHKnownHosts != "":
		r.warn(at+".ssh_known_hosts", "is not used: %s knows the keys of Git hosts from %s", of.Product, of.Agent.KnownHosts)
	case of.Agent.KnownHosts == "" && c.SSHPrivateKey != "" && c.SSHKnownHosts == "":
		r.problem(at+".ssh_known_hosts", "is required with ssh_private_key: the agent has to know the keys of the Git host")
	}
	if c.SSHPassphrase != "" && !of.Agent.Passphrases {
		r.problem(
			at+".ssh_passphrase",
			"is for %s alone: give the other agents a private key without a passphrase",
			wording.List(reconciler.WithPassphrases(), wording.Named),
		)
	}
	if c.BearerToken != "" && of.HasAgent() && !of.Agent.BearerTokens {
		r.problem(at+".bearer_token", "cannot be used with %s: use token, which is sent as a password", of.Product)
	}
}

func (r *renderer) checkApp(at string, app *GitHubApp) {
	if app == nil {
		return
	}
	number := func(name, text string) {
		if text == "" || strings.Trim(text, "0123456789") != "" {
			r.problem(at+"."+name, "must be a number, in quotes")
		}
	}
	number("id", app.ID)
	number("installation_id", app.InstallationID)
	if !strings.Contains(app.PrivateKey, "PRIVATE KEY-----") {
		r.problem(at+".private_key", "is no PEM text of a private key")
	}
	if app.URL != "" && !isWebURL(app.URL) {
		r.problem(at+".url", "is no https:// URL")
	}
}

// count is how many of some things are given.
func count(given ...bool) int {
	return len(slices.DeleteFunc(given, func(is bool) bool { return !is }))
}

func isWebURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "" && parsed.User == nil
}
