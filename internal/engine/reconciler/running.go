package reconciler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Running is what an object has brought onto a cluster, as its reconciler says: what is applied, and not what is wanted or
// tried. What is not known is "". Texts are of one line and bounded, whatever the cluster says. What is equal runs the same.
type Running struct {
	// Version is the version of a chart; of anything else, the tag or the branch of what is applied.
	Version string `json:"version,omitempty"`
	// Revision is the commit, in hex, or the digest of what is applied, as in "sha256:<hex>".
	Revision string `json:"revision,omitempty"`
	// Chart is the name of a Helm chart, and AppVersion the version of the application in it.
	Chart      string `json:"chart,omitempty"`
	AppVersion string `json:"app_version,omitempty"`
	// Images are those of the containers that are there, in order, with a space between two.
	Images string `json:"images,omitempty"`
}

// maxImages is how many bytes the images of what runs have at most.
const maxImages = 2048

// Compare orders what runs by its texts.
func (r *Running) Compare(other *Running) int {
	return cmp.Or(
		cmp.Compare(r.Version, other.Version), cmp.Compare(r.Revision, other.Revision), cmp.Compare(r.Chart, other.Chart),
		cmp.Compare(r.AppVersion, other.AppVersion), cmp.Compare(r.Images, other.Images),
	)
}

// Running is what an object has brought onto the cluster; zero for kinds that do not say so.
func (o *Listing) Running(one *Object) Running {
	if one.of.Running == nil {
		return Running{}
	}
	return Together(one.of.Running(o, one))
}

// Together is what several run: each text of them once, in their order, with commas between them.
func Together(all ...Running) Running {
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

// distinct are texts, each once and as one line, as many as there is room for.
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
