package reconciler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Running is the applied content of an object. Unknown fields are "". Strings are bounded single lines. Equal values
// mean equal content.
type Running struct {
	// Version is the version of a chart, or the tag or branch of other content.
	Version string `json:"version,omitempty"`
	// Revision is the commit in hex, or a digest such as "sha256:<hex>".
	Revision string `json:"revision,omitempty"`
	// Chart is the name of a Helm chart, AppVersion the version of its application.
	Chart      string `json:"chart,omitempty"`
	AppVersion string `json:"app_version,omitempty"`
	// Images are the images of running containers, sorted and separated by spaces.
	Images string `json:"images,omitempty"`
}

const maxImages = 2048

// Compare orders values by their strings.
func (r *Running) Compare(other *Running) int {
	return cmp.Or(
		cmp.Compare(r.Version, other.Version), cmp.Compare(r.Revision, other.Revision), cmp.Compare(r.Chart, other.Chart),
		cmp.Compare(r.AppVersion, other.AppVersion), cmp.Compare(r.Images, other.Images),
	)
}

// Running returns the content of an object; zero if its kind does not report it.
func (l *Listing) Running(one *ListedObject) Running {
	if one.of.Running == nil {
		return Running{}
	}
	return MergeRunning(one.of.Running(l, one))
}

// MergeRunning joins the distinct strings of several values.
func MergeRunning(all ...Running) Running {
	join := func(of func(*Running) string) string {
		if len(all) == 1 {
			return wording.OneLine(of(&all[0]))
		}
		texts := make([]string, len(all))
		for i := range all {
			texts[i] = of(&all[i])
		}
		return wording.OneLine(strings.Join(distinct(texts), ", "))
	}
	var images []string
	for i := range all {
		images = append(images, strings.Fields(all[i].Images)...)
	}
	images = distinct(images)
	slices.Sort(images)
	return Running{
		Version:    join(func(r *Running) string { return r.Version }),
		Revision:   join(func(r *Running) string { return r.Revision }),
		Chart:      join(func(r *Running) string { return r.Chart }),
		AppVersion: join(func(r *Running) string { return r.AppVersion }),
		Images:     strings.Join(images, " "),
	}
}

func distinct(texts []string) []string {
	var found []string
	size := 0
	for _, text := range texts {
		if text = wording.OneLine(text); text == "" || slices.Contains(found, text) {
			continue
		}
		if size += len(text) + len(" "); size > maxImages {
			break
		}
		found = append(found, text)
	}
	return found
}
