package renderer

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// scanKustomization refuses what kustomize would fetch or run. It reports whether OpenAPI schemas are set.
func scanKustomization(t *tree, folder, file string, text []byte) (hasSchema bool, err error) {
	s := scanner{tree: t, seen: map[string]bool{}}
	err = s.scanFile(folder, file, text)
	return s.hasSchema, err
}

type scanner struct {
	tree      *tree
	seen      map[string]bool // folders
	hasSchema bool
}

func (s *scanner) scanFile(folder, file string, text []byte) error {
	s.seen[folder] = true
	var k types.Kustomization
	if err := yaml.Unmarshal(text, &k); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.hasSchema = s.hasSchema || len(k.OpenAPI) > 0
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 {
		return fmt.Errorf("%s has helmCharts, which are not rendered: point to the chart itself"+orLeave, file)
	}
	for _, name := range s.files(&k) {
		if isRemote(name) {
			return remoteError(file, name)
		}
	}
	for _, list := range [][]string{k.Resources, k.Bases, //nolint:staticcheck // kustomizations have it still
		k.Components, k.Generators, k.Transformers, k.Validators} {
		for _, name := range list {
			if strings.Contains(name, "\n") {
				continue // inline content
			}
			if err := s.scanEntry(folder, file, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// files returns the paths that kustomize reads or fetches.
func (s *scanner) files(k *types.Kustomization) []string {
	names := append([]string{k.OpenAPI["path"]}, k.Crds...)
	names = append(names, k.Configurations...)
	for _, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // kustomizations have it still
		if !strings.Contains(string(patch), "\n") {
			names = append(names, string(patch))
		}
	}
	for _, patches := range [][]types.Patch{k.Patches, k.PatchesJson6902} { //nolint:staticcheck // kustomizations have it still
		for _, patch := range patches {
			names = append(names, patch.Path)
		}
	}
	for _, replacement := range k.Replacements {
		names = append(names, replacement.Path)
	}
	sources := []types.KvPairSources{}
	for _, generator := range k.ConfigMapGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, generator := range k.SecretGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, source := range sources {
		names = append(names, source.EnvSource)
		names = append(names, source.EnvSources...)
		for _, file := range source.FileSources {
			_, name, hasKey := strings.Cut(file, "=")
			if !hasKey {
				name = file
			}
			names = append(names, name)
		}
	}
	return names
}

// scanEntry accepts files and folders. Kustomize would fetch other entries.
func (s *scanner) scanEntry(folder, file, name string) error {
	full := path.Join(folder, name)
	if path.IsAbs(name) || leavesRoot(full) {
		return fmt.Errorf("%s has %q, which is outside of the artifact", file, name)
	}
	if target, leads := s.tree.outside[full]; leads {
		return fmt.Errorf("%s: %w", file, outsideError(full, target))
	}
	if _, isFile := s.tree.files[full]; isFile {
		return nil
	}
	if s.tree.isFolder(full) {
		if s.seen[full] {
			return nil
		}
		below := kustomizationFile(s.tree, full)
		if below == "" {
			return fmt.Errorf("%s has %q, a folder without a kustomization", file, name)
		}
		content, err := s.tree.read(below)
		if err != nil {
			return err
		}
		return s.scanFile(full, below, content)
	}
	if err := s.tree.exclusion(full); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if isRemote(name) || strings.ContainsAny(name, ":?@") || strings.HasPrefix(name, "github.com/") {
		return remoteError(file, name)
	}
	return fmt.Errorf("%s has %q, which does not exist in the artifact", file, name)
}

func isRemote(name string) bool {
	return strings.Contains(name, "://")
}

func remoteError(file, name string) error {
	return fmt.Errorf("%s refers to %s: rendering reads nothing from the network, so take it into the repository"+orLeave, file, name)
}
