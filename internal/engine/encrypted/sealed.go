package encrypted

import (
	"encoding/base64"
	"encoding/binary"
)

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
