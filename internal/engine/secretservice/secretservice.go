// Package secretservice is what is known of secret services, which bring the secrets that references name onto clusters: the
// kinds of their objects, and what their stores and providers can do. What has to know that asks this package. It is pure.
package secretservice

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Service is what is known of one secret service.
type Service struct {
	// Name is what a cluster type has as `secret_service`.
	Name string
	// Kind is that of the object that the folder of an assignment has.
	Kind Kind
	// OneStore says that an object gets secrets of one store only.
	OneStore bool
	// NoValues says why it cannot make a Secret with values of a chart; "" where it can.
	NoValues string
	// Providers are those that a store has to be of one; none where stores are objects on the clusters.
	Providers []Provider
}

// Kind is a kind of objects. Where they have a status that is read, Versions are those of the API, the newest first, separated
// by commas, and Resource is its name in the API's paths.
type Kind struct{ Group, Kind, Versions, Resource string }

// Provider is what is known of a provider of Secrets Store CSI Driver.
type Provider struct {
	Name string
	// Required are parameters without which it reads nothing; of several names for one, each is enough.
	Required [][]string
	// Objects is the parameter that lists what it reads, which Flotilla writes.
	Objects string
	// Cannot says which attribute of a reference is wrong, and why; "" where none is.
	Cannot func(store Store, reference Reference) (attribute, problem string)
}

// Store is a store of a cluster type, as package fleet has it, which this package does not know.
type Store struct {
	Name, Kind string
	Provider   string
	Parameters map[string]string
}

// Reference names a secret in a store, as package fleet has it.
type Reference struct{ Store, Key, Property, Version string }

// ExternalSecret is the kind of External Secrets Operator that gets a Secret from stores. Its status says whether the Secret is
// there.
var ExternalSecret = Kind{Group: "external-secrets.io", Kind: "ExternalSecret", Versions: "v1,v1beta1", Resource: "externalsecrets"}

// The secret services.
var (
	// ExternalSecrets is External Secrets Operator 0.16 and later, which have the version v1 of its kinds.
	ExternalSecrets = Service{Name: "external-secrets", Kind: ExternalSecret}
	// SecretsStoreCSI is Secrets Store CSI Driver 1.0 and later.
	SecretsStoreCSI = Service{
		Name: "secrets-store-csi", OneStore: true, Providers: providers,
		Kind:     Kind{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass"},
		NoValues: "Secrets Store CSI Driver makes a Secret only for a pod that mounts it",
	}
)

// Named returns the built-in secret service of a name; nil where there is none.
func Named(name string) *Service {
	for _, one := range []*Service{&ExternalSecrets, &SecretsStoreCSI} {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// The kinds of the objects that are stores of External Secrets Operator.
const (
	ClusterStore    = "ClusterSecretStore" // for all namespaces; the default
	NamespacedStore = "SecretStore"
)

// Problem is what is wrong with an attribute of a store.
type Problem struct {
	Attribute []string // its path
	Message   string
}

// CheckStore returns what is wrong with a store of a cluster type that has the service.
func (s *Service) CheckStore(store Store) []Problem {
	var found []Problem
	report := func(message string, attribute ...string) { found = append(found, Problem{attribute, message}) }
	if s.Providers == nil {
		if store.Provider != "" {
			report("is for secret services with providers: a store of "+s.Name+" is an object on the clusters", "provider")
		}
		if len(store.Parameters) > 0 {
			report("are for secret services with providers: a store of "+s.Name+" is an object on the clusters", "parameters")
		}
		return found
	}
	if store.Name != "" {
		report("is for stores that are objects on the clusters: "+s.Name+" has providers in place of them", "name")
	}
	if store.Kind != "" {
		report("is for stores that are objects on the clusters: "+s.Name+" has providers in place of them", "kind")
	}
	provider := s.Provider(store)
	if provider == nil {
		names := make([]string, len(s.Providers))
		for i := range s.Providers {
			names[i] = s.Providers[i].Name
		}
		report("has to be one of "+strings.Join(names, ", ")+wording.DidYouMean(store.Provider, names), "provider")
		return found
	}
	for _, alternatives := range provider.Required {
		if !slices.ContainsFunc(alternatives, func(name string) bool { return store.Parameters[name] != "" }) {
			report("lack "+alternatives[0]+", which the provider "+provider.Name+" needs", "parameters")
		}
	}
	if _, given := store.Parameters[provider.Objects]; given {
		report("cannot be set: Flotilla writes it of the references", "parameters", provider.Objects)
	}
	return found
}

// Provider returns the provider of a store; nil where it is not known.
func (s *Service) Provider(store Store) *Provider {
	i := slices.IndexFunc(s.Providers, func(one Provider) bool { return one.Name == store.Provider })
	if i < 0 {
		return nil
	}
	return &s.Providers[i]
}
