package fleet

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
		return ContainerSecrets{}, false, fmt.Errorf("config container %q: its secrets are not what provider::flotilla::fleet returned: %w",
			container.Name, err)
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
	if _, isBound := errors.AsType[*BoundError](err); isBound {
		return err.Error()
	}
	return linesOfYAML.FindString(err.Error())
}

var linesOfYAML = regexp.MustCompile(
	`^(?:has more than one YAML document, the second from line \d+|invalid YAML(?:, (?:from )?line \d+)?|)`,
)

const maxEncrypted = 1 << 20

func readSecretReferences(o *ObjectReader, attribute string) map[string]*SecretReference {
	data, _ := o.fields["data"].(map[string]any)
	references := map[string]*SecretReference{}
	eachInMap(o, attribute, "references, {store, key}", func(key string, path *Path, element any) {
		if len(validation.IsConfigMapKey(key)) > 0 {
			o.reader.Report(path, `is not a key of a Secret: letters, digits, "-", "_" and ".", at most 253 of them`)
		}
		if value, twice := data[key]; twice && value != nil && element != nil {
			o.reader.Report(path, "is a key of data, too, but a key is either a value or a secret: remove one of the two")
		}
		switch element.(type) {
		case nil:
			references[key] = nil
		case Unknown, map[string]any:
			if r := readChild(o, attribute, path, element); r != nil {
				references[key] = secretReferenceKind.decodeNew(r)
				r.Finish()
			}
		default:
			o.reader.Report(path, "must be a reference to a secret in a store, an object {store, key} with property and version where they are "+
				"needed, not %s: the secret itself belongs into the store", kindOf(element))
		}
	})
	return references
}

func eachInMap(o *ObjectReader, attribute, what string, do func(key string, path *Path, element any)) {
	switch given := o.value(attribute, ObjectMapType).(type) {
	case nil:
	case map[string]any:
		path := o.At(attribute)
		for _, key := range slices.Sorted(maps.Keys(given)) {
			do(key, path.Key(key), given[key])
		}
	default:
		o.Report(attribute, "must be a map of %s, not %s", what, kindOf(given))
	}
}

func goesUp(path string) bool {
	path = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", `\`, "/").Replace(path)
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." })
}

func checkStoreName(o *ObjectReader, path *Path, name string) {
	if problem := labelForm.check(name); isSet(name) && problem != "" {
		o.reader.Report(path, "the fleet's name of a store %s", problem)
	}
}

// checkShown never repeats the text.
func checkShown(o *ObjectReader, attribute, text string) {
	if isSet(text) && folder.CheckText(text) != nil {
		o.Report(attribute, "has a character that is not shown, or is longer than %d bytes", folder.MaxText)
	}
}

func readEncryptedFiles(o *ObjectReader, attribute string) []string {
	files, seen := readTexts(o, attribute), map[string]*Path{}
	EachText(o, attribute, func(path *Path, text string) {
		if len(text) > maxEncrypted {
			o.reader.Report(path, "is larger than 1 MiB, and no Secret can be")
			return
		}
		if text == "" {
			return
		}
		file, err := ParseEncrypted(text)
		if err != nil {
			o.reader.Report(path, "%s", err)
			return
		}
		if first := seen[file.Name]; first != nil {
			o.reader.Report(path, "is a Secret %q, as %s is: remove one of the two", file.Name, first)
			return
		}
		seen[file.Name] = path
	})
	return files
}

// AllowPlainAnnotation has the names of allow_plain, separated by commas.
const AllowPlainAnnotation = "flotilla.dev/allow-plain"

func readAllowPlainAnnotation(o *ObjectReader) (keys []string) {
	metadata, _ := o.fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, problem := readScalar(o, annotations[AllowPlainAnnotation])
	if problem != "" {
		o.reader.Report(o.path.Attribute("metadata").Attribute("annotations").Key(AllowPlainAnnotation), "%s", problem)
	}
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

const (
	valueAdvice = "plain values are committed as they are: give a reference to it in secrets of a config container, " +
		"or an encrypted file; if it is none, "
	committedAdvice = "what is rendered with it is committed as it is: refer to a Secret instead; if it is none, "
	toAllowPlain    = "add allow_plain = [%q]"
)

// checkCommitted is checkPlain for an attribute; the last of attributes starts the names.
func (d *decoder) checkCommitted(o *ObjectReader, allowed []string, attributes ...string) {
	var value any = o.fields
	path := o.path
	for _, attribute := range attributes {
		object, _ := value.(map[string]any)
		value, path = object[attribute], path.Attribute(attribute)
	}
	d.checkPlain(path, attributes[len(attributes)-1], value, allowed, committedAdvice+toAllowPlain)
}

// checkPlain reports credentials, except names such as database.password in allowed. Findings never contain a value.
func (d *decoder) checkPlain(path *Path, prefix string, value any, allowed []string, advice string) {
	for _, found := range credential.Find(value) {
		name := strings.Trim(prefix+"."+found.Path, ".")
		if slices.Contains(allowed, name) {
			continue
		}
		where := ""
		if found.Line > 0 {
			where = fmt.Sprintf(" in line %d", found.Line)
		}
		at := path
		if found.Path != "" {
			at = &Path{parent: path, step: "." + strings.TrimPrefix(found.Path, ".")}
		}
		d.Report(at, "looks like a credential%s (rule %s), and "+advice, where, found.Rule, name)
	}
}

// CheckOpenText returns a problem if a text looks like a credential, or "".
func CheckOpenText(text string) string {
	found := credential.Find(text)
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"has what looks like a credential (rule %s), and everybody can read it who can read the repository or the plan: take it out",
		found[0].Rule,
	)
}

// ReadOpenText reads a text that must not contain a credential.
func ReadOpenText(o *ObjectReader, name string) string {
	text := o.Text(name)
	if problem := CheckOpenText(text); problem != "" {
		o.Report(name, "%s", problem)
	}
	return text
}

func readAllowPlain(o *ObjectReader, attribute string) (names []string, known bool) {
	known = readAside(o, func() { names = readSortedTexts(o, attribute) })
	return names, known
}
