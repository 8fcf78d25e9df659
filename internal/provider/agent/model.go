package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// agentPrivate is the private state: the applied objects and the result of the last refresh.
type agentPrivate struct {
	Cluster string              `json:"cluster,omitempty"` // at the last apply
	Records []onboarding.Record `json:"records,omitempty"`
	UID     string              `json:"uid,omitempty"` // of the cluster
	// Shape lists the paths of given credentials, without values.
	Shape   []string         `json:"shape,omitempty"`
	Drift   onboarding.Drift `json:"drift,omitzero"`
	Reached clusterAccess    `json:"reached,omitzero"` // connection from the hub, as last applied
}

type appliedObject struct {
	uid string
	id  agent.ID
}

func (m *agentPrivate) identityOf(record *onboarding.Record) appliedObject {
	return appliedObject{m.UID, record.ID()}
}

type clusterAccess struct {
	Server        string `json:"server,omitempty"`
	CA            string `json:"ca,omitempty"`
	TLSServerName string `json:"tls_server_name,omitempty"`
}

func accessOf(clusters *connection.Clusters, name string) clusterAccess {
	known, isKnown := clusters.Known[name]
	if !isKnown || known.Kubeconfig != "" {
		return clusterAccess{}
	}
	return clusterAccess{known.Host, known.ClusterCACertificate, known.TLSServerName}
}

func (r clusterAccess) clusters(name string) *connection.Clusters {
	known := map[string]kube.Cluster{}
	if r != (clusterAccess{}) {
		known[name] = kube.Cluster{Host: r.Server, ClusterCACertificate: r.CA, TLSServerName: r.TLSServerName}
	}
	return &connection.Clusters{Known: known}
}

const agentEntry = "agent"

