package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Module is a parsed HCL text.
type Module struct {
	Configuration
	Data    map[string]map[string]any // attributes of data sources, by address: "data.flotilla_history.dev"
	Outputs map[string]any
	Later   map[string]any    // inputs of terraform_data by address; known after apply
	Imports map[string]string // ids of import blocks, by address
	Removed []string          // addresses of removed blocks without a destroy
}

// ParseModule reads a root module with blocks provider, resource, data, output, import, removed and locals, and references to
// locals and to outputs of terraform_data, which count as applied. Expressions beyond objects, lists, references and calls of
// the provider's functions must be known. Everything else is an error.
func ParseModule(text string, applied map[string]any) (*Module, error) {
	file, problems := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
	if problems.HasErrors() {
		return nil, problems
	}
	p := &moduleParser{
		module: &Module{
			Configuration: Configuration{Resources: map[string]Resource{}},
			Data:          map[string]map[string]any{}, Outputs: map[string]any{}, Later: map[string]any{}, Imports: map[string]string{},
		},
		applied: applied,
		locals:  map[string]hclsyntax.Expression{},
		known: &hcl.EvalContext{
			Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc, "min": stdlib.MinFunc, "range": stdlib.RangeFunc},
		},
	}
	body := file.Body.(*hclsyntax.Body)
	for name := range body.Attributes {
		return nil, fmt.Errorf("attribute %q is in no block", name)
	}
	blocks := body.Blocks
	for _, block := range blocks {
		switch {
		case block.Type == "locals":
			for name, attribute := range block.Body.Attributes {
				p.locals[name] = attribute.Expr
			}
		case len(block.Labels) != labels[block.Type]:
			return nil, fmt.Errorf("line %d: block %q must have %d labels", block.TypeRange.Start.Line, block.Type, labels[block.Type])
		case block.Type == "resource" && block.Labels[0] == "terraform_data":
			attributes, err := p.attributes(block.Body)
			if err != nil {
				return nil, err
			}
			p.module.Later[strings.Join(block.Labels, ".")] = attributes["input"]
		}
	}
	for _, block := range blocks {
		if err := p.block(block); err != nil {
			return nil, fmt.Errorf("line %d: %w", block.TypeRange.Start.Line, err)
		}
	}
	return p.module, nil
}

// labels are the numbers of labels by type of block.
var labels = map[string]int{"provider": 1, "resource": 2, "data": 2, "output": 1}

type moduleParser struct {
	module  *Module
	applied map[string]any
	locals  map[string]hclsyntax.Expression
	known   *hcl.EvalContext
	depth   int // of locals within locals
}

func (p *moduleParser) block(block *hclsyntax.Block) error {
	var err error
	switch block.Type {
	case "terraform", "locals":
	case "provider":
		p.module.Provider, err = p.attributes(block.Body)
	case "resource":
		address := strings.Join(block.Labels, ".")
		if _, ok := p.module.Later[address]; ok {
			return nil
		}
		var resource Resource
		if resource.Attributes, err = p.attributes(block.Body); err != nil {
			return err
		}
		for _, name := range []string{"count", "for_each", "provider"} {
			if _, ok := resource.Attributes[name]; ok {
				return fmt.Errorf("the meta-argument %q is not simulated", name)
			}
		}
		for _, inner := range block.Body.Blocks {
			if inner.Type != "lifecycle" {
				return fmt.Errorf("blocks %q are not simulated", inner.Type)
			}
			lifecycle, err := p.attributes(inner.Body)
			if err != nil {
				return err
			}
			resource.CreateBeforeDestroy = lifecycle["create_before_destroy"] == true
		}
		p.module.Resources[address] = resource
	case "data":
		p.module.Data["data."+strings.Join(block.Labels, ".")], err = p.attributes(block.Body)
	case "output":
		var attributes map[string]any
		attributes, err = p.attributes(block.Body)
		p.module.Outputs[block.Labels[0]] = attributes["value"]
	case "import":
		var attributes map[string]any
		address := p.address(block.Body, "to")
		attributes, err = p.attributes(block.Body)
		id, isText := attributes["id"].(string)
		if err == nil && (address == "" || !isText) {
			err = fmt.Errorf("an import needs an address and an id")
		}
		p.module.Imports[address] = id
	case "removed":
		address, stays := p.address(block.Body, "from"), false
		for _, inner := range block.Body.Blocks {
			lifecycle, wrong := p.attributes(inner.Body)
			stays, err = lifecycle["destroy"] == false, wrong
		}
		if err == nil && (address == "" || !stays) {
			err = fmt.Errorf("a removed block needs an address and destroy = false")
		}
		p.module.Removed = append(p.module.Removed, address)
	default:
		err = fmt.Errorf("blocks %q are not simulated", block.Type)
	}
	return err
}

