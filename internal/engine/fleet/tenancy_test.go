package fleet_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestTenancyOfAWorkspace(t *testing.T) {
	for workspace, want := range map[string][]string{
		"service_account: team":                              nil,
		"service_account: 'a b'":                             {`workspaces["team"].service_account: "a b" is not a DNS subdomain`},
		"service_account: [a]":                               {`workspaces["team"].service_account: must be a string, not a list`},
		"service_account: (known after apply)":               nil,
		"argocd_project: team":                               nil,
		"argocd_project: {name: team}":                       nil,
		"argocd_project: {name: team, render: true}":         nil,
		"argocd_project: default":                            nil,
		"argocd_project: {name: default, render: true}":      {`workspaces["team"].argocd_project: "default" is Argo CD's own project`},
		"argocd_project: {name: team, render: 'yes'}":        {`workspaces["team"].argocd_project.render: must be true or false, not a string`},
		"argocd_project: {name: team, create: true}":         {`workspaces["team"].argocd_project.create: unknown attribute`},
		"argocd_project: {render: true}":                     {`workspaces["team"].argocd_project.name: is required`},
		"argocd_project: Team":                               {`workspaces["team"].argocd_project: "Team" is not a DNS subdomain`},
		"argocd_project: (known after apply)":                nil,
		"limit_range: [{default: {cpu: 1}, max: {cpu: 2}}]":  nil,
		"limit_range: [{type: Pod, max: {cpu: 2}}]":          nil,
		"limit_range: [{type: Pod, default: {cpu: 2}}]":      {`workspaces["team"].limit_range[0].default: is for limits of type Container`},
		"limit_range: [{type: pod, max: {cpu: 2}}]":          {`workspaces["team"].limit_range[0].type: must be one of Container, Pod, PersistentVolumeClaim, not "pod"; did you mean "Pod"?`},
		"limit_range: [{default: {cpu: much}}]":              {`workspaces["team"].limit_range[0].default["cpu"]: "much" is not a quantity`},
		"limit_range: [{defaults: {cpu: 1}}]":                {`workspaces["team"].limit_range[0].defaults: unknown attribute; did you mean "default"?`},
		"limit_range: {default: {cpu: 1}}":                   {`workspaces["team"].limit_range: must be a list of objects, not an object`},
		"limit_range: [{default_request: {'a b': '1'}}]":     {`workspaces["team"].limit_range[0].default_request["a b"]: "a b" is not a resource`},
		"limit_range: [{min: {cpu: (known after apply)}}]":   nil,
		"limit_range: [{max_limit_request_ratio: {cpu: 4}}]": nil,
	} {
		t.Run(workspace, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, "environment: dev\nworkspaces: [{name: team, "+workspace+"}]"))
			wantFindings(t, findings, want...)
		})
	}
}

func TestFormsOfConfiguration(t *testing.T) {
	prefix := `workloads["a"].deployment_targets["live"].config_as: `
	for forms, test := range map[string]struct {
		forms fleet.ConfigAs
		want  []string
	}{
		"[configmap]":                            {nil, nil},
		"[values, configmap]":                    {fleet.ConfigAs{"configmap", "values"}, nil},
		"['values:global.platform', substitute]": {fleet.ConfigAs{"substitute", "values:global.platform"}, nil},
		"['configmap:settings']":                 {fleet.ConfigAs{"configmap:settings"}, nil},
		"null":                                   {nil, nil},
		"[]":                                     {nil, []string{prefix + "is empty: give at least one form"}},
		"[value]":                                {fleet.ConfigAs{"value"}, []string{prefix + `"value" is not one of configmap, configmap:<name>, values, values:<key>, substitute, secret, secret:<name>; did you mean "values"?`}},
		"['substitute:x']":                       {fleet.ConfigAs{"substitute:x"}, []string{prefix + `"substitute:x" is not one of`}},
		"['configmap:A b']":                      {fleet.ConfigAs{"configmap:A b"}, []string{prefix + `"configmap:A b": the name of the ConfigMap is not a DNS subdomain`}},
		"['values:" + strings.Repeat("a.", 127) + "']": {fleet.ConfigAs{"values:" + strings.Repeat("a.", 127)}, []string{
			prefix + `"values:` + strings.Repeat("a.", 123) + `…": the keys are longer than 253 characters`,
		}},
		"['values:a..b']":      {fleet.ConfigAs{"values:a..b"}, []string{prefix + `"values:a..b": a key is empty`}},
		"[values, 'values:a']": {fleet.ConfigAs{"values", "values:a"}, []string{prefix + `"values" appears twice`}},
		"values":               {nil, []string{prefix + "must be a list of strings, not a string"}},
	} {
		t.Run(forms, func(t *testing.T) {
			decoded, findings := fleet.Decode(input(t, smallInput+
				"workloads: [{name: a, workspace: team, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x'}, config_as: "+forms+"}}}]"))
			wantFindings(t, findings, test.want...)
			if got := decoded.Fleet.Workloads[0].DeploymentTargets[0].Manifests.ConfigAs; !reflect.DeepEqual(got, test.forms) {
				t.Errorf("forms %q, want %q", got, test.forms)
			}
		})
	}
}

func TestFormsOfConfigurationAreInterpreted(t *testing.T) {
	type meaning struct {
		configMap     string
		isConfigMap   bool
		keys          []string
		isInValues    bool
		isSubstituted bool
	}
	for _, test := range []struct {
		forms fleet.ConfigAs
		want  meaning
	}{
		{nil, meaning{isConfigMap: true}},
		{fleet.ConfigAs{"configmap:a", "values"}, meaning{configMap: "a", isConfigMap: true, isInValues: true}},
		{fleet.ConfigAs{"values:a.b"}, meaning{keys: []string{"a", "b"}, isInValues: true}},
		{fleet.ConfigAs{"substitute"}, meaning{isSubstituted: true}},
	} {
		got := meaning{isSubstituted: test.forms.IsSubstituted()}
		got.configMap, got.isConfigMap = test.forms.ConfigMap()
		got.keys, got.isInValues = test.forms.Values()
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %+v, want %+v", test.forms, got, test.want)
		}
	}
}
