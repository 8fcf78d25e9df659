package agent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// template is one document of [reconciler.Reconciler.AgentTemplate]: an object with placeholders such as ${name}, and
// conditions in its field `flotilla`.
type template struct {
	If string `json:"if"` // the object is omitted if it expands to nothing
	// Unless lists objects such as "Deployment argocd-server". If the agent's own manifests have one, this object is omitted.
	Unless []string `json:"unless"`
	// Folder is the folder of the values: "cluster-type" or "cluster", or "both" for an object of each.
	Folder  string `json:"folder"`
	Sets    string `json:"sets"`   // value that becomes the name of the object from here on
	Part    Part   `json:"part"`   // default: by kind
	Shared  string `json:"shared"` // the object is not shared if it expands to nothing
	Partial bool   `json:"partial"`

	object *unstructured.Unstructured
}

var templates = sync.OnceValue(func() map[string][]template {
	all := map[string][]template{}
	for _, name := range reconciler.Agents() {
		for _, document := range readDocuments(reconciler.Named(name).AgentTemplate()) {
			object, isObject := document.value.(map[string]any)
			if document.err != nil || !isObject {
				panic(fmt.Sprintf("template of the agent of %s, line %d: %v", name, document.line, document.err)) // it is part of the binary
			}
			one := template{object: &unstructured.Unstructured{Object: object}}
			if header, err := json.Marshal(object["flotilla"]); err != nil || json.Unmarshal(header, &one) != nil {
				panic(fmt.Sprintf("template of the agent of %s, line %d: field flotilla", name, document.line))
			}
			delete(object, "flotilla")
			all[name] = append(all[name], one)
		}
	}
	return all
})

func (r *renderer) render() {
	values, both := r.settings.values(), r.settings.folders()
	folders := map[string][]map[string]string{"": {nil}, "both": both, "cluster-type": both[:1], "cluster": both[1:]}
	for _, one := range templates()[r.settings.Reconciler] {
		for _, folder := range folders[one.Folder] {
			for name, text := range folder {
				values["folder."+name] = text
			}
			f := filler{values: values}
			if one.If == "" || f.text(one.If) != nil {
				r.add(&one, &f)
			}
		}
	}
}

// add adds an object, labelled as Flotilla's unless others may have created it.
func (r *renderer) add(one *template, f *filler) {
	replaces := func(o *StagedObject) bool { return slices.Contains(one.Unless, o.GetKind()+" "+o.GetName()) }
	if len(one.Unless) > 0 && (len(r.settings.Install) == 0 || slices.ContainsFunc(r.objects, replaces)) {
		return
	}
	object, _ := f.fill(one.object.Object, nil).(map[string]any)
	o := &StagedObject{
		Unstructured: &unstructured.Unstructured{Object: object},
		Handling:     Handling{Part: one.Part, Partial: one.Partial, Shared: one.Shared != "" && f.text(one.Shared) != nil},
	}
	o.Stage = stageOf(o.Unstructured)
	labels := o.GetLabels()
	if o.Stage == Rest && !o.Partial {
		if labels == nil {
			labels = map[string]string{}
		}
		if _, given := labels[reconciler.ManagedLabel]; !given {
			labels[reconciler.ManagedLabel] = reconciler.ManagedBy
		}
		o.SetLabels(labels)
	}
	if o.Shared && labels[reconciler.TypeLabel] != "" {
		o.Environment, _ = f.values["environment_label"].(string)
	}
	kind := reconciler.KindOf(o.GroupVersionKind().Group, o.GetKind())
	o.Reports = kind != nil && kind.Role != 0
	switch {
	case o.Part != "":
	case o.GetKind() == "Secret":
		o.Part = Credential
	case kind.Is(reconciler.Follows | reconciler.Maker):
		o.Part = Root
	default:
		o.Part = Source
	}
	if o.Part != Credential {
		o.FromCredentials = f.fromCredentials
	}
	if one.Sets != "" {
		f.values[one.Sets] = o.GetName()
	}
	isSame := func(other *StagedObject) bool { return o.Partial && other.Partial && other.ID() == o.ID() }
	if at := slices.IndexFunc(r.objects, isSame); at >= 0 {
		r.mergeFields(o, r.objects[at])
		return
	}
	r.objects = append(r.objects, o)
}

type filler struct {
	values          map[string]any
	fromCredentials [][]string
	hasCredential   bool // of the current field
}

