// Package encrypted checks files of SOPS and kubeseal. It finds plain values and never decrypts.
package encrypted

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Method is the encryption of a file.
type Method string

// The methods.
const (
	SOPS         Method = "sops"
	SealedSecret Method = "sealed-secret"
)

// File is an encrypted file: one YAML document.
type File struct {
	Method          Method
	Name, Namespace string // of the Secret
	Text            string // unchanged
	// Container and Index locate the file in the fleet.
	Container string
	Index     int
}

// FileName returns the file's name in a folder.
func (f *File) FileName() string { return "encrypted-" + f.Name + ".yaml" }

// Object returns the API group and kind of the encrypted object.
func (f *File) Object() (group, kind string) {
	if f.Method == SealedSecret {
		return "bitnami.com", "SealedSecret"
	}
	return "", "Secret"
}

// Check checks a document and sets Method, Name and Namespace. The error lists all problems without values.
func Check(document any) (File, error) {
	c := &check{}
	file := c.file(document)
	if len(c.problems) > 0 {
		more := len(c.problems) - wording.Named
		if more > 0 {
			c.problems = append(c.problems[:wording.Named], fmt.Sprintf("and %d more", more))
		}
		return File{}, errors.New(strings.Join(c.problems, "; "))
	}
	return file, nil
}

type check struct{ problems []string }

func (c *check) report(format string, arguments ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, arguments...))
}

func (c *check) file(document any) File {
	object, isObject := document.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	for _, value := range []any{object["apiVersion"], object["kind"], object["metadata"], metadata["name"], metadata["namespace"]} {
		if text, _ := value.(string); strings.HasPrefix(text, "ENC[") {
			c.report(
				"the whole file is encrypted, so that its name and namespace cannot be read: encrypt it with --encrypted-regex '^(data|stringData)$'",
			)
			return File{}
		}
	}
	file := File{}
	switch {
	case !isObject:
		c.report("is not an encrypted file: neither a Secret that SOPS has encrypted nor a SealedSecret")
		return file
	case object["apiVersion"] == "v1" && object["kind"] == "Secret":
		file.Method = SOPS
		c.checkSOPS(object)
	case object["apiVersion"] == "bitnami.com/v1alpha1" && object["kind"] == "SealedSecret":
		file.Method = SealedSecret
		c.checkSealed(object)
	default:
		c.report("is neither a Secret of apiVersion v1 that SOPS has encrypted nor a SealedSecret of apiVersion bitnami.com/v1alpha1")
		return file
	}
	c.checkLastApplied("metadata", metadata)
	file.Name, file.Namespace = c.required(metadata, "name"), c.required(metadata, "namespace")
	return file
}

func (c *check) required(metadata map[string]any, name string) string {
	text, _ := metadata[name].(string)
	if text == "" {
		c.report("metadata.%s is missing", name)
	}
	return text
}

// checkLastApplied refuses a copy of the plain object in an annotation.
func (c *check) checkLastApplied(path string, metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if strings.HasSuffix(key, "/last-applied-configuration") {
			c.report(
				"%s.annotations has a copy of the Secret before it was encrypted: remove last-applied-configuration from it, and change what is "+
					"in the Secret", path)
		}
	}
}

// allowOnly refuses other members, which are plain or ignored.
func (c *check) allowOnly(path string, object map[string]any, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			c.report("%s is not allowed: the fields are %s", memberPath(path, name), strings.Join(known, ", "))
		}
	}
}

func (c *check) object(path string, value any) map[string]any {
	object, isObject := value.(map[string]any)
	if value != nil && !isObject {
		c.report("%s is not a map", path)
	}
	return object
}

// entries returns the valid keys, sorted. Messages repeat no invalid one.
func (c *check) entries(path string, value any) (map[string]any, []string) {
	entries := c.object(path, value)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !secretKey.MatchString(key) {
			c.report(`%s has a key that a Secret cannot have: letters, digits, "-", "_" and "." are allowed`, path)
			continue
		}
		keys = append(keys, key)
	}
	return entries, keys
}

var (
	secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	fieldName = regexp.MustCompile(`^[a-zA-Z]{1,40}$`)
)

// memberPath repeats no invalid names.
func memberPath(path, name string) string {
	switch {
	case !fieldName.MatchString(name) && path == "":
		return "a field"
	case !fieldName.MatchString(name):
		return "a field of " + path
	case path == "":
		return name
	}
	return path + "." + name
}
