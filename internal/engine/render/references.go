package render

import (
	"bytes"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// entryOf is the text of a reference in the file of "external-secrets" whose references are all of one store; isRight says that
// a check has found nothing in a file with it.
type secretEntry struct {
	text    []byte
	isValid bool
}

// entryKey is all that decides an entry. The store does not: it is in the head of the file.
type secretEntryKey struct {
	template *compiledTemplate
	key      string
	of       fleet.SecretReference
}

// maxEntries is how many entries are kept.
const maxEntries = 1 << 17

// externalSecrets puts the file of the built-in template "external-secrets" together from a head, which has a shape, and an
// entry for each reference, since hardly any two assignments have the same references. ok is false where the file is more
// than that. Without it, the way from the reference fleet to its files takes half as much again, by BenchmarkSecrets. The
// file is right where its head and its entries are.
func (t *Templates) renderExternalSecrets(host *hostTemplates, template *compiledTemplate, subject Subject) (file AssignmentFile, ok bool, err error) {
	_, amongValues := subject.Assignment.Target.Target.Manifests.ConfigAs.Values()
	if !template.isBuiltin || template.kind != "secret" || template.name != "external-secrets" || len(subject.Secrets) < 2 || amongValues {
		return AssignmentFile{}, false, nil
	}
	keys := slices.Sorted(maps.Keys(subject.Secrets))
	store := subject.Secrets[keys[0]].Store
	for _, key := range keys {
		if subject.Secrets[key].Store != store {
			return AssignmentFile{}, false, nil
		}
	}
	row := secretFile{
		Templates: t,
		host:      host,
		template:  template,
		subject:   subject,
		runner:    t.runners.Get().(*runner),
	} // what the caller's is filled with stays
	defer t.runners.Put(row.runner)
	head, isRight, err := row.renderHead(store)
	if err != nil || head == nil {
		return AssignmentFile{}, false, err
	}
	parts := append(make([][]byte, 0, len(keys)+1), head)
	for _, key := range keys {
		entry, err := row.renderEntry(key)
		if err != nil || entry.text == nil {
			return AssignmentFile{}, false, err
		}
		parts, isRight = append(parts, entry.text), isRight && entry.isValid
	}
	return AssignmentFile{Name: template.file, Content: bytes.Join(parts, nil), isValid: isRight}, true, nil
}

// referenceRow renders the parts of a file.
type secretFile struct {
	*Templates
	host     *hostTemplates
	template *compiledTemplate
	subject  Subject
	runner   *runner
}

// head is what comes before the entries of references that are all of one store.
func (r *secretFile) renderHead(store string) (head []byte, isRight bool, err error) {
	subject := r.subject
	subject.ConfigVersion = "head\n" + store
	key, _ := r.shapeKeyOf(r.host, r.template, subject)
	shape := r.shapes.with(&key).get(&key).shape
	var file []byte
	if shape != nil && shape != noShape {
		file, isRight = shape.fill(slotsOf(subject)), shape.checked.Load()
	} else {
		subject.Secrets = map[string]fleet.SecretReference{"KEY": {Store: store, Key: "key"}} // any other has this head, too
		if file, err = r.renderFile(subject); err != nil {
			return nil, false, err
		}
	}
	if !isRight {
		if isRight = r.isValidFile(subject, file); isRight && shape != nil && shape != noShape {
			shape.checked.Store(true)
		}
	}
	at := entriesAt(file)
	if at == 0 {
		return nil, false, nil
	}
	return file[:at:at], isRight, nil
}

// entry is what a reference is in the file.
func (r *secretFile) renderEntry(key string) (secretEntry, error) {
	at := secretEntryKey{r.template, key, r.subject.Secrets[key]}
	at.of.Store = ""
	entry := r.entries.get(&at)
	if entry.text != nil {
		return entry, nil
	}
	subject := r.subject
	subject.Secrets, subject.ConfigVersion = map[string]fleet.SecretReference{key: r.subject.Secrets[key]}, ""
	file, err := r.renderFile(subject)
	if begin := entriesAt(file); err == nil && begin > 0 {
		entry = secretEntry{bytes.Clone(file[begin:]), r.isValidFile(subject, file)}
		r.entries.keep(&at, entry, maxEntries)
	}
	return entry, err
}

func (r *secretFile) renderFile(subject Subject) ([]byte, error) {
	r.runner.isFilled = false
	return r.runner.renderFile(r.Templates, r.host, r.template, subject)
}

// isRight says whether a check finds nothing wrong in a file.
func (r *secretFile) isValidFile(subject Subject, content []byte) bool {
	return r.newCheck(r.host, subject).isQuicklyValid(uncheckedFile{r.template, &AssignmentFile{Content: content}, nil})
}

// entriesAt is where the entries of a file begin; 0 where it has none.
func entriesAt(file []byte) int {
	const before = "\n  data:\n"
	at := bytes.Index(file, []byte(before))
	if at < 0 || file[len(file)-1] != '\n' {
		return 0
	}
	return at + len(before)
}