// fill replaces placeholders, and omits a value whose placeholders are all empty. A whole placeholder becomes its value
// of any type; as a key, its entries. In data of a Secret or ConfigMap, values become text: JSON in stringData, YAML in
// data.
func (f *filler) fill(value any, at []string) any {
	switch value := value.(type) {
	case string:
		f.hasCredential = false
		filled := f.text(value)
		if f.hasCredential && filled != nil {
			f.fromCredentials = append(f.fromCredentials, slices.Clone(at))
		}
		return filled
	case map[string]any:
		object := map[string]any{}
		for name, element := range value {
			switch key := f.text(name).(type) {
			case string:
				if inner := f.fill(element, append(at, key)); inner != nil {
					object[key] = f.asText(inner, at, key)
				}
			case map[string]string:
				for key, text := range key {
					object[key] = text
				}
			}
		}
		if len(object) > 0 || len(value) == 0 {
			return object
		}
		return nil
	case []any:
		list := []any{}
		for _, element := range value {
			if inner := f.fill(element, at); inner != nil {
				list = append(list, inner)
			}
		}
		if len(list) > 0 || len(value) == 0 {
			return list
		}
		return nil
	}
	return value
}

func (f *filler) asText(value any, at []string, key string) any {
	_, isText := value.(string)
	if isText || len(at) != 1 || at[0] != "data" && at[0] != "stringData" {
		return value
	}
	for i, path := range f.fromCredentials { // paths of fields of the value
		if len(path) > 2 && path[0] == at[0] && path[1] == key {
			f.fromCredentials[i] = path[:2]
		}
	}
	f.fromCredentials = slices.CompactFunc(f.fromCredentials, slices.Equal)
	marshal := yaml.Marshal
	if at[0] == "stringData" {
		marshal = json.Marshal // sorts the keys
	}
	text, err := marshal(value)
	if err != nil {
		return nil
	}
	return string(text)
}

// text replaces the placeholders of a text; nil if there are some and all are empty.
func (f *filler) text(text string) any {
	names := placeholder.FindAllStringSubmatch(text, -1)
	if names == nil {
		return text
	}
	if value := f.value(names[0][1]); names[0][0] == text && value != "" {
		return value
	}
	isEmpty := true
	filled := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		given, _ := f.value(placeholder.FindStringSubmatch(found)[1]).(string)
		isEmpty = isEmpty && given == ""
		return given
	})
	if isEmpty {
		return nil
	}
	return filled
}

func (f *filler) value(name string) any {
	value, isKnown := f.values[name]
	if !isKnown {
		panic(fmt.Sprintf("template of an agent: ${%s} is no value", name)) // it is part of the binary
	}
	f.hasCredential = f.hasCredential || strings.HasPrefix(name, "credentials.")
	return value
}

// values returns the values of placeholders in templates of agents' objects, all strings but registration. Values whose
// names begin with "credentials." are secret and in no state.
func (s *Settings) values() map[string]any {
	c, app := &s.Credentials, cmp.Or(s.Credentials.GitHubApp, &GitHubApp{})
	username, password := c.Username, cmp.Or(c.Token, c.Password)
	switch {
	case c.Token != "":
		username = forge.TokenUser(repositoryHost(s.Repository.URL), username, "git")
	case c.Password == "":
		username = ""
	}
	values := map[string]any{
		"cluster": s.Cluster, "name": s.Name, "namespace": s.Namespace, "interval": duration(s.Interval), "timeout": duration(s.Timeout),
		"cluster_label": render.LabelValue(s.Cluster), "cluster_type_label": render.LabelValue(s.ClusterType),
		"environment_label": render.LabelValue(s.Environment),
		"url":               s.Repository.URL, "branch": s.Repository.Branch, "git_host": repositoryHost(s.Repository.URL),
		"secret": s.CredentialsSecret, "ca_secret": "", "repository_auth": s.repositoryAuth(), "no_folder": s.reconciler().NoFolder,
		"app_provider": "", "on_hub": "", "on_cluster": "",
		"decryption.provider": "", "decryption.secret": "", "decryption.service_account": "",
		"credentials.username": username, "credentials.password": password, "credentials.bearer_token": c.BearerToken,
		"credentials.ssh_private_key": c.SSHPrivateKey, "credentials.ssh_known_hosts": "", "credentials.ssh_passphrase": "",
		"credentials.ca_certificates": c.CACertificates, "credentials.ca_certificates_base64": encoded(c.CACertificates),
		"credentials.https_ca_certificates": "",
		"credentials.app_id":                app.ID, "credentials.app_installation_id": app.InstallationID,
		"credentials.app_private_key": app.PrivateKey, "credentials.app_url": app.URL,
	}
	if c.GitHubApp != nil {
		values["app_provider"] = string(forge.GitHub)
	}
	if c.SSHPrivateKey != "" {
		values["credentials.ssh_known_hosts"], values["credentials.ssh_passphrase"] = c.SSHKnownHosts, c.SSHPassphrase
	} else {
		values["credentials.https_ca_certificates"] = c.CACertificates
	}
	if s.reconciler().OnHub() {
		values["on_hub"] = "true"
	} else {
		values["on_cluster"] = "true"
	}
	if by := s.Decryption; by != nil {
		values["decryption.provider"] = "sops"
		values["decryption.secret"], values["decryption.service_account"] = by.Secret, by.ServiceAccount
	}
	s.addFeedback(values)
	addRegistration(values, cmp.Or(s.Registration, &Registration{}))
	return values
}

