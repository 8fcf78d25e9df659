package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Resolved maps full names of deployment targets to pins.
type Resolved map[string]Entry

// Entry is a pin with its manifests.
type Entry struct {
	// Manifests have no pin. Pin is only for equal manifests.
	Manifests folder.Manifests `json:"manifests"`
	Pin       folder.Pin       `json:"pin"`
}

// IsFor reports whether the pin is for manifests, whose own pin does not count.
func (e *Entry) IsFor(manifests folder.Manifests) bool {
	manifests.Pin = folder.Pin{}
	return e.Manifests == manifests
}

// format changes if older readers would misread the text.
const format = "1"

// The reference fleet has 2,000 deployment targets.
const (
	maxResolvedText    = 32 << 20
	maxResolvedTargets = 100_000
)

type pinsDocument struct {
	Format  string   `json:"format"`
	Targets Resolved `json:"targets"`
}

// Encode returns canonical JSON.
func (r Resolved) Encode() (string, error) {
	if r == nil {
		r = Resolved{}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(pinsDocument{format, r}); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// Decode strictly parses the output of Encode.
func Decode(text string) (Resolved, error) {
	if len(text) > maxResolvedText {
		return nil, fmt.Errorf("the text has more than %d MiB", maxResolvedText>>20)
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, fmt.Errorf("the text does not come from flotilla_artifacts: %w", err)
	}
	if head.Format != format {
		return nil, fmt.Errorf(
			"the text has format %.40q, but this release of the provider reads %q: use the attribute artifacts of flotilla_artifacts as it is, "+
				"of the same release", head.Format, format)
	}
	var read pinsDocument
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("the text does not come from flotilla_artifacts: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the text does not come from flotilla_artifacts: text follows it")
	}
	if len(read.Targets) > maxResolvedTargets {
		return nil, fmt.Errorf("the text has more than %d deployment targets", maxResolvedTargets)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Targets)) {
		entry := read.Targets[name]
		if err := folder.CheckText(name); err != nil {
			return nil, fmt.Errorf("the name of a deployment target: %w", err)
		}
		if err := entry.check(); err != nil {
			return nil, fmt.Errorf("deployment target %q: %w", name, err)
		}
	}
	if read.Targets == nil {
		read.Targets = Resolved{}
	}
	return read.Targets, nil
}

func (e *Entry) check() error {
	for _, text := range append(e.Manifests.Texts(), e.Pin.Version) {
		if err := folder.CheckText(text); err != nil {
			return err
		}
	}
	if e.Manifests.Pin != (folder.Pin{}) {
		return errors.New("its manifests have a pin of their own")
	}
	if e.Manifests.Repo == "" {
		return errors.New("its manifests have no repo")
	}
	return CheckPin(e.Manifests.Storage, e.Pin)
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is "sha256:<64 hex digits>".
func IsDigest(text string) bool { return digestPattern.MatchString(text) }

// CheckPin checks a pin: Git needs a full commit ID, others a digest, charts also a version.
func CheckPin(storage string, pin folder.Pin) error {
	if storage == "git" {
		if !folder.IsCommit(pin.Commit) || pin.Version != "" || pin.Digest != "" {
			return errors.New("the pin is not the full id of a commit, which manifests in Git have")
		}
		return nil
	}
	switch {
	case storage != "helm" && storage != "oci":
		return fmt.Errorf("storage %.40q is none of git, helm and oci", storage)
	case !IsDigest(pin.Digest) || pin.Commit != "":
		return fmt.Errorf("the pin is not a digest (sha256:…), which manifests of storage %q have", storage)
	case storage == "helm" && pin.Version == "":
		return errors.New("the pin has no version, which charts have")
	}
	return nil
}
