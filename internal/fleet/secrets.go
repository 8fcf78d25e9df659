package fleet

import "fmt"

// SecretReference names a secret in a store. The secret itself is nowhere in Flotilla.
type SecretReference struct {
	Store    string `json:"store"` // as the fleet calls it: see [ClusterType.SecretStores]
	Key      string `json:"key"`   // of the secret in the store
	Property string `json:"property,omitempty"`
	Version  string `json:"version,omitempty"`
}

// ContainerSecrets is what a config container has beside its data.
type ContainerSecrets struct {
	// References are by key, in the same namespace of keys as data. nil removes a key that another container gives.
	References map[string]*SecretReference `json:"secrets,omitempty"`
	// Encrypted are files that somebody else has encrypted: one YAML document each.
	Encrypted []string `json:"encrypted,omitempty"`
}

// SecretStore is what a cluster type calls a store, and what its secret service has to know of it.
type SecretStore struct {
	// Name and Kind are those of the object on the clusters, for external-secrets. Without Name it is called as references
	// do. Kind is "ClusterSecretStore", also where it is empty, or "SecretStore".
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
	// Provider and Parameters are those of a SecretProviderClass, for secrets-store-csi.
	Provider   string            `json:"provider,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Decryption is how an agent decrypts SOPS files.
type Decryption struct {
	Secret         string `json:"secret,omitempty"`          // with the keys, in the namespace of the agent; empty: none
	ServiceAccount string `json:"service_account,omitempty"` // that may use a cloud's keys; empty: the agent's own
}

// secretsEntry is the name of the entry of [Config] for what a container has beside its data. No container can be called so.
func secretsEntry(container string) string { return container + "/secrets" }

// Secrets returns what a container has beside its data; known is false while it is not known yet.
func (c Config) Secrets(container *ConfigContainer) (secrets ContainerSecrets, known bool, err error) {
	if !container.Secrets {
		return ContainerSecrets{}, true, nil
	}
	text, known := c[secretsEntry(container.Name)]
	if !known {
		return ContainerSecrets{}, false, nil
	}
	if err := parseStrictly(text, &secrets); err != nil {
		return ContainerSecrets{}, false, fmt.Errorf("config container %q: its secrets are not what provider::flotilla::fleet returned: %w", container.Name, err)
	}
	return secrets, true, nil
}

// SetSecrets keeps what a container has beside its data.
func (c Config) SetSecrets(container *ConfigContainer, secrets ContainerSecrets) error {
	text, err := encode(secrets)
	if err != nil {
		return fmt.Errorf("config container %q: %w", container.Name, err)
	}
	container.Secrets, c[secretsEntry(container.Name)] = true, text
	return nil
}
