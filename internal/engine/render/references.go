package render

import (
	"bytes"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// secretEntry is the text of one reference in a file of "external-secrets". isValid: a check accepted it.
type secretEntry struct {
	text    []byte
	isValid bool
}

// secretEntryKey omits the store, which only the head of the file has.
type secretEntryKey struct {
	template *compiledTemplate
	key      string
	of       fleet.SecretReference
}

const maxEntries = 1 << 17

// renderExternalSecrets composes the file from a head and one entry for each reference, because hardly any two assignments
// have the same references. Without it, rendering the reference fleet takes half as long again (BenchmarkSecrets).
func (t *Templates) renderExternalSecrets(
	host *hostTemplates, template *compiledTemplate, subject Subject,
) (file AssignmentFile, ok bool, err error) {
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
		runner:    t.runners.Get().(*runner), // so that the caller's keeps its data
	}
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

type secretFile struct {
	*Templates
	host     *hostTemplates
	template *compiledTemplate
	subject  Subject
	runner   *runner
}

// renderHead returns the part before the entries.
func (r *secretFile) renderHead(store string) (head []byte, isRight bool, err error) {
	subject := r.subject
	subject.ConfigVersion = "head\n" + store
	subject.Secrets = map[string]fleet.SecretReference{"KEY": {Store: store, Key: "key"}} // any reference gives the same head
	file, shape, err := r.renderFile(subject)
	if err != nil {
		return nil, false, err
	}
	if isRight = shape != nil && shape.checked.Load(); !isRight {
		if isRight = r.isValidFile(subject, file); isRight && shape != nil {
			shape.checked.Store(true)
		}
	}
	at := entriesAt(file)
	if at == 0 {
		return nil, false, nil
	}
	return file[:at:at], isRight, nil
}

func (r *secretFile) renderEntry(key string) (secretEntry, error) {
	at := secretEntryKey{r.template, key, r.subject.Secrets[key]}
	at.of.Store = ""
	entry := r.entries.get(&at)
	if entry.text != nil {
		return entry, nil
	}
	subject := r.subject
	subject.Secrets, subject.ConfigVersion = map[string]fleet.SecretReference{key: r.subject.Secrets[key]}, ""
	file, _, err := r.renderFile(subject)
	if begin := entriesAt(file); err == nil && begin > 0 {
		entry = secretEntry{bytes.Clone(file[begin:]), r.isValidFile(subject, file)}
		r.entries.keep(&at, entry, maxEntries)
	}
	return entry, err
}

func (r *secretFile) renderFile(subject Subject) ([]byte, *shape, error) {
	r.runner.isFilled = false
	return r.runner.renderFile(r.Templates, r.host, r.template, subject, slotsOf(subject))
}

func (r *secretFile) isValidFile(subject Subject, content []byte) bool {
	file := &uncheckedFile{template: r.template, file: &AssignmentFile{Content: content}}
	return newFolderCheck(r.Templates, r.host, subject).isQuicklyValid(file)
}

// entriesAt returns the start of the entries; 0 if it has none.
func entriesAt(file []byte) int {
	const before = "\n  data:\n"
	at := bytes.Index(file, []byte(before))
	if at < 0 || file[len(file)-1] != '\n' {
		return 0
	}
	return at + len(before)
}
