package run_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/run"
)

func TestTheRunOfEachPipelineIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"no pipeline": {map[string]string{"HOME": "/root"}, ""},
		"GitHub": {map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/fleet", "GITHUB_RUN_ID": "17"},
			"https://github.com/acme/fleet/actions/runs/17"},
		"GitHub, without an id": {map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/fleet"}, ""},
		"GitLab":                {map[string]string{"CI_JOB_URL": "https://gitlab.example.com/acme/fleet/-/jobs/4"}, "https://gitlab.example.com/acme/fleet/-/jobs/4"},
		"Azure": {map[string]string{"SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/", "SYSTEM_TEAMPROJECT": "fleet", "BUILD_BUILDID": "3"},
			"https://dev.azure.com/acme/fleet/_build/results?buildId=3"},
		"Bitbucket": {map[string]string{"BITBUCKET_REPO_FULL_NAME": "acme/fleet", "BITBUCKET_BUILD_NUMBER": "9"},
			"https://bitbucket.org/acme/fleet/pipelines/results/9"},
		"Jenkins":       {map[string]string{"BUILD_URL": "https://jenkins.example.com/job/fleet/5/"}, "https://jenkins.example.com/job/fleet/5/"},
		"HCP Terraform": {map[string]string{"TFC_RUN_ID": "run-CKuwsxMGgMd3W7Ui"}, "run-CKuwsxMGgMd3W7Ui"},
		"a credential":  {map[string]string{"BUILD_URL": "https://ci:secret@jenkins.example.com/job/fleet/5/"}, ""},
		"two lines":     {map[string]string{"TFC_RUN_ID": "run-1\nFlotilla-Assignment: other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run.Current(func(name string) string { return test.environment[name] }); got != test.want {
				t.Errorf("the run is %q, want %q", got, test.want)
			}
		})
	}
}
