package fleet

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
)

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

// SecretsEntry is the name of the entry of [Config] for what a container has beside its data. No container is called so: a
// name has no "/", or begins with [appConfigPrefix].
func SecretsEntry(container string) string { return "secrets/" + container }

// UnknownEntry is the entry of what a container has beside its data while any of that is unknown.
const UnknownEntry = "null"

// Known says whether all values of a container are known, and what it has beside them.
func (c Config) Known(container string) bool {
	_, known := c[container]
	return known && c[SecretsEntry(container)] != UnknownEntry
}

// Secrets returns what a container has beside its data; known is false while it is not known yet.
func (c Config) Secrets(container *ConfigContainer) (secrets ContainerSecrets, known bool, err error) {
	text, has := c[SecretsEntry(container.Name)]
	if !has || text == UnknownEntry {
		return ContainerSecrets{}, !has, nil
	}
	if err := parseStrictly(text, &secrets); err != nil {
		return ContainerSecrets{}, false, fmt.Errorf(
			"config container %q: its secrets are not what provider::flotilla::fleet returned: %w",
			container.Name,
			err,
		)
	}
	return secrets, true, nil
}

// SetSecrets keeps what a container has beside its data.
func (c Config) SetSecrets(container *ConfigContainer, secrets ContainerSecrets) error {
	if len(secrets.References) == 0 && len(secrets.Encrypted) == 0 {
		return nil
	}
	text, err := encode(secrets)
	if err != nil {
		return fmt.Errorf("config container %q: %w", container.Name, err)
	}
	c[SecretsEntry(container.Name)] = text
	return nil
}

// ParseEncrypted reads an encrypted file, one YAML document, and checks that nothing in it is plain. The error says all that
// is wrong with it, and has no value of it. Where the file was given is for the caller to add.
func ParseEncrypted(text string) (encrypted.File, error) {
	document, err := ParseYAML(text)
	if err != nil {
		return encrypted.File{}, errors.New(withoutContent(err))
	}
	file, err := encrypted.Check(document)
	if err != nil {
		return encrypted.File{}, err
	}
	// The file has its name and some more, and no file can have a longer one.
	const longest = 240
	switch {
	case CheckSubdomainName(file.Name) != "":
		return encrypted.File{}, errors.New("metadata.name " + CheckSubdomainName(file.Name))
	case len(file.Name) > longest:
		return encrypted.File{}, fmt.Errorf("metadata.name is longer than %d characters", longest)
	case CheckLabelName(file.Namespace) != "":
		return encrypted.File{}, errors.New("metadata.namespace " + CheckLabelName(file.Namespace))
	}
	file.Text = text
	return file, nil
}

// withoutContent is the message of an error of [ParseYAML] up to the line that it names: what follows may have a value in it.
func withoutContent(err error) string {
	var bound *BoundError
	if errors.As(err, &bound) {
		return err.Error()
	}
	return linesOfYAML.FindString(err.Error())
}

var linesOfYAML = regexp.MustCompile(
	`^(?:has more than one YAML document, the second from line \d+|invalid YAML(?:, (?:from )?line \d+)?|)`,
)
