package render

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// entries keeps what a reference is in the file of "external-secrets" whose references are all of one store. It is safe for
// concurrent use.
type entries struct {
	sync.RWMutex
	texts map[entryKey][]byte
}

// entryKey is all that decides an entry. The store does not: it is in the head of the file.
type entryKey struct {
	template *compiled
	key      string
	of       fleet.SecretReference
}

// maxEntries is how many entries are kept.
const maxEntries = 1 << 17

func (e *entries) get(key *entryKey) []byte {
	e.RLock()
	defer e.RUnlock()
	return e.texts[*key]
}

func (e *entries) keep(key *entryKey, text []byte) {
	e.Lock()
	defer e.Unlock()
	if e.texts == nil || len(e.texts) >= maxEntries {
		e.texts = map[entryKey][]byte{}
	}
	e.texts[*key] = text
}

// externalSecrets puts the file of the built-in template "external-secrets" together from a head, which has a shape, and an
// entry for each reference, since hardly any two assignments have the same references. ok is false where the file is more
// than that. Without it, the way from the reference fleet to its files takes half as much again, by BenchmarkSecrets.
func (t *Templates) externalSecrets(host *host, template *compiled, subject Subject) (content []byte, ok bool, err error) {
	_, amongValues := subject.Assignment.Target.Target.Manifests.ConfigAs.Values()
	if !template.isBuiltin || template.kind != "secret" || template.name != "external-secrets" || len(subject.Secrets) < 2 || amongValues {
		return nil, false, nil
	}
	keys := slices.AppendSeq(make([]string, 0, len(subject.Secrets)), maps.Keys(subject.Secrets))
	slices.Sort(keys)
	store := subject.Secrets[keys[0]].Store
	for _, key := range keys {
		if subject.Secrets[key].Store != store {
			return nil, false, nil
		}
	}
	single := t.runners.Get().(*runner) // what the caller's is filled with stays
	defer t.runners.Put(single)
	// The file with one reference; version names what it may share with others.
	alone := func(key string, of fleet.SecretReference, version string) (file []byte, entriesAt int, err error) {
		subject := subject
		subject.ConfigVersion = version
		if shapeKey, _ := t.shapeKeyOf(host, template, subject); version != "" {
			if shape, _ := t.shapes.get(&shapeKey); shape != nil && shape != noShape {
				file = shape.fill(slotsOf(subject))
			}
		}
		if file == nil {
			subject.Secrets, single.isFilled = map[string]fleet.SecretReference{key: of}, false
			file, err = single.file(t, host, template, subject)
		}
		at := bytes.Index(file, []byte(beforeEntries))
		if err != nil || at < 0 || file[len(file)-1] != '\n' {
			return nil, 0, err
		}
		return file, at + len(beforeEntries), nil
	}
	head, end, err := alone("KEY", fleet.SecretReference{Store: store, Key: "key"}, "head\n"+store) // any reference has this head
	if err != nil || head == nil {
		return nil, false, err
	}
	parts := append(make([][]byte, 0, len(keys)+1), head[:end])
	for _, key := range keys {
		at := entryKey{template, key, subject.Secrets[key]}
		at.of.Store = ""
		entry := t.entries.get(&at)
		if entry == nil {
			file, end, err := alone(key, subject.Secrets[key], "")
			if err != nil || file == nil {
				return nil, false, err
			}
			entry = bytes.Clone(file[end:])
			t.entries.keep(&at, entry)
		}
		parts = append(parts, entry)
	}
	return bytes.Join(parts, nil), true, nil
}

// beforeEntries is the end of the head of the file.
const beforeEntries = "\n  data:\n"
