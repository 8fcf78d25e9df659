package schemas

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Evidence returns a document. One longer than a rollout reads is an error with a remedy.
func Evidence(document []byte, remedy string, diagnostics *diag.Diagnostics) types.String {
	if size := len(document); size > observe.MaxEvidence {
		diagnostics.AddAttributeError(path.Root("evidence"), "Evidence is too long",
			fmt.Sprintf("It would have %d MiB, and %d MiB are the most: %s.", size>>20, observe.MaxEvidence>>20, remedy))
	}
	return types.StringValue(string(document))
}

// The length of Markdown, in bytes.
const (
	defaultMarkdownLimit = 65536
	minMarkdownLimit     = 1024
	maxMarkdownLimit     = 16 << 20
)

// MarkdownLimitAttribute is for data sources with markdown.
func MarkdownLimitAttribute() schema.Int64Attribute {
	return OptionalWhole(
		fmt.Sprintf("The maximum size of `markdown` in bytes, from %d to %d. Further parts are left out and counted. Default %d, "+
			"which is what GitHub takes for a comment. GitLab and Gitea take more.", minMarkdownLimit, maxMarkdownLimit, defaultMarkdownLimit),
	)
}

// MarkdownLimit reads it.
func MarkdownLimit(value types.Int64, diagnostics *diag.Diagnostics) int {
	return tfvalue.WholeWithin("markdown_limit", value, defaultMarkdownLimit, minMarkdownLimit, maxMarkdownLimit, diagnostics)
}
