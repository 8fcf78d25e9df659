package render

import (
	"bytes"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// CheckRelease returns an error if Helm certainly could not store the release of final objects.
func (t *Templates) CheckRelease(assignment *schedule.Assignment, result *objects.Rendering) error {
	of := t.hostOf(assignment).reconciler
	final, _ := of.FinalOf(of.KindFor(manifestsOf(&assignment.Target.Target.Manifests)).Kind)
	if final == nil || !final.Wraps {
		return nil
	}
	var all [][]byte
	for i := range result.Objects {
		if o := &result.Objects[i]; !o.IsCRD && o.On != objects.OnInstall {
			all = append(all, o.YAML)
		}
	}
	return checkReleaseSize(bytes.Join(all, separator))
}

func checkReleaseSize(all []byte) error {
	size := releaseSize(all)
	if size <= maxRelease {
		return nil
	}
	return fmt.Errorf("its final objects make a release of %d KiB, and Helm stores a release in a Secret, which can have %d KiB: "+
		"set values with which the chart renders less, or divide it into several deployment targets", size>>10, maxRelease>>10)
}
