package encrypted

import (
	"regexp"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

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
