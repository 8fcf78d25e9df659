// Package secretservice describes the services that bring referenced secrets onto clusters.
package secretservice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Service is a secret service.
type Service struct {
	// Name is the value of `secret_service`.
	Name string
	// Kind is the kind of its object in a folder.
	Kind     ObjectKind
	OneStore bool
	// NoValues is the reason why it cannot write values of a chart, or "".
	NoValues string
	// Providers is nil if stores are objects on the clusters.
	Providers []Provider
}

// ObjectKind is a kind. Versions (the newest first, separated by commas) and Resource are for reading its status.
type ObjectKind struct{ Group, Kind, Versions, Resource string }

// Provider is a provider of Secrets Store CSI Driver.
type Provider struct {
	Name string
	// Required lists parameters with their alternative names.
	Required [][]string
	// Objects is the parameter that Flotilla writes.
	Objects string
	// Cannot returns the invalid attribute of a reference and the problem, or "".
	Cannot func(store Store, reference Reference) (attribute, problem string)
}

// Store describes a store on the clusters of a cluster type.
type Store struct {
	// Name and Kind have defaults: the name in references, "ClusterSecretStore".
	Name       string            `json:"name,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Provider   string            `json:"provider,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Reference names a secret in a store. Flotilla never reads the secret.
type Reference struct {
	Store    string `json:"store"` // see SecretStores of a cluster type
	Key      string `json:"key"`
	Property string `json:"property,omitempty"`
	Version  string `json:"version,omitempty"`
}

// ExternalSecret has a status that tells whether the Secret exists.
var ExternalSecret = ObjectKind{Group: "external-secrets.io", Kind: "ExternalSecret", Versions: "v1,v1beta1", Resource: "externalsecrets"}

var (
	// ExternalSecrets is External Secrets Operator 0.16 or later.
	ExternalSecrets = Service{Name: "external-secrets", Kind: ExternalSecret}
	// SecretsStoreCSI is Secrets Store CSI Driver 1.0 or later.
	SecretsStoreCSI = Service{
		Name: "secrets-store-csi", OneStore: true, Providers: providers,
		Kind:     ObjectKind{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass"},
		NoValues: "Secrets Store CSI Driver makes a Secret only for a pod that mounts it",
	}
)

// Named returns a service, or nil.
func Named(name string) *Service {
	for _, one := range []*Service{&ExternalSecrets, &SecretsStoreCSI} {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// Kinds of stores of External Secrets Operator.
const (
	ClusterStore    = "ClusterSecretStore" // for all namespaces; the default
	NamespacedStore = "SecretStore"
)

// StoreProblem is a problem with an attribute (path) of a store.
type StoreProblem struct {
	Attribute []string // its path
	Message   string
}

// CheckStore returns the problems of a store.
func (s *Service) CheckStore(store Store) (found []StoreProblem) {
	refuse := func(isWrong bool, message string, attribute ...string) {
		if isWrong {
			found = append(found, StoreProblem{attribute, message})
		}
	}
	if s.Providers == nil {
		reason := " for secret services with providers: a store of " + s.Name + " is an object on the clusters"
		refuse(store.Provider != "", "is"+reason, "provider")
		refuse(len(store.Parameters) > 0, "are"+reason, "parameters")
		return found
	}
	reason := "is for stores that are objects on the clusters: " + s.Name + " has providers in place of them"
	refuse(store.Name != "", reason, "name")
	refuse(store.Kind != "", reason, "kind")
	provider := s.Provider(store)
	if provider == nil {
		names := make([]string, len(s.Providers))
		for i := range s.Providers {
			names[i] = s.Providers[i].Name
		}
		refuse(true, "has to be one of "+strings.Join(names, ", ")+wording.DidYouMean(store.Provider, names), "provider")
		return found
	}
	for _, alternatives := range provider.Required {
		isSet := slices.ContainsFunc(alternatives, func(name string) bool { return store.Parameters[name] != "" })
		refuse(!isSet, "lack "+alternatives[0]+", which the provider "+provider.Name+" needs", "parameters")
	}
	_, isSet := store.Parameters[provider.Objects]
	refuse(isSet, "cannot be set: Flotilla writes it of the references", "parameters", provider.Objects)
	return found
}

// Provider returns the provider of a store, or nil.
func (s *Service) Provider(store Store) *Provider {
	i := slices.IndexFunc(s.Providers, func(one Provider) bool { return one.Name == store.Provider })
	if i < 0 {
		return nil
	}
	return &s.Providers[i]
}

// providers of secrets-store-csi: vault-csi-provider 1.7, secrets-store-csi-driver-provider-azure 1.8, -aws 3 and -gcp 1.15.
var providers = []Provider{
	{
		// Without a property, Vault's whole response differs each time.
		Name: "vault", Objects: "objects", Required: [][]string{{"roleName"}},
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			switch {
			case reference.Property == "":
				return "property", "is not set, and without it the provider vault gives the whole answer of Vault"
			case strings.Contains(reference.Key, "?"):
				return "key", `has a "?", after which the provider vault reads parameters: give the version in version`
			case strings.ContainsAny(reference.Key, "#%"):
				return "key", `has a "#" or "%", which the provider vault reads as a part of a URL, so that it names another secret`
			}
			return "", ""
		},
	},
	{
		Name: "azure", Objects: "objects", Required: [][]string{{"keyvaultName"}, {"tenantID", "tenantId"}},
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			if reference.Property != "" {
				return "property", "is not possible with the provider azure, which reads whole secrets"
			}
			return "", ""
		},
	},
	{
		Name: "aws", Objects: "objects",
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			if strings.HasPrefix(reference.Key, "arn:") && !strings.Contains(reference.Key, ":secretsmanager:") {
				return "key", "is not one of Secrets Manager, which is what the provider aws reads here"
			}
			return "", ""
		},
	},
	{
		Name: "gcp", Objects: "secrets",
		Cannot: func(store Store, reference Reference) (attribute, problem string) {
			switch {
			case strings.Contains(reference.Key, "/versions/"):
				return "key", "has the version in it: give that in version"
			case !strings.HasPrefix(reference.Key, "projects/") && store.Parameters["project"] == "":
				return "key", `does not begin with "projects/<project>/secrets/", and the store has no parameter project`
			}
			return "", ""
		},
	},
}

// Values returns Helm values as a template of External Secrets Operator. Names are escaped, so that none becomes an action,
// and secrets are JSON, so that no character has a meaning in YAML.
func Values(below, keys []string) string {
	var text strings.Builder
	indent := ""
	for _, key := range below {
		fmt.Fprintf(&text, "%s%s:\n", indent, literal(key))
		indent += "  "
	}
	for _, key := range keys {
		fmt.Fprintf(&text, "%s%s: {{ index . %s | toJson }}\n", indent, literal(key), strconv.Quote(key))
	}
	return text.String()
}

// literal quotes a key for YAML in a template.
func literal(key string) string {
	return strings.ReplaceAll(strconv.QuoteToASCII(key), "{{", `{{ "{{" }}`)
}
