package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

type fileCheck struct {
	*folderCheck
	file     string
	template *compiledTemplate
	unusual  bool // parsers disagree about a part of the file
}

func (c *folderCheck) checkFile(template *compiledTemplate, file AssignmentFile) bool {
	before := len(c.findings)
	check := &fileCheck{folderCheck: c, file: file.Name, template: template}
	switch template.contentType {
	case "yaml":
		check.checkYAML(file.Content)
	case "json":
		check.checkJSON(file.Content)
	}
	return len(c.findings) == before
}

func (c *fileCheck) report(line int, format string, arguments ...any) {
	position := ""
	if line > 0 {
		position = fmt.Sprintf(", line %d", line)
	}
	message := secret.Unrepeated(fmt.Sprintf(format, arguments...), nil, c.subject.Config)
	c.findings.Report(fleet.PathOf("templates", c.template.name), "%s template: %s%s: %s", c.template.kind, c.file, position, message)
}

func (c *fileCheck) checkYAML(content []byte) {
	if line, err := fleet.CheckYAMLText(string(content)); err != nil {
		c.report(line, "%s", err)
		return
	}
	before := len(c.findings)
	c.unusual = hasUnusualBreaks(content)
	defer func() {
		if c.unusual && len(c.findings) == before {
			c.checkStrictly(content)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			c.report(yamlProblem(err))
			return
		}
		if len(document.Content) == 1 {
			c.checkDocument(document.Content[0])
		}
	}
}

// hasUnusualBreaks finds control characters, and line breaks that only YAML 1.1 knows.
func hasUnusualBreaks(content []byte) bool {
	for i, c := range content {
		switch {
		case c >= ' ' && c < 0x7f, c == '\n':
		case c < 0x80:
			return true
		case bytes.HasPrefix(content[i:], []byte("\u0085")), bytes.HasPrefix(content[i:], []byte("\u2028")),
			bytes.HasPrefix(content[i:], []byte("\u2029")), bytes.HasPrefix(content[i:], []byte("\ufeff")):
			return true
		}
	}
	return false
}

// isUnusual reports whether Kubernetes, which reads YAML 1.1, may read a value differently from yaml.v3.
func isUnusual(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode || node.Anchor != "" || node.Style&yaml.TaggedStyle != 0 {
		return true
	}
	if node.Kind != yaml.ScalarNode || node.Style != 0 {
		return false
	}
	text := strings.ToLower(strings.TrimLeft(node.Value, "+-"))
	return text == "<<" || text == ".inf" || text == ".nan"
}

// checkStrictly reads the documents with Kubernetes' parser, whose errors may quote values.
func (c *fileCheck) checkStrictly(content []byte) {
	line := 1
	for _, document := range parting.Split(string(content), -1) {
		if _, err := fleet.ParseLooseYAML(document); err != nil {
			c.report(line, "is YAML, but not as Kubernetes reads it: a tag, an anchor or a key that is not a string")
		}
		line += strings.Count(document, "\n") + 1
	}
}

var parting = regexp.MustCompile(`(?m)^---(?:[ \t].*)?(?:\n|\z)`)

var yamlMessage = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// yamlProblem returns a parser's error without values.
func yamlProblem(err error) (int, string) {
	match := yamlMessage.FindStringSubmatch(err.Error())
	if match == nil {
		return 0, "is not YAML"
	}
	line, _ := strconv.Atoi(match[1])
	message := match[2]
	if strings.HasPrefix(message, "unknown anchor") {
		message = `a value that starts with "*" must be in quotes`
	}
	return line, "is not YAML: " + message
}

func (c *fileCheck) checkJSON(content []byte) {
	value, err := fleet.ParseJSON(string(content))
	if err != nil {
		line := 0
		if syntax, ok := errors.AsType[*fleet.SyntaxError](err); ok {
			line = 1 + bytes.Count(content[:syntax.ByteOffset], []byte("\n"))
		}
		c.report(line, "is not JSON: %s", err)
		return
	}
	object, ok := value.(map[string]any)
	if !ok || (object["apiVersion"] == nil && object["kind"] == nil) {
		if c.reconciler != nil && c.reconciler.ReadsJSON {
			c.report(1,
				"is not a Kubernetes document, but %s reads every file that ends in .json as one: use another content_type",
				c.reconciler.Product)
		}
		return
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err == nil && len(document.Content) == 1 {
		c.checkDocument(document.Content[0])
	}
}

func (c *fileCheck) checkDocument(node *yaml.Node) {
	c.checkKeys(node, 0)
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return // only comments
	}
	apiVersion, kind := member(node, "apiVersion"), member(node, "kind")
	if apiVersion == nil && kind == nil && c.mayWriteData(c.template) {
		return
	}
	if node.Kind != yaml.MappingNode {
		c.report(node.Line, "is not a Kubernetes document: it has no apiVersion and kind")
		return
	}
	version, hasVersion := c.requireText(node, "apiVersion", apiVersion)
	kindName, hasKind := c.requireText(node, "kind", kind)
	if !hasVersion || !hasKind {
		return
	}
	if version == "v1" && kindName == "List" {
		if items := member(node, "items"); items != nil && items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				c.checkDocument(item)
			}
			return
		}
	}
	c.checkObject(node, version, kindName)
}

func (c *fileCheck) requireText(node *yaml.Node, name string, value *yaml.Node) (string, bool) {
	if value == nil || value.Value == "" && value.Kind == yaml.ScalarNode {
		c.report(node.Line, "has no %s", name)
		return "", false
	}
	if !isText(value) {
		c.report(value.Line, "%s is not a string", name)
		return "", false
	}
	return value.Value, true
}

