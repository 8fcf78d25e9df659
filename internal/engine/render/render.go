// Package render renders the templates of a fleet into folders and checks them. Equal input gives equal bytes on every
// machine.
package render

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Subject is an assignment with its snapshot.
type Subject struct {
	Assignment    *schedule.Assignment
	Environment   string
	Owner         string // owner of the folder; "" if not known yet, see [ErrUnknown]
	ConfigVersion string
	ValuesVersion string                           // of Config alone: equal versions mean equal Config; "" if unknown
	Config        map[string]any                   // shared between assignments: read only
	Secrets       map[string]fleet.SecretReference // by key: read only
	Encrypted     []encrypted.File                 // copied unchanged
	Repo          *folder.Location                 // nil if not known yet, see [ErrUnknown]
	// Origin returns the config container of a key, or "". It may be nil.
	Origin func(key string) string
}

// AssignmentFile is a file of an assignment's folder.
type AssignmentFile struct {
	Name    string
	Content []byte

	shape   *shape             // with this content, or nil
	objects []folder.ObjectRef // if isRead
	isRead  bool
	isValid bool // a check has accepted its parts
}

// ErrUnknown reports that a folder can only be rendered at apply, because an input is not known yet.
var ErrUnknown = errors.New("the GitOps repository, the owner's name, or the manifests of the deployment target, are not known yet")

// MaxFile bounds a rendered file, in bytes.
const MaxFile = 4 << 20

// Render returns the files of a folder, sorted by name. A template that renders only white space writes none. The error joins
// one [*TemplateError] for each template that fails, or is [ErrUnknown]. Render is safe for concurrent use.
func (t *Templates) Render(subject Subject) ([]AssignmentFile, error) {
	host := t.hostOf(subject.Assignment)
	if subject.Assignment.Target.Target.ManifestsPending {
		if problems := t.problems[subject.Assignment.Target.Name]; problems != nil && problems.outside != nil {
			return nil, problems.outside
		}
		return nil, ErrUnknown
	}
	if err := t.problemsOn(host, subject.Assignment); err != nil {
		return nil, err
	}
	runner := t.runners.Get().(*runner)
	defer t.runners.Put(runner)

	runner.isFilled = false
	files := slices.Grow(t.encryptedFiles(subject), len(host.templates)) // they sort first
	names := slotsOf(subject)
	var failures []error
	role := t.roles[subject.Assignment]
	unknown := role != nil && role.isPending
	_, configIsWritten := subject.Assignment.Target.Target.Manifests.ConfigAs.ConfigMap()
	for _, template := range host.templates {
		switch template.kind {
		case "namespace", "policy":
			if role != nil && role.sharesNamespace {
				continue
			}
		case "config":
			if !configIsWritten {
				continue
			}
		case "secret":
			if len(subject.Secrets) == 0 || secretName(subject.Assignment.Target.Target) == "" && t.valuesSecretOf(subject) == nil {
				continue
			}
		}
		file, ok, err := t.renderExternalSecrets(host, template, subject)
		if err == nil && !ok {
			file.Name = template.file
			file.Content, file.shape, err = runner.renderFile(t, host, template, subject, names)
		}
		switch {
		case errors.Is(err, ErrUnknown):
			unknown = true
		case err != nil:
			failures = append(failures, err)
		case file.Content != nil:
			files = append(files, file)
		}
	}
	if failures != nil {
		return nil, errors.Join(failures...)
	}
	if unknown {
		return nil, ErrUnknown
	}
	return files, nil
}

// renderFile returns the content and its shape, if any.
func (e *runner) renderFile(
	t *Templates, host *hostTemplates, template *compiledTemplate, subject Subject, names slots,
) ([]byte, *shape, error) {
	key, hasShape := t.shapeKeyOf(host, template, subject)
	if !hasShape {
		content, err := e.renderTemplate(t, template, subject)
		return content, nil, err
	}
	shapes := t.shapes.shardOf(&key)
	known := shapes.get(&key)
	if shape := known.shape; shape != nil && shape != noShape {
		return shape.fill(names), shape, nil
	}
	content, err := e.renderTemplate(t, template, subject)
	if err != nil || content == nil {
		return content, nil, err
	}
	ofConfig := template.kind == "config" || template.kind == "secret"
	switch {
	case known.shape != nil: // noShape
	case ofConfig && known.first == nil: // half of all configurations belong to a single assignment
		shapes.keep(&key, shapeEntry{first: subject.Assignment}, maxShapes)
	case !ofConfig || known.first != subject.Assignment: // an apply renders each assignment once more
		made := e.makeShape(t, template, subject, names, content)
		shapes.keep(&key, shapeEntry{shape: made}, maxShapes)
		if made != noShape {
			return content, made, nil
		}
	}
	return content, nil, nil
}

