package reconciler

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Running is what an object has brought onto a cluster, as its reconciler says: what is applied, and not what is wanted or
// tried. What is not known is "". Texts are of one line and bounded, whatever the cluster says. What is equal runs the same.
type Running struct {
	// Version is the version of a chart; of anything else, the tag or the branch of what is applied.
	Version string
	// Revision is the commit, in hex, or the digest of what is applied, as in "sha256:<hex>".
	Revision string
	// Chart is the name of a Helm chart, and AppVersion the version of the application in it.
	Chart, AppVersion string
	// Images are those of the containers that are there, in order, with a space between two.
	Images string
}

// How many texts are joined at most.
const (
	maxTogether = 8
	maxImages   = 20
)

// Running is what an object has brought onto the cluster; zero for kinds that do not say so.
func (o *Listing) Running(one *Object) Running {
	if one.of.Running == nil {
		return Running{}
	}
	return Together(one.of.Running(o, one))
}

// Together is what several run: each text of them once, in their order, with commas between them.
func Together(all ...Running) Running {
	distinct := func(most int, of func(*Running) []string) []string {
		var texts []string
		for i := range all {
			for _, text := range of(&all[i]) {
				if text = wording.OneLine(text); text != "" && len(texts) < most && !slices.Contains(texts, text) {
					texts = append(texts, text)
				}
			}
		}
		return texts
	}
	join := func(of func(*Running) string) string {
		return strings.Join(distinct(maxTogether, func(r *Running) []string { return []string{of(r)} }), ", ")
	}
	images := distinct(maxImages, func(r *Running) []string { return strings.Fields(r.Images) })
	slices.Sort(images)
	return Running{
		Version:    join(func(r *Running) string { return r.Version }),
		Revision:   join(func(r *Running) string { return r.Revision }),
		Chart:      join(func(r *Running) string { return r.Chart }),
		AppVersion: join(func(r *Running) string { return r.AppVersion }),
		Images:     strings.Join(images, " "),
	}
}
