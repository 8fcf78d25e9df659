package fleet

import (
	"slices"
	"strings"
)

// ConfigAs lists the forms in which a deployment target gets its configuration:
//
//	"configmap"        the file of the config template, a ConfigMap unless the cluster type says otherwise
//	"configmap:<name>" the same, with another name than "platform-config"
//	"values"           among the Helm values of a chart
//	"values:<key>"     the same, below a key; "a.b" is key b of key a
//	"substitute"       values that Flux substitutes for variables in the manifests
//	"secret"           the Secret with the referenced secrets, "platform-secrets"
//	"secret:<name>"    the same, with another name
//
// The list is sorted, and empty for the default, ["configmap"].
type ConfigAs []string

var configForms = []string{"configmap", "configmap:", "values", "values:", "substitute", "secret", "secret:"}

// ConfigMap reports whether the ConfigMap is written, and its name; "" is the default.
func (c ConfigAs) ConfigMap() (name string, written bool) {
	if len(c) == 0 {
		return "", true
	}
	return c.form("configmap")
}

// Secret is the same for the Secret. A ConfigMap implies it: references are part of the configuration.
func (c ConfigAs) Secret() (name string, written bool) {
	if name, written = c.form("secret"); written {
		return name, true
	}
	_, written = c.ConfigMap()
	return "", written
}

// Values reports whether a chart's values include the configuration, and below which keys.
func (c ConfigAs) Values() (below []string, among bool) {
	key, among := c.form("values")
	if key != "" {
		below = strings.Split(key, ".")
	}
	return below, among
}

// IsSubstituted reports whether Flux substitutes configuration for variables.
func (c ConfigAs) IsSubstituted() bool {
	return slices.Contains(c, "substitute")
}

func (c ConfigAs) form(name string) (rest string, found bool) {
	for _, form := range c {
		before, after, _ := strings.Cut(form, ":")
		if before == name {
			return after, true
		}
	}
	return "", false
}

// longestKeys bounds nested keys, which grow the output quadratically.
const longestKeys = 253

func readConfigAs(o *ObjectReader, attribute string) ConfigAs {
	forms := readSortedTexts(o, attribute)
	if given, isList := o.fields[attribute].([]any); isList && len(given) == 0 {
		o.Report(attribute, `is empty: give at least one form, or remove it for ["configmap"]`)
	}
	seen := map[string]bool{}
	for _, form := range forms {
		if form == unknownText {
			continue
		}
		name, rest, hasRest := strings.Cut(form, ":")
		known := name
		if hasRest {
			known += ":"
		}
		switch {
		case !slices.Contains(configForms, known):
			o.Report(attribute, `%q is not one of configmap, configmap:<name>, values, values:<key>, substitute, secret, secret:<name>%s`,
				form, DidYouMean(name, []string{"configmap", "values", "substitute", "secret"}))
		case hasRest && (name == "configmap" || name == "secret"):
			if problem := CheckSubdomainName(rest); problem != "" {
				o.Report(attribute, "%q: the name of the %s %s", form, map[string]string{"configmap": "ConfigMap", "secret": "Secret"}[name], problem)
			}
		case len(rest) > longestKeys:
			o.Report(attribute, "%q: the keys are longer than %d characters", strings.ToValidUTF8(form[:longestKeys], "")+"…", longestKeys)
		case hasRest && slices.Contains(strings.Split(rest, "."), ""):
			o.Report(attribute, "%q: a key is empty", form)
		}
		if seen[name] {
			o.Report(attribute, "%q appears twice", name)
		}
		seen[name] = true
	}
	if len(forms) == 1 && forms[0] == "configmap" {
		return nil
	}
	return forms
}