func (e *runner) renderTemplate(t *Templates, template *compiledTemplate, subject Subject) ([]byte, error) {
	if !e.isFilled {
		e.data.fill(t, subject)
		e.isFilled, e.hasSecrets = true, false
	}
	if !e.hasSecrets && (template.kind == "secret" || !template.isBuiltin) { // no other template reads them
		e.data.root["Secrets"] = secretsOf(subject.Secrets, subject.Assignment.Host.ClusterType.SecretStores)
		e.hasSecrets = true
	}
	if template.isBuiltin && template.kind == "config" {
		if err := checkConfigSize(subject); err != nil {
			return nil, err
		}
	}
	if !template.isBuiltin || template.kind != "reconciler" {
		return e.execute(template, e.data.root)
	}
	if e.data.substituteProblem != nil {
		return nil, fmt.Errorf("deployment target %q: %w", subject.Assignment.Target.Name, e.data.substituteProblem)
	}
	content, err := e.execute(template, e.data.root)
	if err != nil || content == nil {
		return content, err
	}
	content, err = e.mergeFields(content, e.data.manifests["parameters"].(map[string]any),
		t.workspaceOf(subject.Assignment.Target.Workload.Workspace))
	if of := reconciler.Named(template.name); err == nil && of.OnHub() {
		content, err = escapeActions(content, of)
	}
	return content, err
}

// checkConfigSize returns an error if the configuration does not fit into a ConfigMap.
func checkConfigSize(subject Subject) error {
	total, largest, largestSize := 0, "", 0
	for _, key := range slices.Sorted(maps.Keys(subject.Config)) {
		scale := valueSize{}
		if err := scale.add(subject.Config[key], 0); err != nil && scale.size <= maxValue {
			return err
		}
		if total += scale.size; scale.size > largestSize {
			largest, largestSize = key, scale.size
		}
	}
	if total <= maxConfigMap {
		return nil
	}
	container := ""
	if subject.Origin != nil {
		container = subject.Origin(largest)
	}
	var path *fleet.Path
	if container != "" {
		path = fleet.PathOf("config_containers", container).Attribute("data").Key(largest)
	}
	return errorAt(path,
		"the configuration of deployment target %q is larger than %d MiB, which is the limit of Kubernetes; its largest key is %q",
		subject.Assignment.Target.Name, maxConfigMap>>20, largest)
}

// makeShape renders again with marks in place of names.
func (e *runner) makeShape(t *Templates, template *compiledTemplate, subject Subject, names slots, plain []byte) *shape {
	e.data.setNames(mark)
	defer e.data.setNames(func(slot int) string { return names[slot] })
	marked, err := e.renderTemplate(t, template, subject)
	if err != nil {
		return noShape
	}
	return shapeFrom(marked, plain, names)
}

// execute returns nil if the manifests write only white space.
func (e *runner) execute(template *compiledTemplate, data map[string]any) ([]byte, error) {
	if template.mutates {
		data = deep.Copy(data).(map[string]any)
	}
	e.reset()
	for i, manifest := range e.boundManifests(template) {
		start := e.output.Len()
		err := manifest.Execute(&e.output, data)
		if err != nil {
			return nil, template.failure(i, err, e.data.config, e.data.manifests["parameters"])
		}
		e.output.endManifest(start, template.separator)
	}
	if len(bytes.TrimSpace(e.output.buffer)) == 0 {
		return nil, nil
	}
	return bytes.Clone(e.output.buffer), nil
}

type fileBuffer struct {
	buffer []byte
}

func (o *fileBuffer) Len() int { return len(o.buffer) }

func (o *fileBuffer) Write(text []byte) (int, error) {
	if len(o.buffer)+len(text) > MaxFile {
		return 0, problemf("writes more than %d MiB into one file", MaxFile>>20)
	}
	o.buffer = append(o.buffer, text...)
	return len(text), nil
}