func (c *fileCheck) checkObject(node *yaml.Node, apiVersion, kind string) {
	metadata := member(node, "metadata")
	if metadata == nil {
		c.report(node.Line, "has no metadata.name")
		return
	}
	c.checkTexts(metadata, "labels")
	c.checkTexts(metadata, "annotations")
	c.checkLabels(member(metadata, "labels"))
	name, ok := c.requireText(metadata, "metadata.name", member(metadata, "name"))
	if !ok {
		return
	}
	group := objects.GroupOf(apiVersion)
	if problem := nameProblem(group, kind, name); problem != "" {
		c.report(member(metadata, "name").Line, "metadata.name %q %s", name, problem)
	}
	namespace := ""
	if value := member(metadata, "namespace"); value != nil {
		if namespace, ok = c.requireText(metadata, "metadata.namespace", value); !ok {
			return
		}
		if problem := fleet.CheckLabelName(namespace); problem != "" {
			c.report(value.Line, "metadata.namespace %q %s", namespace, problem)
		}
	}
	if group == "" && kind == "ConfigMap" {
		c.checkConfigMap(node)
	}
	c.checkSchema(node, kind)
	identity := objects.Identity{Group: group, Kind: kind, Namespace: namespace, Name: name}
	if other, twice := c.objects[identity]; twice {
		c.report(node.Line, "%s %q is written twice, first in %s, line %d", kind, name, other.file, other.line)
		return
	}
	c.objects[identity] = position{c.file, node.Line}
}

// nameProblem returns the reason why a name is invalid, or "":
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
func nameProblem(group, kind, name string) string {
	switch {
	case group == "rbac.authorization.k8s.io":
		return strings.Join(content.IsPathSegmentName(name), "; ")
	case group == "" && (kind == "Namespace" || kind == "Service"):
		return fleet.CheckLabelName(name)
	}
	return fleet.CheckSubdomainName(name)
}

// checkTexts requires strings: true and 1 are errors.
func (c *fileCheck) checkTexts(node *yaml.Node, name string) {
	object := member(node, name)
	if object == nil || object.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(object.Content); i += 2 {
		if value := resolve(object.Content[i]); !isText(value) {
			c.report(value.Line, "%s[%q] is not a string: put it in quotes", name, object.Content[i-1].Value)
		}
	}
}

func (c *fileCheck) checkLabels(object *yaml.Node) {
	if object == nil || object.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(object.Content); i += 2 {
		key, value := object.Content[i-1], resolve(object.Content[i])
		if problem := fleet.CheckLabelKey(key.Value); problem != "" {
			c.report(key.Line, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(value.Value); isText(value) && problem != "" {
			c.report(value.Line, "labels[%q]: %s", key.Value, problem)
		}
	}
}

func (c *fileCheck) checkConfigMap(node *yaml.Node) {
	size, largest, largestSize := 0, "", 0
	for _, name := range []string{"data", "binaryData"} {
		c.checkTexts(node, name)
		object := member(node, name)
		if object == nil || object.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(object.Content); i += 2 {
			key := object.Content[i]
			if problems := validation.IsConfigMapKey(key.Value); len(problems) > 0 {
				c.reportKey(key.Line, key.Value, `key %q cannot be one of a ConfigMap: letters, digits, "-", "_" and "." can, `+
					`up to 253 of them, and it does not start with ".."`, key.Value)
			}
			length := len(resolve(object.Content[i+1]).Value)
			if size += length; length > largestSize {
				largest, largestSize = key.Value, length
			}
		}
	}
	if size > maxConfigMap {
		c.reportKey(node.Line, largest, "the ConfigMap's values have %d bytes, and Kubernetes accepts %d; the largest is %q, with %d",
			size, maxConfigMap, largest, largestSize)
	}
}

// reportKey reports a key of a ConfigMap at its config container, if known.
func (c *fileCheck) reportKey(line int, key, format string, arguments ...any) {
	container := ""
	if _, isConfig := c.subject.Config[key]; isConfig && c.subject.Origin != nil && c.template.isBuiltin {
		container = c.subject.Origin(key)
	}
	if container == "" {
		c.report(line, format, arguments...)
		return
	}
	c.findings.Report(fleet.PathOf("config_containers", container).Attribute("data").Key(key), format, arguments...)
}

// checkKeys reports duplicate keys, which parsers resolve differently, and keys that are not strings.
func (c *fileCheck) checkKeys(node *yaml.Node, depth int) {
	c.unusual = c.unusual || isUnusual(node)
	if depth > maxNest || node.Kind == yaml.AliasNode {
		return
	}
	if node.Kind == yaml.MappingNode {
		seen := make(map[string]int, len(node.Content)/2)
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if !isKey(key) {
				c.report(key.Line, "a key is not a string")
			}
			if first, twice := seen[key.Value]; twice && key.Kind == yaml.ScalarNode {
				c.report(key.Line, "key %q appears twice, first in line %d", key.Value, first)
			}
			seen[key.Value] = key.Line
		}
	}
	for _, child := range node.Content {
		c.checkKeys(child, depth+1)
	}
}

func isKey(node *yaml.Node) bool {
	if node = resolve(node); node.Kind != yaml.ScalarNode {
		return false
	}
	return node.Style != 0 || len(node.Value) > len("null") || node.ShortTag() != "!!null"
}

func member(node *yaml.Node, name string) *yaml.Node {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return resolve(node.Content[i+1])
		}
	}
	return nil
}

func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// oldBooleans are booleans in YAML 1.1, which Kubernetes reads.
var oldBooleans = []string{"y", "n", "yes", "no", "on", "off"}

func isText(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return false
	}
	return node.Style != 0 || !slices.Contains(oldBooleans, strings.ToLower(node.Value))
}
