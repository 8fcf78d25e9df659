package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	project = "terraform-provider-flotilla"
	// protocol is what the provider serves.
	protocol = "6.0"
)

// release is what goreleaser has left in a folder.
type release struct {
	folder  string
	version string
	sums    map[string]string // of files, by name: SHA-256 in hex
}

// check reads a release and returns all that is wrong with it. The platforms are those that it has to have, as
// <os>_<arch>, and no others.
func check(folder, manifest string, platforms []string) (*release, error) {
	r, err := read(folder)
	if err != nil {
		return nil, err
	}
	expected := map[string]bool{}
	found := []error{r.checkManifest(manifest)}
	for _, platform := range platforms {
		name := fmt.Sprintf("%s_%s_%s.zip", project, r.version, platform)
		expected[name] = true
		found = append(found, r.checkArchive(name, platform))
	}
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		if !expected[name] && name != r.manifest() {
			found = append(found, fmt.Errorf("%s has a checksum, and is nothing that a registry takes", name))
		}
	}
	return r, errors.Join(found...)
}

// read finds the version in the name of the file with the checksums.
func read(folder string) (*release, error) {
	const suffix = "_SHA256SUMS"
	matches, err := filepath.Glob(filepath.Join(folder, project+"_*"+suffix))
	if err != nil || len(matches) != 1 {
		return nil, fmt.Errorf("%s has %d files %s_<version>%s, and not one", folder, len(matches), project, suffix)
	}
	name := filepath.Base(matches[0])
	r := &release{folder: folder, sums: map[string]string{}, version: strings.TrimSuffix(strings.TrimPrefix(name, project+"_"), suffix)}
	text, err := os.ReadFile(matches[0])
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		sum, file, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != sha256.Size*2 {
			return nil, fmt.Errorf("%s: %q is no checksum", name, lines.Text())
		}
		r.sums[file] = sum
	}
	return r, lines.Err()
}

func (r *release) manifest() string { return project + "_" + r.version + "_manifest.json" }

func (r *release) checkSum(name string, content []byte) error {
	sum := sha256.Sum256(content)
	switch r.sums[name] {
	case "":
		return fmt.Errorf("%s has no checksum", name)
	case hex.EncodeToString(sum[:]):
		return nil
	default:
		return fmt.Errorf("%s has another checksum than it should", name)
	}
}

// checkManifest reads the manifest from the repository: goreleaser gives it its other name when it publishes.
func (r *release) checkManifest(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var manifest struct {
		Version  int `json:"version"`
		Metadata struct {
			Protocols []string `json:"protocol_versions"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if manifest.Version != 1 || !slices.Equal(manifest.Metadata.Protocols, []string{protocol}) {
		return fmt.Errorf("%s is of version %d with the protocols %q, and not of version 1 with %q",
			path, manifest.Version, manifest.Metadata.Protocols, protocol)
	}
	return r.checkSum(r.manifest(), content)
}

// checkArchive looks for exactly one program in an archive, with the name and the mode by which it is found.
func (r *release) checkArchive(name, platform string) error {
	content, err := os.ReadFile(filepath.Join(r.folder, name))
	if err != nil {
		return err
	}
	if err := r.checkSum(name, content); err != nil {
		return err
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	program := project + "_v" + r.version
	if strings.HasPrefix(platform, "windows_") {
		program += ".exe"
	}
	programs, licences := 0, 0
	for _, file := range archive.File {
		switch {
		case file.Name == program && file.Mode().Perm() == 0o755 && file.UncompressedSize64 > 0:
			programs++
		case file.Name == "LICENSE":
			licences++
		default:
			return fmt.Errorf("%s: %s of mode %s is not what is to be in it", name, file.Name, file.Mode())
		}
	}
	if programs != 1 || licences != 1 {
		return fmt.Errorf("%s has to have %s and LICENSE in it", name, program)
	}
	return nil
}