// endManifest drops a manifest of white space, or adds a final newline and the separator.
func (o *fileBuffer) endManifest(start int, separator string) {
	manifest := o.buffer[start:]
	if len(bytes.TrimSpace(manifest)) == 0 {
		o.buffer = o.buffer[:start]
		return
	}
	if manifest[len(manifest)-1] != '\n' {
		o.buffer = append(o.buffer, '\n')
	}
	if start == 0 || separator == "" || bytes.HasPrefix(o.buffer[start:], []byte(separator)) {
		return
	}
	o.buffer = append(o.buffer, separator...)
	copy(o.buffer[start+len(separator):], o.buffer[start:len(o.buffer)-len(separator)])
	copy(o.buffer[start:], separator)
}

// TemplateError reports a template that does not parse or render.
type TemplateError struct {
	Type     string
	Name     string
	Manifest int
	Line     int    // of the manifest, from 1; 0 if unknown
	Action   string // such as "{{ .Manifests.repo }}"; "" if unknown
	Message  string
	cause    error
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s template %q, manifests[%d]%s", e.Type, e.Name, e.Manifest, e.position())
}

func (e *TemplateError) position() string {
	text := ""
	if e.Line > 0 {
		text = fmt.Sprintf(", line %d", e.Line)
	}
	if e.Action != "" {
		text += ", " + e.Action
	}
	return text + ": " + e.Message
}

func (e *TemplateError) Unwrap() error { return e.cause }

// Finding converts the error to a finding about the fleet.
func (e *TemplateError) Finding() fleet.Finding {
	return fleet.Finding{Path: fleet.PathOf("templates", e.Name).String(), Message: e.Error()}
}

// problem is an error for users.
type problem struct{ text string }

func (p *problem) Error() string { return p.text }

func problemf(format string, arguments ...any) error {
	return &problem{fmt.Sprintf(format, arguments...)}
}

var (
	executionMessage  = regexp.MustCompile(`(?s)^template: ` + manifestName + `:(\d+):(\d+): executing ".*?" at <.*?>: (.*)$`)
	parseMessage      = regexp.MustCompile(`(?s)^template: ` + manifestName + `:(\d+): (.*)$`)
	undefinedFunction = regexp.MustCompile(`^function "(.*)" not defined$`)
	calling           = regexp.MustCompile(`^error calling [^:]*: `)
)

// maxMessage bounds a message, which a template chooses freely.
const maxMessage = 2 << 10

// failure converts an error of text/template. Its message repeats no value of the data.
func (c *compiledTemplate) failure(manifest int, err error, values ...any) *TemplateError {
	failure := explain(c.sources[manifest], err)
	failure.Type, failure.Name, failure.Manifest, failure.cause = c.kind, c.name, manifest, err
	if !errors.Is(err, ErrUnknown) {
		failure.Message = wording.CutMiddle(secret.Unrepeated(failure.Message, nil, values...), maxMessage)
	}
	return failure
}

func explain(source string, err error) *TemplateError {
	text := err.Error()
	failure := &TemplateError{Message: text}
	if match := executionMessage.FindStringSubmatch(text); match != nil {
		failure.Line, _ = strconv.Atoi(match[1])
		column, _ := strconv.Atoi(match[2])
		failure.Action = actionAt(source, failure.Line, column)
		failure.Message = calling.ReplaceAllString(match[3], "")
	} else if match := parseMessage.FindStringSubmatch(text); match != nil {
		failure.Line, _ = strconv.Atoi(match[1])
		failure.Message = strings.ReplaceAll(match[2], manifestName+":", "line ")
		if name := undefinedFunction.FindStringSubmatch(failure.Message); name != nil {
			failure.Message = unknownFunction(name[1])
		}
	}
	var own *problem
	if errors.As(err, &own) {
		failure.Message = own.text
	}
	return failure
}

const maxAction = 80

func actionAt(source string, line, column int) string {
	offset := 0
	for ; line > 1; line-- {
		next := strings.IndexByte(source[offset:], '\n')
		if next < 0 {
			return ""
		}
		offset += next + 1
	}
	offset = min(offset+column, len(source))
	start := strings.LastIndex(source[:offset], "{{")
	if start < 0 {
		return ""
	}
	action := source[start:]
	if end := strings.Index(action, "}}"); end >= 0 {
		action = action[:end+2]
	}
	action = strings.Join(strings.Fields(action), " ")
	if len(action) > maxAction {
		action = strings.ToValidUTF8(action[:maxAction], "") + "..."
	}
	return action
}
