package secretservice

import "strings"

// providers of secrets-store-csi: vault-csi-provider 1.7, secrets-store-csi-driver-provider-azure 1.8, -aws 3 and -gcp 1.15.
var providers = []Provider{
	{
		// Without a property, Vault's whole response differs each time.
		Name: "vault", Objects: "objects", Required: [][]string{{"roleName"}},
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			switch {
			case reference.Property == "":
				return "property", "is not set, and without it the provider vault gives the whole answer of Vault"
			case strings.Contains(reference.Key, "?"):
				return "key", `has a "?", after which the provider vault reads parameters: give the version in version`
			case strings.ContainsAny(reference.Key, "#%"):
				return "key", `has a "#" or "%", which the provider vault reads as a part of a URL, so that it names another secret`
			}
			return "", ""
		},
	},
	{
		Name: "azure", Objects: "objects", Required: [][]string{{"keyvaultName"}, {"tenantID", "tenantId"}},
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			if reference.Property != "" {
				return "property", "is not possible with the provider azure, which reads whole secrets"
			}
			return "", ""
		},
	},
	{
		Name: "aws", Objects: "objects",
		Cannot: func(_ Store, reference Reference) (attribute, problem string) {
			if strings.HasPrefix(reference.Key, "arn:") && !strings.Contains(reference.Key, ":secretsmanager:") {
				return "key", "is not one of Secrets Manager, which is what the provider aws reads here"
			}
			return "", ""
		},
	},
	{
		Name: "gcp", Objects: "secrets",
		Cannot: func(store Store, reference Reference) (attribute, problem string) {
			switch {
			case strings.Contains(reference.Key, "/versions/"):
				return "key", "has the version in it: give that in version"
			case !strings.HasPrefix(reference.Key, "projects/") && store.Parameters["project"] == "":
				return "key", `does not begin with "projects/<project>/secrets/", and the store has no parameter project`
			}
			return "", ""
		},
	},
}
