package provider_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// metaArguments are those of Terraform itself.
var metaArguments = []string{"for_each", "count", "depends_on", "provider"}

// TestListingsUseArgumentsOfTheirSchemas checks the syntax of each HCL listing and the arguments of its blocks, without Terraform.
func TestListingsUseArgumentsOfTheirSchemas(t *testing.T) {
	t.Parallel()
	schemas := providerSchemas(t)
	blocksOf := map[string]map[string]*tfprotov6.Schema{
		"resource": schemas.ResourceSchemas, "data": schemas.DataSourceSchemas, "ephemeral": schemas.EphemeralResourceSchemas,
	}
	count := 0
	for page, text := range documentation(t) {
		for _, listing := range strings.Split(text, "```terraform\n")[1:] {
			listing, _, _ = strings.Cut(listing, "```")
			file, problems := hclsyntax.ParseConfig([]byte(listing), filepath.Base(page), hcl.InitialPos)
			if problems.HasErrors() {
				t.Errorf("%s: %v:\n%s", page, problems, listing)
				continue
			}
			for _, block := range file.Body.(*hclsyntax.Body).Blocks {
				if len(block.Labels) == 0 || !strings.HasPrefix(block.Labels[0], "flotilla_") || blocksOf[block.Type] == nil {
					continue
				}
				schema := blocksOf[block.Type][block.Labels[0]]
				if schema == nil {
					t.Errorf("%s: there is no %s %q", page, block.Type, block.Labels[0])
					continue
				}
				count++
				for name := range block.Body.Attributes {
					isKnown := slices.ContainsFunc(configurable(schema), func(a *tfprotov6.SchemaAttribute) bool { return a.Name == name })
					if !isKnown && !slices.Contains(metaArguments, name) {
						t.Errorf("%s: %s has no argument %q", page, block.Labels[0], name)
					}
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d blocks were checked", count)
	}
}