// address returns an attribute that is the address of a resource, or "".
func (p *moduleParser) address(body *hclsyntax.Body, name string) string {
	attribute := body.Attributes[name]
	delete(body.Attributes, name)
	if attribute == nil {
		return ""
	}
	return reference(attribute.Expr)
}

// reference returns an expression that is an address, or "".
func reference(expression hclsyntax.Expression) string {
	traversal, problems := hcl.AbsTraversalForExpr(expression)
	if problems.HasErrors() {
		return ""
	}
	address := traversal.RootName()
	for _, step := range traversal[1:] {
		attribute, _ := step.(hcl.TraverseAttr)
		address += "." + attribute.Name
	}
	return address
}

func (p *moduleParser) attributes(body *hclsyntax.Body) (map[string]any, error) {
	attributes := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		if name == "depends_on" {
			continue // read last
		}
		value, err := p.value(body.Attributes[name].Expr)
		if err != nil {
			return nil, err
		}
		attributes[name] = value
	}
	return attributes, nil
}

const maxDepth = 10

// value evaluates an expression; calls of the provider's functions remain.
func (p *moduleParser) value(expression hclsyntax.Expression) (any, error) {
	switch expression := expression.(type) {
	case *hclsyntax.FunctionCallExpr:
		if i := strings.LastIndex(expression.Name, "::"); i >= 0 {
			arguments, err := p.values(expression.Args)
			return Call{Function: expression.Name[i+len("::"):], Arguments: arguments}, err
		}
	case *hclsyntax.ScopeTraversalExpr:
		address := reference(expression)
		if stands, ok := p.locals[strings.TrimPrefix(address, "local.")]; ok && strings.HasPrefix(address, "local.") {
			if p.depth++; p.depth > maxDepth {
				return nil, fmt.Errorf("%s refers to itself", address)
			}
			defer func() { p.depth-- }()
			return p.value(stands)
		}
		resource := strings.TrimSuffix(address, ".output")
		if input, ok := p.module.Later[resource]; ok && resource != address {
			if was, isApplied := p.applied[resource]; isApplied && reflect.DeepEqual(was, input) {
				return input, nil
			}
			return Unknown{Then: input}, nil
		}
	case *hclsyntax.TupleConsExpr:
		return p.values(expression.Exprs)
	case *hclsyntax.ObjectConsExpr:
		object := make(map[string]any, len(expression.Items))
		for _, item := range expression.Items {
			key, problems := item.KeyExpr.Value(p.known)
			if problems.HasErrors() {
				return nil, problems
			}
			if key.IsNull() || !key.IsKnown() || key.Type() != cty.String {
				return nil, fmt.Errorf("the key of an object must be text")
			}
			value, err := p.value(item.ValueExpr)
			if err != nil {
				return nil, err
			}
			object[key.AsString()] = value
		}
		return object, nil
	case *hclsyntax.ParenthesesExpr:
		return p.value(expression.Expression)
	}
	known, problems := expression.Value(p.known)
	if problems.HasErrors() {
		return nil, problems
	}
	if !known.IsWhollyKnown() {
		return nil, fmt.Errorf("the value is not known")
	}
	text, err := ctyjson.Marshal(known, known.Type())
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	return value, decoder.Decode(&value)
}

func (p *moduleParser) values(expressions []hclsyntax.Expression) ([]any, error) {
	list := make([]any, len(expressions))
	for i, expression := range expressions {
		var err error
		if list[i], err = p.value(expression); err != nil {
			return nil, err
		}
	}
	return list, nil
}
