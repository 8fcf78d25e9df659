package changes_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// sampleWithSecrets returns the sample with secret references in the containers "east" and "platform", and an encrypted file.
func sampleWithSecrets(tb testing.TB, change func(map[string]*fleet.ContainerSecrets, *fleet.Fleet)) renderedFleet {
	tb.Helper()
	f, config := sample()
	for i := range f.ClusterTypes {
		f.ClusterTypes[i].SecretService, f.ClusterTypes[i].SecretStores = "external-secrets", map[string]fleet.SecretStore{"vault": {}}
	}
	secrets := map[string]*fleet.ContainerSecrets{
		"east": {References: map[string]*fleet.SecretReference{"DB_PASSWORD": {Store: "vault", Key: "east/db", Version: "3"}}},
		"platform": {
			References: map[string]*fleet.SecretReference{"TOKEN": {Store: "vault", Key: "token"}},
			Encrypted:  []string{fleettest.Sealed("tls", "shop")},
		},
		"office": {},
	}
	change(secrets, f)
	for i := range f.ConfigContainers {
		if containerSecrets := secrets[f.ConfigContainers[i].Name]; containerSecrets != nil {
			if err := config.SetSecrets(&f.ConfigContainers[i], *containerSecrets); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return mustRender(tb, f, config)
}

func TestLineNamesChangedSecretReferencesAndEncryptedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		change func(map[string]*fleet.ContainerSecrets, *fleet.Fleet)
		want   string // the line of the file
	}{
		"a version": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["east"].References["DB_PASSWORD"].Version = "4"
			},
			"file files=platform-secrets.yaml keys=spec.data.DB_PASSWORD.remoteRef.version at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:east",
		},
		"another secret": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["platform"].References["TOKEN"].Key = "other"
			},
			"file files=platform-secrets.yaml keys=spec.data.TOKEN.remoteRef.key at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:platform",
		},
		"a new first reference": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["office"].References = map[string]*fleet.SecretReference{"API": {Store: "vault", Key: "api"}}
			},
			"file files=platform-secrets.yaml keys=spec.data.API:new at=large/reports-nightly by=config_container:office",
		},
		"a reference removed by another container": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["office"].References = map[string]*fleet.SecretReference{"TOKEN": nil}
			},
			"file files=platform-secrets.yaml keys=spec.data.TOKEN:removed at=large/reports-nightly by=config_container:office",
		},
		"an encrypted file": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["platform"].Encrypted[0] = strings.Replace(secrets["platform"].Encrypted[0], "AQAA", "AQAB", 1)
			},
			"file files=encrypted-tls.yaml keys=spec.encryptedData.PASSWORD at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:platform",
		},
		"a new encrypted file": {
			func(secrets map[string]*fleet.ContainerSecrets, _ *fleet.Fleet) {
				secrets["east"].Encrypted = []string{fleettest.Sealed("db", "shop")}
			},
			"file files=encrypted-db.yaml keys=new_file at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:east",
		},
		"a store": {
			func(_ map[string]*fleet.ContainerSecrets, f *fleet.Fleet) {
				f.ClusterTypes[0].SecretStores = map[string]fleet.SecretStore{"vault": {Name: "vault-east"}}
			},
			"file files=platform-secrets.yaml keys=spec.secretStoreRef.name at=large/hello-live,large/reports-nightly by=cluster_type:large",
		},
		"a decryption key, which is in no folder": {
			func(_ map[string]*fleet.ContainerSecrets, f *fleet.Fleet) {
				f.ClusterTypes[0].Decryption = &fleet.Decryption{Secret: "sops-age"}
				manifests := &f.Workloads[0].DeploymentTargets[0].Manifests
				manifests.Branch, manifests.Tag = "", "v9"
			},
			"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/hello-live,small/hello-live by=workload:hello",
		},
		"a template": {
			func(_ map[string]*fleet.ContainerSecrets, f *fleet.Fleet) {
				f.Templates = []fleet.Template{{Name: "external-secrets", Type: "secret", Manifests: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: '{{ .Namespace }}'}\n"}}}
			},
			"file files=platform-secrets.yaml keys=new,removed at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=template:external-secrets:new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := sampleWithSecrets(t, func(map[string]*fleet.ContainerSecrets, *fleet.Fleet) {})
			after := sampleWithSecrets(t, test.change)
			lines := summarize(before, after)
			// The digests of values, which are kept between plans, give the same lines.
			digested := *before.version
			digested.Config = changes.Digest(before.version.Config)
			before.version = &digested
			equalLines(t, summarize(before, after), lines)
			if len(lines) != 2 || lines[1] != test.want {
				t.Errorf("%s\nwant %s", strings.Join(lines, "\n"), test.want)
			}
		})
	}
}
