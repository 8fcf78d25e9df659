package releasecheck_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What the registries ask for is in the configuration of goreleaser. `make release-check` shows that goreleaser makes it.
func TestTheConfigurationNamesWhatARegistryWants(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.goreleaser.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Builds []struct {
			Binary  string   `json:"binary"`
			Flags   []string `json:"flags"`
			LDFlags []string `json:"ldflags"`
			Targets []string `json:"targets"`
		} `json:"builds"`
		Archives []struct {
			Formats []string `json:"formats"`
			Name    string   `json:"name_template"`
		} `json:"archives"`
		Checksum struct {
			Name  string `json:"name_template"`
			Extra []struct {
				Glob string `json:"glob"`
				Name string `json:"name_template"`
			} `json:"extra_files"`
		} `json:"checksum"`
		Signs []struct {
			Artifacts string `json:"artifacts"`
		} `json:"signs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Builds) != 1 || len(config.Archives) != 1 || len(config.Checksum.Extra) != 1 || len(config.Signs) != 1 {
		t.Fatal("want one build, archive, further file with a checksum, and signature each")
	}
	build, of := config.Builds[0], "{{ .ProjectName }}_{{ .Version }}_"
	for what, pair := range map[string][2]string{
		"program":   {build.Binary, "{{ .ProjectName }}_v{{ .Version }}"},
		"flags":     {strings.Join(build.Flags, " "), "-trimpath"},
		"linker":    {strings.Join(build.LDFlags, " "), "-s -w -X main.version={{ .Version }}"},
		"archive":   {config.Archives[0].Name, of + "{{ .Os }}_{{ .Arch }}"},
		"format":    {strings.Join(config.Archives[0].Formats, " "), "zip"},
		"checksums": {config.Checksum.Name, of + "SHA256SUMS"},
		"manifest":  {config.Checksum.Extra[0].Glob + " " + config.Checksum.Extra[0].Name, "terraform-registry-manifest.json " + of + "manifest.json"},
		"signature": {config.Signs[0].Artifacts, "checksum"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	for _, system := range []string{"linux", "darwin", "windows", "freebsd"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			if !slices.Contains(build.Targets, system+"_"+architecture) {
				t.Errorf("nothing is built for %s on %s", system, architecture)
			}
		}
	}
}
