package adopt

import (
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// ofCluster begins a placeholder for the cluster's name or server, which the template replaces.
const ofCluster = "$(cluster."

// generalize merges Applications that one ApplicationSet makes for several clusters, if placeholders for the name and
// server of the cluster make them equal. The cluster type's parameters have the values.
func (a *builder) generalize(units []*unit) {
	byKey := map[string][]*unit{} // by resulting key
	of := map[*unit]*unit{}
	for _, u := range units {
		if general := a.generalUnit(u); general != nil {
			byKey[general.key], of[general] = append(byKey[general.key], general), u
		}
	}
	for _, generals := range byKey {
		hosts := map[*host]bool{}
		for _, u := range generals {
			hosts[u.main.host] = true
		}
		if len(hosts) < 2 || len(hosts) < len(generals) {
			continue
		}
		for _, u := range generals {
			*of[u] = *u
			u.main.host.isNamed = true
		}
	}
}

// generalUnit returns the unit with placeholders for its cluster; nil if it needs none.
func (a *builder) generalUnit(u *unit) *unit {
	if u.main.set == nil || u.main.host.cluster == nil {
		return nil
	}
	replace := u.main.host.cluster.placeholders()
	made := *u.main
	made.name = replace(u.main.name)
	made.fields, _ = replaceTexts(u.main.fields, replace).(map[string]any)
	general := &unit{main: u.main, objects: []*manifestObject{&made}, manifests: u.manifests, namespace: u.namespace}
	general.key = u.main.set.key() + " " + made.name
	general.name = strings.Trim(aroundCluster.ReplaceAllString(made.name, "-"), "-.")
	if general.name == "" {
		general.name = u.main.set.name
	}
	for name, value := range general.manifests.fields() {
		if replace(*value) == *value {
			continue
		}
		if name == "repo" || name == "storage" {
			return nil
		}
		*value = ""
	}
	if replace(u.namespace) != u.namespace {
		general.namespace = ""
	}
	if a.removeInvalid(general); general.manifests.Repo == "" {
		return nil
	}
	return general
}

var aroundCluster = regexp.MustCompile(`[-.]*\$\(cluster\.[a-z]+\)[-.]*`)

// placeholders replaces the server, and the name as a whole word.
func (c *cluster) placeholders() func(text string) string {
	return func(text string) string {
		if c.server != "" {
			text = strings.ReplaceAll(text, c.server, ofCluster+"server)")
		}
		return replaceWord(text, c.name, ofCluster+"name)")
	}
}

// replaceWord replaces a word that no letter or digit touches.
func replaceWord(text, word, by string) string {
	var made strings.Builder
	isPart := func(b byte) bool { return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' }
	for word != "" {
		i := strings.Index(text, word)
		if i < 0 {
			break
		}
		end := i + len(word)
		made.WriteString(text[:i])
		if i > 0 && isPart(text[i-1]) || end < len(text) && isPart(text[end]) || strings.HasSuffix(text[:i], ofCluster) {
			made.WriteString(word)
		} else {
			made.WriteString(by)
		}
		text = text[end:]
	}
	return made.String() + text
}

func replaceTexts(value any, replace func(text string) string) any {
	return deep.Mapped(value, func(value any) any {
		if text, isText := value.(string); isText {
			return replace(text)
		}
		return value
	})
}