func (s *Settings) repositoryAuth() string {
	words := s.reconciler().Agent.Auth
	switch {
	case s.Credentials.GitHubApp != nil:
		return words["github_app"]
	case s.isSSH():
		return words["ssh_private_key"]
	case s.CredentialsSecret != "" || s.Credentials.Token != "" || s.Credentials.Password != "":
		return words["password"]
	}
	return words[""]
}

func (s *Settings) folders() []map[string]string {
	folder := func(suffix, name string) map[string]string {
		return map[string]string{
			"suffix": suffix, "path": path.Join(s.Repository.Path, name), "label": render.LabelValue(name),
			// A hub may have clusters of several environments.
			"hub_name": render.LabelValue(s.Name + "-" + s.Environment + "-" + strings.ReplaceAll(name, "/", "-")),
		}
	}
	return []map[string]string{folder("cluster-type", s.ClusterType), folder("cluster", "clusters/"+s.Cluster)}
}

func addRegistration(values map[string]any, to *Registration) {
	exec, aws := cmp.Or(to.Exec, &Exec{}), cmp.Or(to.AWS, &AWS{})
	maps.Copy(values, map[string]any{
		"registration.secret": to.Secret, "registration.server": strings.TrimRight(to.Server, "/"), "registration.insecure": to.Insecure,
		"registration.tls_server_name": to.TLSServerName, "registration.token": to.Token, "registration.labels": to.Labels,
		"registration.ca_certificate_base64":     encoded(to.CACertificate),
		"registration.client_certificate_base64": encoded(to.ClientCert), "registration.client_key_base64": encoded(to.ClientKey),
		"registration.command": exec.Command, "registration.api_version": exec.APIVersion, "registration.args": "",
		"registration.env": "", "registration.aws_cluster_name": aws.ClusterName, "registration.aws_role_arn": aws.RoleARN,
	})
	if len(exec.Args) > 0 {
		values["registration.args"] = exec.Args
	}
	if len(exec.Env) > 0 {
		values["registration.env"] = exec.Env
	}
}

func (s *Settings) addFeedback(values map[string]any) {
	f := cmp.Or(s.Feedback, &Reporting{})
	app := cmp.Or(f.App, &GitHubApp{})
	replace := func(suffix string) string {
		return strings.NewReplacer(clusterPlaceholder, s.Cluster, hostPlaceholder, suffix).Replace(f.Context)
	}
	ofType, own := replace("cluster-type"), replace("cluster")
	maps.Copy(values, map[string]any{
		"feedback.url": f.URL, "feedback.secret": f.Secret, "feedback.cluster_type_context": ofType, "feedback.cluster_context": own,
		"feedback.provider": f.Forge.Kind().Flux, "feedback.subscription": "", "feedback.webhook": "",
		"credentials.feedback_token": f.Token, "credentials.feedback_app_id": app.ID,
		"credentials.feedback_app_installation_id": app.InstallationID,
		"credentials.feedback_app_private_key":     app.PrivateKey, "credentials.feedback_app_url": app.URL,
	})
	choose := func(own, ofType string) string {
		chosen := filler{values: map[string]any{"name": s.Name, "feedback.cluster_context": own, "feedback.cluster_type_context": ofType}}
		text, _ := chosen.text(s.reconciler().Agent.NoticeContext).(string)
		return text
	}
	context, key := choose(own, ofType), choose(forge.StatusKey(own), forge.StatusKey(ofType))
	values["feedback.context"] = context
	for _, notice := range s.reconciler().Agent.Notices {
		path, body := "", ""
		if s.Feedback != nil && f.App == nil {
			path, body = statusRequest(f, &notice, context, key)
		}
		values["feedback."+notice.Name+"_path"], values["feedback."+notice.Name+"_body"] = path, body
	}
	switch {
	case s.Feedback == nil:
	case f.App != nil:
		values["feedback.subscription"] = s.Name + "." + string(forge.GitHub)
	default:
		token := "$" + s.Name + "-token"
		if f.Secret != "" {
			token = "$" + f.Secret + ":token"
		}
		values["feedback.subscription"], values["feedback.webhook"] = s.Name+"."+s.Name, webhookService(f, token)
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// duration formats a duration like Kubernetes' library, as API servers return it.
func duration(d time.Duration) string { return d.Round(time.Second).String() }

func repositoryHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// Texts encodes objects as YAML documents, without "---".
func Texts(objects []StagedObject) ([]string, error) {
	texts := make([]string, len(objects))
	for i := range objects {
		var text strings.Builder
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)
		if err := encoder.Encode(objects[i].Object); err != nil {
			return nil, err
		}
		if err := encoder.Close(); err != nil {
			return nil, err
		}
		texts[i] = text.String()
	}
	return texts, nil
}
