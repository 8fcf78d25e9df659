package provider_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// metaArguments are arguments that Terraform adds to each block.
var metaArguments = []string{"for_each", "count", "depends_on", "provider"}

// TestListingsUseArgumentsOfTheirSchemas checks syntax, arguments of blocks and attributes of elements, without Terraform.
func TestListingsUseArgumentsOfTheirSchemas(t *testing.T) {
	t.Parallel()
	schemas := providerSchemas(t)
	blocksOf := map[string]map[string]*tfprotov6.Schema{
		"resource": schemas.ResourceSchemas, "data": schemas.DataSourceSchemas, "ephemeral": schemas.EphemeralResourceSchemas,
	}
	count := 0
	for page, text := range readDocumentation(t) {
		for _, listing := range strings.Split(text, "```terraform\n")[1:] {
			listing, _, _ = strings.Cut(listing, "```")
			file, problems := hclsyntax.ParseConfig([]byte(listing), filepath.Base(page), hcl.InitialPos)
			if problems.HasErrors() {
				t.Errorf("%s: %v:\n%s", page, problems, listing)
				continue
			}
			count += checkElements(t, page, schemas, file.Body.(*hclsyntax.Body))
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
					isKnown := slices.ContainsFunc(configurableArguments(schema), func(a *tfprotov6.SchemaAttribute) bool { return a.Name == name })
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

// checkElements checks and counts attributes of elements in for expressions. Terraform does not check them in empty lists and maps.
func checkElements(t *testing.T, page string, schemas *tfprotov6.GetProviderSchemaResponse, body *hclsyntax.Body) int {
	t.Helper()
	count := 0
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		loop, isLoop := node.(*hclsyntax.ForExpr)
		if !isLoop {
			return nil
		}
		element := elementAttributes(schemas, loop.CollExpr)
		if element == nil {
			return nil
		}
		for _, part := range []hclsyntax.Expression{loop.KeyExpr, loop.ValExpr, loop.CondExpr} {
			if part == nil {
				continue
			}
			for _, traversal := range part.Variables() {
				if traversal.RootName() != loop.ValVar || len(traversal) < 2 {
					continue
				}
				step, isAttribute := traversal[1].(hcl.TraverseAttr)
				count++
				if isAttribute && element[step.Name] == nil {
					t.Errorf("%s: an element of %s has no attribute %q", page, referenceText(loop.CollExpr), step.Name)
				}
			}
		}
		return nil
	})
	return count
}

func elementAttributes(schemas *tfprotov6.GetProviderSchemaResponse, collection hclsyntax.Expression) map[string]tftypes.Type {
	steps := strings.Split(strings.TrimPrefix(referenceText(collection), "data."), ".")
	schema := schemas.ResourceSchemas[steps[0]]
	if strings.HasPrefix(referenceText(collection), "data.") {
		schema = schemas.DataSourceSchemas[steps[0]]
	}
	if schema == nil || len(steps) != 3 {
		return nil
	}
	object, _ := schema.ValueType().(tftypes.Object)
	var element tftypes.Type
	switch attribute := object.AttributeTypes[steps[2]].(type) {
	case tftypes.List:
		element = attribute.ElementType
	case tftypes.Set:
		element = attribute.ElementType
	case tftypes.Map:
		element = attribute.ElementType
	}
	object, _ = element.(tftypes.Object)
	return object.AttributeTypes
}

// referenceText returns an expression as text if it is a reference, or "".
func referenceText(expression hclsyntax.Expression) string {
	traversal, problems := hcl.AbsTraversalForExpr(expression)
	if problems.HasErrors() {
		return ""
	}
	text := traversal.RootName()
	for _, step := range traversal[1:] {
		if attribute, ok := step.(hcl.TraverseAttr); ok {
			text += "." + attribute.Name
		}
	}
	return text
}
