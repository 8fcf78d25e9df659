package fleet

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// SecretReference names a secret in a store.
type SecretReference = secretservice.Reference

var secretReferenceKind = defineKind(Table{
	Name:    "reference to a secret",
	Meaning: "Names a secret in a store. The secret itself is not read.",
}, func(r *SecretReference) []row {
	return []row{
		storedAttribute(&r.Store, Attribute{
			Required: true, Form: labelForm, Meaning: "One of the `secret_stores` of the cluster types that the container reaches.",
		}, readRequired),
		textAttribute(&r.Key, Attribute{Required: true, Meaning: "The secret's name in the store. It has no `.` or `..` between slashes."}),
		textAttribute(&r.Property, Attribute{Meaning: "A part of the secret, where the store has such."}),
		textAttribute(&r.Version, Attribute{Meaning: "One of the secret's versions, where the store has such. Unset: the newest."}),
	}
}).checkedBy(func(o *ObjectReader, r *SecretReference) { // messages never repeat a text
	checkStoreName(o, o.At("store"), r.Store)
	checkShown(o, "key", r.Key)
	checkShown(o, "property", r.Property)
	checkShown(o, "version", r.Version)
	if isSet(r.Key) && goesUp(r.Key) {
		o.Report("key", `has "." or ".." between slashes, which some stores resolve, so that it names another secret than it seems to`)
	}
})

// ContainerSecrets are the secrets of a config container.
type ContainerSecrets struct {
	// References share the keys of data. nil removes a key.
	References map[string]*SecretReference `json:"secrets,omitempty"`
	// Encrypted are files of one YAML document each.
	Encrypted []string `json:"encrypted,omitempty"`
}

// SecretsEntry returns a name in [Config]. Names of containers have no "/", or begin with [appConfigPrefix].
func SecretsEntry(container string) string { return "secrets/" + container }

// UnknownEntry stands for unknown secrets.
const UnknownEntry = "null"

// Known reports whether the values and secrets of a container are known.
func (c Config) Known(container string) bool {
	_, known := c[container]
	return known && c[SecretsEntry(container)] != UnknownEntry
}

// Secrets returns the secrets of a container.
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

// SetSecrets stores the secrets of a config container.
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

// ParseEncrypted refuses plain values, and more than one YAML document. The error has no value.
func ParseEncrypted(text string) (encrypted.File, error) {
	document, err := ParseYAML(text)
	if err != nil {
		return encrypted.File{}, errors.New(withoutContent(err))
	}
	file, err := encrypted.Check(document)
	if err != nil {
		return encrypted.File{}, err
	}
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

// withoutContent drops the rest, which may contain a value.
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
