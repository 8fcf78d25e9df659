// Package encrypted checks files of SOPS and kubeseal. It finds plain values and never decrypts.
package encrypted

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
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

// checkSealed follows https://github.com/bitnami-labs/sealed-secrets/blob/main/pkg/apis/sealedsecrets/v1alpha1/types.go
func (c *check) checkSealed(object map[string]any) {
	c.allowOnly("", object, "apiVersion", "kind", "metadata", "spec", "status")
	spec := c.object("spec", object["spec"])
	if _, old := spec["data"]; old {
		c.report("spec.data is not supported by current controllers: seal the Secret with a newer kubeseal, which writes spec.encryptedData")
	} else {
		c.allowOnly("spec", spec, "encryptedData", "template")
	}
	entries, keys := c.entries("spec.encryptedData", spec["encryptedData"])
	if len(entries) == 0 {
		c.report("spec.encryptedData is empty")
	}
	for _, key := range keys {
		if text, _ := entries[key].(string); !isSealed(text) {
			c.report("spec.encryptedData[%q] is not what kubeseal writes", key)
		}
	}
	template := c.object("spec.template", spec["template"])
	c.checkLastApplied("spec.template.metadata", c.object("spec.template.metadata", template["metadata"]))
	for _, name := range []string{"data", "stringData"} {
		if len(c.object("spec.template."+name, template[name])) > 0 {
			c.report("spec.template.%s is plain: give all values in spec.encryptedData", name)
		}
	}
	c.allowOnly("spec.template", template, "metadata", "type", "immutable", "data", "stringData")
}

// isSealed reports whether a value has kubeseal's form: the length of an RSA ciphertext in two bytes, the ciphertext, and
// AES-GCM output. https://github.com/bitnami-labs/sealed-secrets/blob/main/pkg/crypto/crypto.go
func isSealed(text string) bool {
	const smallestKey, largestKey, tag = 128, 2048, 16
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 2 {
		return false
	}
	length := int(binary.BigEndian.Uint16(raw))
	return length >= smallestKey && length <= largestKey && len(raw) >= 2+length+tag
}

// cipher matches a value encrypted by SOPS. https://getsops.io/docs/#encryption-protocol
var cipher = regexp.MustCompile(
	`^ENC\[AES256_GCM,data:[A-Za-z0-9+/]+={0,2},iv:[A-Za-z0-9+/]+={0,2},tag:[A-Za-z0-9+/]+={0,2},type:([a-z]+)\]$`,
)

// checkSOPS accepts empty texts and null, which SOPS does not encrypt.
func (c *check) checkSOPS(secret map[string]any) {
	if _, given := secret["sops"]; !given {
		c.report("is a Secret that is not encrypted: sops is missing")
		return
	}
	c.allowOnly("", secret, "apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData", "sops")
	count := 0
	for _, name := range []string{"data", "stringData"} {
		entries, keys := c.entries(name, secret[name])
		count += len(entries)
		for _, key := range keys {
			value, isText := entries[key].(string)
			found := cipher.FindStringSubmatch(value)
			switch {
			case entries[key] == nil, isText && value == "":
			case found == nil:
				c.report("%s[%q] is not encrypted", name, key)
			case found[1] != "str":
				c.report("%s[%q] was no text before it was encrypted, and a Secret has only texts: put it in quotes, and encrypt it again", name, key)
			}
		}
	}
	if count == 0 {
		c.report("has neither data nor stringData")
	}
	c.checkSOPSMetadata(secret["sops"])
}

func (c *check) checkSOPSMetadata(value any) {
	metadata, isObject := value.(map[string]any)
	if !isObject {
		c.report("sops is not what SOPS writes")
		return
	}
	if mac, _ := metadata["mac"].(string); !cipher.MatchString(mac) {
		c.report("sops.mac is missing, or is not what SOPS writes")
	}
	lastModified, _ := metadata["lastmodified"].(string)
	if _, err := time.Parse(time.RFC3339, lastModified); err != nil {
		c.report("sops.lastmodified is missing, or is not what SOPS writes")
	}
	if version, _ := metadata["version"].(string); version == "" {
		c.report("sops.version is missing")
	}
	if !hasDataKey(metadata) {
		c.report("sops has no key that can decrypt the file")
	}
}

// hasDataKey finds sops.age[0].enc, or sops.key_groups[0].age[0].enc.
func hasDataKey(metadata map[string]any) bool {
	for _, member := range metadata {
		keys, _ := member.([]any)
		if deep.Holds(keys, func(part any) bool {
			key, _ := part.(map[string]any)
			encrypted, _ := key["enc"].(string)
			return encrypted != ""
		}) {
			return true
		}
	}
	return false
}
