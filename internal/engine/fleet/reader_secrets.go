package fleet

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

const maxEncrypted = 1 << 20

func readContainerSecrets(o *ObjectReader) (secrets ContainerSecrets, known bool) {
	known = readAside(o, func() {
		secrets = ContainerSecrets{References: readSecretReferences(o, "secrets"), Encrypted: readEncryptedFiles(o, "encrypted")}
	})
	return secrets, known
}

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
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
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
	value, has := annotations[AllowPlainAnnotation]
	if !has {
		return nil
	}
	text, problem := readScalar(o, value)
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