func loadAgent(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *agentPrivate {
	m := &agentPrivate{}
	text, diags := private.GetKey(ctx, agentEntry)
	diagnostics.Append(diags...)
	if text != nil && json.Unmarshal(text, m) != nil {
		diagnostics.AddWarning("Private state cannot be read", "The provider reads what it has applied from the cluster instead.")
		return &agentPrivate{}
	}
	return m
}

func (m *agentPrivate) save(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) {
	privatestate.Save(ctx, agentEntry, m, private, diagnostics)
}

func (m *agentPrivate) equal(other *agentPrivate) bool {
	one, err := json.Marshal(m)
	another, otherErr := json.Marshal(other)
	return err == nil && otherErr == nil && string(one) == string(another)
}

func (m *agentModel) isOnHub() bool { return reconciler.Named(m.Reconciler.ValueString()).OnHub() }

func (m *agentModel) checkHub(diagnostics *diag.Diagnostics) {
	isHub, hub := m.isOnHub(), reconciler.Hub()
	problem := ""
	switch {
	case m.Reconciler.IsUnknown() || m.Hub.IsUnknown():
	case isHub && m.Hub.ValueString() == "":
		problem = fmt.Sprintf("hub is required with reconciler = %q: the name of the cluster that has %s, an entry of the provider's clusters.",
			hub.Name, hub.Product)
	case !isHub && !m.Hub.IsNull():
		problem = fmt.Sprintf("hub is for reconciler = %q only.", hub.Name)
	case isHub && m.Hub.ValueString() == m.Cluster.ValueString() && !m.Cluster.IsUnknown():
		problem = fmt.Sprintf("hub is the cluster itself: reconciler = %q is for an %s in the cluster.", hub.HubOf, hub.Product)
	}
	if problem != "" {
		diagnostics.AddAttributeError(path.Root("hub"), "Invalid agent", problem)
	}
}

// The effects of a destroy on a cluster that cannot be reached.
const (
	failUnreachable = "fail"
	forgetCluster   = "forget"
)

// secrets returns credentials_wo by attribute: credentials are the repository's.
func (m *agentModel) secrets(diagnostics *diag.Diagnostics) map[string]any {
	switch given := tfvalue.Plain(m.Secrets).(type) {
	case nil:
		return nil
	case fleet.Unknown:
		return map[string]any{"credentials": given}
	case map[string]any:
		repository, all := maps.Clone(given), map[string]any{}
		for _, part := range secretParts {
			all[part.Name] = given[part.Name]
			delete(repository, part.Name)
		}
		if len(repository) > 0 {
			all["credentials"] = repository
		}
		return all
	}
	diagnostics.AddAttributeError(path.Root("credentials_wo"), "Invalid agent", "Must be an object, such as { token = var.token }.")
	return nil
}

// settings decodes the settings with their secrets. known is false while a part is unknown. A hub takes its connection
// from clusters.
func (m *agentModel) settings(
	secrets map[string]any,
	clusters *connection.Clusters,
	diagnostics *diag.Diagnostics,
) (settings agent.Settings, known bool) {
	value := map[string]any{
		"credentials":  secrets["credentials"],
		"feedback":     m.join("feedback", m.Feedback, secrets, diagnostics),
		"registration": m.registration(m.join("registration", m.Registration, secrets, diagnostics), clusters),
	}
	for name, attribute := range map[string]attr.Value{
		"cluster": m.Cluster, "cluster_type": m.ClusterType, "reconciler": m.Reconciler,
		"environment": m.Environment, "name": m.Name, "namespace": m.Namespace,
		"interval": m.Interval, "timeout": m.Timeout, "gitops_repo": m.GitopsRepo, "install": m.Install,
		"decryption": m.Decryption, "confine": m.Confine,
	} {
		value[name] = tfvalue.Plain(attribute)
	}
	tfvalue.ReadStrictly("credentials", SecretTable, m.Credentials, diagnostics,
		func(o *fleet.ObjectReader) { value["credentials_secret"], _ = o.Value("secret") })
	maps.DeleteFunc(value, func(_ string, given any) bool { return given == nil })
	settings, known, problems := agent.Decode(value)
	addAgentProblems(diagnostics, problems)
	return settings, known
}

func (m *agentModel) join(name string, attribute types.Dynamic, secrets map[string]any, diagnostics *diag.Diagnostics) any {
	given, secret := tfvalue.Plain(attribute), secrets[name]
	object, isObject := given.(map[string]any)
	hidden, isHidden := secret.(map[string]any)
	switch {
	case secret == nil:
		return given
	case given == nil, !fleet.IsKnown(secret) && (!isObject || !isHidden):
		return secret
	case !isHidden:
		diagnostics.AddAttributeError(path.Root("credentials_wo"), "Invalid agent", name+" must be an object.")
		return given
	case !isObject:
		return given
	}
	joined := maps.Clone(object)
	for key, value := range hidden {
		if joined[key] != nil && value != nil {
			diagnostics.AddAttributeError(path.Root("credentials_wo"), "Invalid agent",
				fmt.Sprintf("%s.%s is given twice: in credentials_wo, and in %s.", name, key, name))
		}
		joined[key] = value
	}
	return joined
}

// registration adds the provider's connection to the given registration.
func (m *agentModel) registration(given any, clusters *connection.Clusters) any {
	object, isObject := given.(map[string]any)
	if !m.isOnHub() || given != nil && !isObject || object["secret"] != nil {
		return given
	}
	full := map[string]any{}
	name := m.Cluster.ValueString()
	if clusters.Unknown || clusters.Waiting[name] || m.Cluster.IsUnknown() {
		if object["server"] == nil {
			full["server"] = fleet.Unknown{}
		}
	} else {
		by := accessOf(clusters, name)
		for key, text := range map[string]string{"server": by.Server, "cluster_ca_certificate": by.CA, "tls_server_name": by.TLSServerName} {
			if text != "" {
				full[key] = text
			}
		}
	}
	for key, value := range object {
		if value != nil {
			full[key] = value
		}
	}
	return full
}

// agentAttributes are settings with another name in the resource.
var agentAttributes = map[string]string{"credentials": "credentials_wo", "credentials_secret": "credentials.secret"}

func addAgentProblems(diagnostics *diag.Diagnostics, problems []agent.SettingsProblem) {
	for _, problem := range problems {
		name := problem.Path
		if end := strings.IndexAny(name, ".["); end >= 0 {
			name = name[:end]
		}
		at, text := problem.Path, problem.Message
		if given, renamed := agentAttributes[name]; renamed {
			at = strings.Replace(at, name, given, 1)
			name, _, _ = strings.Cut(given, ".")
		}
		switch word, _, _ := strings.Cut(text, " "); {
		case at == "":
		case slices.Contains([]string{"is", "must", "has", "holds", "cannot"}, word):
			text = at + " " + text // a clause whose subject is the attribute
		default:
			text = at + ": " + text
		}
		attribute := path.Root(cmp.Or(name, "cluster"))
		if problem.Warning {
			diagnostics.AddAttributeWarning(attribute, "Agent may not do what you expect", tfvalue.Sentence(text))
			continue
		}
		diagnostics.AddAttributeError(attribute, "Invalid agent", tfvalue.Sentence(text))
	}
}

func shapeOf(secrets map[string]any) []string {
	var shape []string
	walk(nil, secrets, func(at []string, _ any) { shape = append(shape, strings.Join(at, ".")) })
	return shape
}

// hasUnknownObject reports whether a whole object of credentials is unknown: its keys decide which objects are applied.
func hasUnknownObject(secrets map[string]any) bool {
	found := false
	walk(nil, secrets, func(at []string, value any) {
		attribute := &fleet.Attribute{Of: SecretsTable}
		if at[0] == "credentials" { // the attributes of credentials_wo itself
			at = at[1:]
		}
		for _, key := range at {
			if attribute = attribute.Of.Find(key); attribute == nil || attribute.Of == nil {
				return
			}
		}
		found = found || !fleet.IsKnown(value)
	})
	return found
}

// walk calls do for each value that is no object, in the order of keys.
func walk(at []string, object map[string]any, do func(at []string, value any)) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		below := append(slices.Clone(at), key)
		if inner, isObject := object[key].(map[string]any); isObject {
			walk(below, inner, do)
		} else if object[key] != nil {
			do(below, object[key])
		}
	}
}

