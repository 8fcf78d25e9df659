package render

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// externalSecrets renders the file of the built-in template "external-secrets" of the files of each reference alone, which have
// shapes, since hardly any two assignments have the same references. ok is false where the file is more than its references
// in a row. Without that, the way from the reference fleet to its files takes half as much again, by
// BenchmarkSecrets.
func (t *Templates) externalSecrets(host *host, template *compiled, subject Subject) (content []byte, ok bool, err error) {
	const before = "\n  data:\n"
	_, amongValues := subject.Assignment.Target.Target.Manifests.ConfigAs.Values()
	if !template.isBuiltin || template.kind != "secret" || template.name != "external-secrets" || len(subject.Secrets) < 2 || amongValues || subject.ConfigVersion == "" {
		return nil, false, nil
	}
	keys := slices.Sorted(maps.Keys(subject.Secrets))
	for _, key := range keys {
		if subject.Secrets[key].Store != subject.Secrets[keys[0]].Store {
			return nil, false, nil
		}
	}
	single := t.runners.Get().(*runner) // what e is filled with stays
	defer t.runners.Put(single)
	for i, key := range keys {
		reference := subject.Secrets[key]
		alone := subject
		alone.Secrets = map[string]fleet.SecretReference{key: reference}
		alone.ConfigVersion = strings.Join([]string{"reference", key, reference.Store, reference.Key, reference.Property, reference.Version}, "\n")
		single.isFilled = false
		one, err := single.file(t, host, template, alone)
		if err != nil {
			return nil, false, err
		}
		if i == 0 {
			content = one
			continue
		}
		_, entry, found := bytes.Cut(one, []byte(before))
		if !found || content[len(content)-1] != '\n' {
			return nil, false, nil
		}
		content = append(content, entry...)
	}
	return content, true, nil
}
