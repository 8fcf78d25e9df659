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

// Resolved are pins by the full names of deployment targets: what the data source flotilla_artifacts returns, and fleet()
// takes.
type Resolved map[string]Entry

// Entry is the pin of one deployment target.
type Entry struct {
	// Manifests are what was resolved, without a pin. The pin is for equal manifests only.
	Manifests folder.Manifests `json:"manifests"`
	Pin       folder.Pin       `json:"pin"`
}

// IsFor says whether manifests are those that the pin was resolved for, whatever pin they have themselves.
func (e *Entry) IsFor(manifests folder.Manifests) bool {
	manifests.Pin = folder.Pin{}
	return e.Manifests == manifests
}

// format is that of the text: a change that older readers would misread is another one.
const format = "1"

// Bounds of the text: the reference fleet has 2,000 deployment targets.
const (
	maxResolvedText    = 32 << 20
	maxResolvedTargets = 100_000
)

type pinsDocument struct {
	Format  string   `json:"format"`
	Targets Resolved `json:"targets"`
}

// Encode writes pins as canonical JSON: equal pins are equal texts.
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

// Decode reads what Encode has written, strictly: what no pin can be is an error that names the deployment target.
func Decode(text string) (Resolved, error) {
	if len(text) > maxResolvedText {
		return nil, fmt.Errorf("the text has more than %d MiB", maxResolvedText>>20)
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, fmt.Errorf("the text is not one that flotilla_artifacts returned: %w", err)
	}
	if head.Format != format {
		return nil, fmt.Errorf(
			"the text has format %.40q, but this release of the provider reads %q: use the attribute artifacts of flotilla_artifacts as it is, "+
				"of the same release",
			head.Format,
			format,
		)
	}
	var read pinsDocument
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("the text is not one that flotilla_artifacts returned: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the text is not one that flotilla_artifacts returned: something follows it")
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

// check finds what resolving never gives.
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

// IsDigest says whether a text is a digest as pins have it: "sha256:<64 digits in hex>".
func IsDigest(text string) bool { return digestPattern.MatchString(text) }

// CheckPin finds what is no pin of manifests of a storage: of Git the full id of a commit, of the others a digest, and a
// version of a chart.
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