// placeholders returns values that render to the same objects as credentials.
func placeholders(shape []string) map[string]any {
	all := map[string]any{}
	for _, at := range shape {
		keys := strings.Split(at, ".")
		_ = unstructured.SetNestedField(all, standIn(keys[len(keys)-1]), keys...)
	}
	return all
}

func standIn(key string) any {
	switch key {
	case "ssh_private_key", "private_key", "client_key":
		return "-----BEGIN PRIVATE KEY-----\nunknown\n-----END PRIVATE KEY-----\n"
	case "ca_certificates", "client_certificate":
		return "-----BEGIN CERTIFICATE-----\nunknown\n-----END CERTIFICATE-----\n"
	case "id", "installation_id":
		return "1"
	case "url":
		return "https://unknown.invalid"
	case "insecure":
		return true
	}
	return "unknown"
}

// hiddenIn returns the texts that no error may contain: credentials, and texts with them, such as the JSON in Argo CD's
// Secret of a cluster.
func hiddenIn(secrets map[string]any, objects []agent.StagedObject) []string {
	hidden := slices.DeleteFunc(credentialsIn(secrets), func(text string) bool { return text == "" })
	var held []string
	for i := range objects {
		if objects[i].GetKind() != "Secret" {
			continue
		}
		texts, _, _ := unstructured.NestedStringMap(objects[i].Object, "stringData")
		for _, text := range texts {
			if slices.ContainsFunc(hidden, func(secret string) bool { return strings.Contains(text, secret) }) {
				held = append(held, text)
			}
		}
	}
	return append(hidden, held...)
}

// notSecret lists credentials that may be shown.
var notSecret = []string{"username", "id", "installation_id", "url", "ssh_known_hosts", "ca_certificates"}

func credentialsIn(secrets map[string]any) []string {
	var hidden []string
	walk(nil, secrets, func(at []string, value any) {
		if text, isText := value.(string); isText && !slices.Contains(notSecret, at[len(at)-1]) {
			hidden = append(append(hidden, strings.TrimSpace(text)), secret.KeyForms(text)...)
		}
	})
	slices.Sort(hidden)
	return slices.Compact(hidden)
}
