package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// conflicts finds folders that the owner may not write.
func (c *Service) conflicts(ctx context.Context, desired Desired, o *Plan) error {
	view, err := c.view(ctx, desired.Owner)
	if err != nil {
		return err
	}
	formerly := ""
	if o.Identity == Renamed {
		formerly = desired.State.Owner.Name
	}
	found, err := view.FindConflicts(ctx, desired.After, o.there(), formerly)
	if err != nil {
		return err
	}
	var adopted, refused, adoptable []string
	for _, conflict := range found {
		text := conflict.String()
		text = strings.ToUpper(text[:1]) + text[1:] + "."
		switch {
		case !conflict.Adoptable():
			refused = append(refused, text)
		case !desired.Adopt:
			adoptable = append(adoptable, text)
		default:
			adopted = append(adopted, text)
		}
	}
	o.addConflicts(refused, adoptable)
	if len(adopted) > 0 {
		o.warn("adopt", "Folders are taken over", "%s", wording.Lines(adopted, mostListed))
	}
	return nil
}

// addConflicts adds one error for all folders that the owner may not write. A name or a path that is another assignment's may
// claim hundreds of them.
func (o *Plan) addConflicts(refused, adoptable []string) {
	remedy := ""
	if len(adoptable) > 0 {
		remedy = fmt.Sprintf(" To take %s over, with what is in %[1]s, set adopt = true.", wording.OneOrMany(len(adoptable), "it", "them"))
		if len(refused) > 0 {
			remedy = fmt.Sprintf(
				"\n\nOf these, %d can be taken over, with what is in them: set adopt = true once the others are resolved.",
				len(adoptable),
			)
		}
	}
	switch all := slices.Concat(refused, adoptable); {
	case len(all) == 1:
		o.add("gitops_repo", "Folder does not belong to this assignment", "%s%s", all[0], remedy)
	case len(all) > 1:
		o.add(
			"gitops_repo",
			"Folder does not belong to this assignment",
			"%d folders that the fleet wants belong to others:\n%s\n\n%s",
			len(all),
			wording.Lines(
				all,
				wording.Named,
			),
			strings.TrimSpace(
				remedy+" If they are another assignment's, give this one another path, or take the deployment targets out of one of the fleets.",
			),
		)
	}
}
