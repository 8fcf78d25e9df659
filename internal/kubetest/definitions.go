package kubetest

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// source is a module, and which of its files hold definitions.
type source struct{ module, pattern string }

// published are the modules that hold the definitions of the kinds of agents,
// and where in them. notification-controller's are not on the module proxy.
var published = []source{
	{"github.com/fluxcd/source-controller@v1.9.5", "config/crd/bases/*.yaml"},
	{"github.com/fluxcd/kustomize-controller@v1.9.5", "config/crd/bases/*.yaml"},
	{"github.com/fluxcd/helm-controller@v1.6.0", "config/crd/bases/*.yaml"},
	{"github.com/argoproj/argo-cd/v3@v3.2.11", "manifests/crds/*-crd.yaml"},
	{"github.com/rancher/fleet@v0.15.0", "charts/fleet-crd/templates/crds.yaml"},
}

// ofSecrets are the modules with the kinds of secret services, and SealedSecrets. The newest versions of External Secrets Operator are not on the
// module proxy, since the path of their module lacks the major version.
var ofSecrets = []source{
	{"github.com/external-secrets/external-secrets@v1.3.2", "config/crds/bases/external-secrets.io_*externalsecrets.yaml"},
	{"github.com/external-secrets/external-secrets@v1.3.2", "config/crds/bases/external-secrets.io_*secretstores.yaml"},
	{"sigs.k8s.io/secrets-store-csi-driver@v1.6.0", "config/crd/bases/*_secretproviderclasses.yaml"},
	{"github.com/bitnami-labs/sealed-secrets@v0.40.0", "helm/sealed-secrets/crds/*.yaml"},
}

// configSync are the definitions of Config Sync, whose module the module proxy does not have.
//
//go:embed configsync/*.yaml
var configSync embed.FS

// Definitions returns the files with the definitions of the kinds of Flux, Argo
// CD, Rancher Fleet and Config Sync, by module, from the module cache or the module proxy.
// An error names the module that could not be had.
func Definitions(ctx context.Context) (map[string][][]byte, error) {
	definitions, err := read(ctx, published)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(configSync, "configsync/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		text, err := configSync.ReadFile(path)
		if err != nil {
			return nil, err
		}
		definitions["configsync"] = append(definitions["configsync"], text)
	}
	return definitions, nil
}

// SecretDefinitions returns, in the same way, the files with the definitions of the kinds of External Secrets Operator,
// Secrets Store CSI Driver and SealedSecrets.
func SecretDefinitions(ctx context.Context) (map[string][][]byte, error) {
	return read(ctx, ofSecrets)
}

func read(ctx context.Context, sources []source) (map[string][][]byte, error) {
	definitions := map[string][][]byte{}
	for _, source := range sources {
		folder, err := download(ctx, source.module)
		if err != nil {
			return nil, err
		}
		paths, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(source.pattern)))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s holds no %s: %w", source.module, source.pattern, err)
		}
		slices.Sort(paths)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			definitions[source.module] = append(definitions[source.module], text)
		}
	}
	return definitions, nil
}

// download makes sure that a module is in the module cache, and returns its
// folder there.
func download(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir() // outside of the module of the test
	output, err := cmd.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &downloaded); jsonErr != nil || downloaded.Dir == "" {
		return "", fmt.Errorf("%s cannot be downloaded: %w: %s", module, err, downloaded.Error)
	}
	return downloaded.Dir, nil
}

// define has the API know the kinds of definitions, and waits until it serves them.
func (s *Server) define(ctx context.Context, of func(context.Context) (map[string][][]byte, error)) error {
	definitions, err := of(ctx)
	if err != nil {
		return err
	}
	var defined []*unstructured.Unstructured
	for _, module := range slices.Sorted(maps.Keys(definitions)) {
		for _, text := range definitions[module] {
			applied, err := s.objects.applyAll(ctx, string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
			defined = append(defined, applied...)
		}
	}
	return s.objects.awaitServed(ctx, defined)
}

// awaitServed waits until discovery has the kinds of definitions, which is seconds after they were written.
func (o *objects) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	missing := map[schema.GroupVersionKind]bool{}
	for _, definition := range definitions {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, version := range versions {
			if version, _ := version.(map[string]any); version["served"] == true {
				name, _ := version["name"].(string)
				missing[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = true
			}
		}
	}
	for {
		_, lists, err := o.kinds.ServerGroupsAndResources()
		for _, list := range lists {
			version, parseErr := schema.ParseGroupVersion(list.GroupVersion)
			err = errors.Join(err, parseErr)
			for i := range list.APIResources {
				delete(missing, version.WithKind(list.APIResources[i].Kind))
			}
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d kinds are not served: %w", len(missing), errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
