// Package secretservice is what is known of secret services, which bring the secrets that references name onto clusters: the
// kinds of their objects, and what their stores and providers can do. What has to know that asks this package. It is pure.
package secretservice

// Service is what is known of one secret service.
type Service struct {
	// Name is what a cluster type has as `secret_service`, and Product what messages call it.
	Name, Product string
	// Kind is that of the object that the folder of an assignment has.
	Kind Kind
}

// Kind is a kind of objects. Versions are those that can be read, the newest first, separated by commas, and Resource is its
// name in the API's paths.
type Kind struct{ Group, Kind, Versions, Resource string }

// ExternalSecret is the kind of External Secrets Operator that gets a Secret from stores. Its status says whether the Secret is
// there.
var ExternalSecret = Kind{Group: "external-secrets.io", Kind: "ExternalSecret", Versions: "v1,v1beta1", Resource: "externalsecrets"}

// The secret services.
var (
	// ExternalSecrets is External Secrets Operator 0.16 and later, which have the version v1 of its kinds.
	ExternalSecrets = Service{Name: "external-secrets", Product: "External Secrets Operator", Kind: ExternalSecret}
	// SecretsStoreCSI is Secrets Store CSI Driver 1.0 and later.
	SecretsStoreCSI = Service{
		Name: "secrets-store-csi", Product: "Secrets Store CSI Driver",
		Kind: Kind{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass", Versions: "v1", Resource: "secretproviderclasses"},
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
