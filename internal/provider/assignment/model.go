package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func (m *assignmentModel) location(diagnostics *diag.Diagnostics) (at folder.Location, known bool) {
	return repository.DecodeLocation(m.GitopsRepo, diagnostics)
}

// checkCommitMessage refuses a message of several lines, because Flotilla adds lines to it.
func checkCommitMessage(value types.String, diagnostics *diag.Diagnostics) {
	if strings.ContainsAny(value.ValueString(), "\r\n") {
		diagnostics.AddAttributeError(path.Root("commit_message"), "Invalid commit_message",
			"The message must be one line: it is the first line of the commit message. Take out the line break.")
	}
}

func (m *assignmentModel) keeps() bool { return m.OnDestroy.ValueString() == "keep" }

func checkRollback(value types.String, diagnostics *diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return
	}
	if err := git.CheckCommit(value.ValueString()); err != nil {
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Invalid commit", tfvalue.Sentence(err.Error()))
	}
}

// contentValue hashes all folders and hosts. It is unknown while the content of a folder is.
func contentValue(trees folder.Trees) types.String {
	h := sha256.New()
	for _, host := range slices.Sorted(maps.Keys(trees)) {
		fmt.Fprintf(h, "%s\n", host)
		for _, target := range slices.Sorted(maps.Keys(trees[host])) {
			tree := trees[host][target]
			if tree == "" {
				return types.StringUnknown()
			}
			fmt.Fprintf(h, "%s/%s %s\n", host, target, tree)
		}
	}
	return types.StringValue(hex.EncodeToString(h.Sum(nil))[:16])
}
