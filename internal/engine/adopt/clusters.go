package adopt

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// cluster is a destination of an Argo CD hub.
type cluster struct {
	name, server, project string
	labels, annotations   map[string]string
	secret                *manifestObject // nil if parameters describe the cluster
}

func (a *documents) readCluster(o *manifestObject, fields map[string]any) (is bool) {
	read := &cluster{
		labels: textsAt(fields, "metadata.labels"), annotations: textsAt(fields, "metadata.annotations"), secret: o,
	}
	if o.kind.Kind != "Secret" || o.kind.Group != "" || read.labels[reconciler.SecretType] != reconciler.SecretCluster {
		return false
	}
	for key, into := range map[string]*string{"name": &read.name, "server": &read.server, "project": &read.project} {
		if decoded, err := base64.StdEncoding.DecodeString(textAt(fields, "data."+key)); err == nil {
			*into = string(decoded)
		}
		*into = cmp.Or(textAt(fields, "stringData."+key), *into)
	}
	switch {
	case read.name == "" || read.server == "":
		a.listed.add(o, false, "is the Secret of a cluster of Argo CD, but has no name and server in data that can be read")
	case slices.ContainsFunc(a.clusters, func(one *cluster) bool { return one.name == read.name }):
		a.listed.add(o, false, "is the Secret of a cluster of Argo CD that another Secret has, too")
	default:
		a.clusters = append(a.clusters, read)
	}
	return true
}

// listClusters lists the Secrets of clusters with the cluster types that have their labels.
func (a *documents) listClusters(hosts []*host) {
	for _, one := range a.clusters {
		if one.secret == nil {
			continue
		}
		var names, lost []string
		for _, h := range hosts {
			if h.cluster != one {
				continue
			}
			names = append(names, h.name)
			for key, value := range one.labels {
				if key != reconciler.SecretType && h.labels[key] != value {
					lost = append(lost, key)
				}
			}
		}
		slices.Sort(lost)
		text := "no cluster type is made of it, because no adopted object is for the cluster"
		switch {
		case len(names) > 0:
			text = fmt.Sprintf("the cluster %s %s %s its labels", wording.OneOrMany(len(names), "type", "types"),
				wording.List(wording.Quoted(names), wording.Named), wording.OneOrMany(len(names), "has", "have"))
		case !isHub(one.server):
			text = "another cluster has the name that its cluster type would have"
		}
		if len(lost) > 0 {
			text += " without " + wording.List(wording.Quoted(slices.Compact(lost)), wording.Named)
		}
		a.listed.add(one.secret, false, "is the Secret of a cluster of Argo CD: "+text+", and it stays where it is")
	}
}

func textsAt(value any, field string) map[string]string {
	object, _ := at(value, field).(map[string]any)
	texts := make(map[string]string, len(object))
	for key, value := range object {
		if text, isText := value.(string); isText {
			texts[key] = text
		}
	}
	return texts
}

// destinationOf returns the cluster that an object names by name or server, or nil.
func (a *placer) destinationOf(o *manifestObject) *cluster {
	if o.kind.Destination == "" {
		return nil
	}
	name, server := textAt(o.fields, o.kind.Destination), textAt(o.fields, strings.TrimSuffix(o.kind.Destination, "name")+"server")
	for _, one := range a.clusters {
		if name != "" && one.name == name || name == "" && server != "" && one.server == server {
			return one
		}
	}
	if name == reconciler.HubName || isHub(server) {
		return &cluster{name: reconciler.HubName, server: reconciler.HubServer}
	}
	if name == "" {
		_, name, _ = strings.Cut(server, "://")
	}
	if name == "" {
		return nil
	}
	return &cluster{name: name, server: server}
}

func isHub(server string) bool {
	_, host, _ := strings.Cut(server, "://")
	host, _, _ = strings.Cut(host, ":")
	return host == "kubernetes.default.svc" || host == "kubernetes.default"
}

// labelsOfHost returns the labels that suit selectors.
func (c *cluster) labelsOfHost() map[string]string {
	kept := map[string]string{}
	for key, value := range c.labels {
		isLabel := fleet.CheckLabelKey(key) == "" && fleet.CheckLabelValue(value) == ""
		if key != reconciler.SecretType && !schedule.IsReserved(key) && value != "" && isLabel {
			kept[key] = value
		}
	}
	return kept
}

// notLabels are parameters that identify a cluster.
var notLabels = []string{"name", "nameNormalized", "server", "url", "project", "cluster", "clusterName", "namespace"}

// learnClusters adds clusters that only the parameters of an ApplicationSet describe, labelled by their common parameters.
func (a *placer) learnClusters(made []*manifestObject, params []map[string]any) {
	found := map[string]*cluster{}
	for i, o := range made {
		to := a.destinationOf(o)
		if to == nil || isHub(to.server) || slices.Contains(a.clusters, to) {
			continue
		}
		key := cmp.Or(to.server, to.name)
		texts := map[string]string{}
		for name, value := range params[i] {
			if text, isText := value.(string); isText && !strings.HasPrefix(name, "path") && !strings.Contains(name, ".") &&
				!slices.Contains(notLabels, name) {
				texts[name] = text
			}
		}
		if one := found[key]; one != nil {
			maps.DeleteFunc(one.labels, func(name, value string) bool { return texts[name] != value })
			continue
		}
		to.labels = texts
		if textAt(o.fields, o.kind.Destination) == "" { // a name says more than a server
			for _, name := range []string{"cluster", "clusterName", "name"} {
				if text, _ := params[i][name].(string); text != "" {
					to.name = text
					break
				}
			}
		}
		found[key] = to
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(a.clusters, func(one *cluster) bool { return one.name == found[key].name }) {
			a.clusters = append(a.clusters, found[key])
		}
	}
}
