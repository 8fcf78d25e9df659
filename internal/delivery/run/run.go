// Package run identifies the pipeline run of this process from environment variables.
package run

import (
	"net/url"
	"os"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// systems has the identity of a run for each known pipeline.
var systems = []string{
	"${CI_JOB_URL}", // GitLab
	"${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/actions/runs/${GITHUB_RUN_ID}",              // GitHub, Gitea, Forgejo
	"${SYSTEM_COLLECTIONURI}${SYSTEM_TEAMPROJECT}/_build/results?buildId=${BUILD_BUILDID}", // Azure Pipelines
	"https://bitbucket.org/${BITBUCKET_REPO_FULL_NAME}/pipelines/results/${BITBUCKET_BUILD_NUMBER}",
	"${BUILDKITE_BUILD_URL}",
	"${CIRCLE_BUILD_URL}",
	"${BUILD_URL}",  // Jenkins
	"${TFC_RUN_ID}", // HCP Terraform
}

// Current returns the URL or else the id of the run; "" in no known pipeline, or if the text has a credential.
func Current(variable func(name string) string) string {
	for _, system := range systems {
		isComplete := true
		text := os.Expand(system, func(name string) string {
			value := variable(name)
			isComplete = isComplete && value != ""
			return value
		})
		if !isComplete || folder.CheckText(text) != nil {
			continue
		}
		if at, err := url.Parse(text); err == nil && at.User == nil {
			return text
		}
	}
	return ""
}
