package reconciler

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Confinement lists the arguments that confine an agent's controllers. Without them, a user who creates the agent's
// objects in one namespace gets the controllers' permissions on the whole cluster.
type Confinement struct {
	// Selector selects the controllers' Deployments. In the agent's namespace, images identify them.
	Selector  string
	Arguments map[string][]Argument
}

// Argument is a flag with its required value; "" permits any and sets the controller's own account.
type Argument struct {
	Flag  string
	Value string
}

const (
	accountFlag    = "--default-service-account"
	referencesFlag = "--no-cross-namespace-refs"
)

// fluxConfinement has the arguments of https://fluxcd.io/flux/installation/configuration/multitenancy/
var fluxConfinement = &Confinement{
	Selector: "app.kubernetes.io/part-of=flux",
	Arguments: map[string][]Argument{
		"kustomize-controller":        {{accountFlag, ""}, {referencesFlag, "true"}, {"--no-remote-bases", "true"}},
		"helm-controller":             {{accountFlag, ""}, {referencesFlag, "true"}},
		"notification-controller":     {{referencesFlag, "true"}},
		"image-reflector-controller":  {{referencesFlag, "true"}},
		"image-automation-controller": {{referencesFlag, "true"}},
	},
}

// Missing returns the arguments that a Deployment of the agent lacks, with values.
func (c *Confinement) Missing(deployment *unstructured.Unstructured) []string {
	name, container := c.controller(deployment)
	if container == nil {
		return nil
	}
	given := slices.Concat(container.texts("command"), container.texts("args"))
	var missing []string
	for _, argument := range c.Arguments[name] {
		if value := flagIn(given, argument.Flag); value == "" || argument.Value != "" && value != argument.Value {
			missing = append(missing, argument.Flag+"="+argument.valueFor(name, deployment))
		}
	}
	return missing
}

// Add appends and returns the missing arguments. A later argument overrides an earlier one.
func (c *Confinement) Add(deployment *unstructured.Unstructured) []string {
	missing := c.Missing(deployment)
	if len(missing) == 0 {
		return nil
	}
	_, container := c.controller(deployment)
	args, _ := container["args"].([]any)
	container["args"] = slices.Concat(args, anyOf(missing))
	return missing
}

// controller returns the controller that a Deployment runs. A mirror may rename the image.
func (c *Confinement) controller(deployment *unstructured.Unstructured) (string, jsonObject) {
	containers := jsonObject(deployment.Object).list("spec", "template", "spec", "containers")
	for _, container := range containers {
		image, _, _ := strings.Cut(container.text("image"), "@")
		name, _, _ := strings.Cut(path.Base(image), ":")
		if c.Arguments[name] != nil {
			return name, container
		}
	}
	for _, name := range []string{deployment.GetLabels()["app.kubernetes.io/component"], deployment.GetName()} {
		if c.Arguments[name] != nil && len(containers) > 0 {
			at := slices.IndexFunc(containers, func(container jsonObject) bool { return container.text("name") == "manager" })
			return name, containers[max(at, 0)]
		}
	}
	return "", nil
}

// valueFor returns the value to set. The controller's own account exists only in its namespace, so objects elsewhere
// get the permissions of an account of their namespace.
func (a Argument) valueFor(controller string, deployment *unstructured.Unstructured) string {
	if a.Value != "" {
		return a.Value
	}
	if account := jsonObject(deployment.Object).text("spec", "template", "spec", "serviceAccountName"); account != "" {
		return account
	}
	return controller
}

func flagIn(arguments []string, flag string) string {
	value := ""
	for i, argument := range arguments {
		name, given, hasValue := strings.Cut(argument, "=")
		if name != flag {
			continue
		}
		switch {
		case hasValue:
			value = given
		case flag == accountFlag && i+1 < len(arguments):
			value = arguments[i+1]
		case flag != accountFlag:
			value = "true"
		}
	}
	return value
}

// DescribeMissing lists the arguments a Deployment lacks, as a clause.
func DescribeMissing(deployment *unstructured.Unstructured, missing []string) string {
	return "Deployment " + deployment.GetNamespace() + "/" + deployment.GetName() + " lacks " + wording.List(missing, wording.Named)
}
