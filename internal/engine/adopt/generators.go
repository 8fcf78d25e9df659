package adopt

import (
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// generated returns the source folders of an object's generated artifact, and false if its content is not generated.
func (a *applier) generated(o *manifestObject) (folders []string, is bool) {
	for _, named := range sourcesOf(o) {
		if !named.kind.IsGenerated() {
			continue
		}
		is = true
		for _, generator := range a.generators {
			if generator.namespace != named.namespace || generator.host != o.host {
				continue
			}
			for _, one := range reconciler.CopiesOf(generator.spec(), named.name) {
				if a.comesFromHere(sourceReference{reconciler.KindNamed(one.Kind), generator.namespace, one.Name}, o.host) {
					folders = append(folders, copiedFrom(one, a.pathFields(o))...)
				}
			}
		}
	}
	return folders, is
}

// copiedFrom returns the folders of a source that were copied to the paths of an artifact.
func copiedFrom(one reconciler.Copy, paths []string) (folders []string) {
	from, to := path.Clean("/"+one.From), path.Clean("/"+one.To)
	for _, at := range paths {
		at = path.Clean("/" + at)
		switch {
		case to == "/" || isBelow(at, to):
			folders = append(folders, path.Join(from, strings.TrimPrefix(at, to)))
		case at == "/" || isBelow(to, at):
			folders = append(folders, from)
		}
	}
	return folders
}
