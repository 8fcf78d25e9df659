package provider_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const (
	bitbucketToken = "s3cret"
	bitbucketUser  = "{7a3f1c52-8120-4f0c-a7bc-87800b9d6f70}"
	blockedBecause = "1 more approval is needed"
)

// testBitbuckets tests each kind with an existing reviewer.
func testBitbuckets(t *testing.T, test func(t *testing.T, b *bitbucket, kind, reviewer string)) {
	t.Parallel()
	for kind, reviewer := range map[string]string{"bitbucket": bitbucketUser, "bitbucket_datacenter": "anna"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newBitbucket(t, kind == "bitbucket"), kind, reviewer)
		})
	}
}

func TestARequestLivesOnBitbucket(t *testing.T) {
	testBitbuckets(t, func(t *testing.T, b *bitbucket, kind, reviewer string) {
		playAlways(t, kind, "bitbucket_datacenter")
		proposed := func(database, more string) string {
			return small{
				database: strconv.Quote(database),
				extra:    fmt.Sprintf("delivery = { mode = \"pull_request\", forge = %q, reviewers = [%q]%s }", kind, reviewer, more),
			}.config(
				b.repo,
			)
		}
		checkBranch := func(want string) {
			t.Helper()
			if content := b.repo.read(t, "dev")["large/app-core/platform-config.yaml"]; !strings.Contains(content, want) {
				t.Errorf("the branch has no %s:\n%s", want, content)
			}
		}
		steps := []resource.TestStep{
			{Config: small{}.config(b.repo)},
			{Config: proposed("mysql://two", ""), ConfigPlanChecks: emptyPlan, Check: func(*terraform.State) error {
				checkBranch("mysql://one")
				if pull := b.pulls[0]; len(b.pulls) != 1 || pull.state != "OPEN" || pull.head != "flotilla/dev/dev" ||
					!slices.Equal(pull.reviewers, []string{reviewer}) ||
					!strings.HasPrefix(pull.description, "<!-- flotilla-assignment: dev -->") ||
					!strings.Contains(pull.description, "| `large` | `app-core` |") {
					t.Errorf("the request is %+v", pull)
				}
				return nil
			}},
			{ // an update keeps reviewers that people added
				PreConfig: func() { b.pulls[0].reviewers = append(b.pulls[0].reviewers, "by-hand") },
				Config:    strings.Replace(proposed("mysql://three", ""), "delivery = {", `delivery = { title = "Another",`, 1),
				Check: func(*terraform.State) error {
					if pull := b.pulls[0]; len(b.pulls) != 1 || pull.title != "Another" || !slices.Equal(pull.reviewers, []string{reviewer, "by-hand"}) {
						t.Errorf("the request is %+v", pull)
					}
					return nil
				},
			},
			{PreConfig: func() { b.blocked = true }, Config: proposed("mysql://four", `, merge = "now"`), ExpectError: words(blockedBecause)},
			{
				PreConfig:        func() { b.blocked = false },
				Config:           proposed("mysql://four", `, merge = "now"`),
				ConfigPlanChecks: emptyPlan,
				Check: func(*terraform.State) error {
					checkBranch("mysql://four")
					if len(b.pulls) != 1 || b.pulls[0].state != "MERGED" {
						t.Errorf("the request is %+v", b.pulls[0])
					}
					return nil
				},
			},
		}
		if !b.cloud {
			autoMerge := proposed("mysql://five", `, merge = "when_checks_succeed"`)
			steps = append(steps,
				resource.TestStep{PreConfig: func() { b.blocked = true }, Config: autoMerge, Check: func(*terraform.State) error {
					if pull := b.pulls[1]; pull.state != "OPEN" || pull.autoMergeCommit != b.tip(pull.head) {
						t.Errorf("the request is %+v", pull)
					}
					b.blocked = false
					return nil
				}},
				resource.TestStep{Config: autoMerge, ConfigPlanChecks: emptyPlanBeforeApply, Check: func(*terraform.State) error {
					checkBranch("mysql://five")
					return nil
				}},
			)
		}
		testSteps(t, resource.TestCase{Steps: steps})
	})
}

func TestSettingsThatBitbucketLacksAreErrorsOfThePlan(t *testing.T) {
	testBitbuckets(t, func(t *testing.T, b *bitbucket, kind, reviewer string) {
		refused := map[string]string{
			`labels = ["fleet"]`:         "have no labels; remove the labels",
			`reviewers = ["owner/team"]`: `reviewer "owner/team" is not a`,
		}
		if b.cloud {
			refused[`merge = "when_checks_succeed"`] = `the API of Bitbucket Cloud cannot turn on auto-merge`
		}
		for setting, want := range refused {
			config := small{extra: fmt.Sprintf("delivery = { mode = \"pull_request\", forge = %q, %s }", kind, setting)}.config(b.repo)
			testSteps(t, resource.TestCase{Steps: []resource.TestStep{{Config: config, PlanOnly: true, ExpectError: words(want)}}})
			module, err := providertest.ParseModule(config, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, diags := providertest.New(startProvider).Plan(t.Context(), module.Configuration)
			if !slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
				return d.Error && d.At == `AttributeName("delivery")` && d.Summary == "Invalid delivery" && strings.Contains(d.Detail, want)
			}) {
				t.Errorf("%s: %s", setting, diags)
			}
		}
		if len(b.pulls) != 0 || b.tip("flotilla/dev/dev") != "" {
			t.Error("something was proposed")
		}
	})
}

// Only users can be reviewers on GitLab.
func TestATeamAsAReviewerOnGitLabIsAnErrorOfThePlan(t *testing.T) {
	testBitbuckets(t, func(t *testing.T, b *bitbucket, _, _ string) {
		extra := `delivery = { mode = "pull_request", forge = "gitlab", reviewers = ["owner/team"] }`
		testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
			Config: small{extra: extra}.config(b.repo), PlanOnly: true, ExpectError: words(`reviewer "owner/team" is not a username`),
		}}})
	})
}

// Git cannot have both a branch dev and a branch dev/proposal.
func TestAProposalBranchBesideABranchIsAnErrorOfThePlan(t *testing.T) {
	testBitbuckets(t, func(t *testing.T, b *bitbucket, kind, _ string) {
		extra := func(branch string) string {
			return fmt.Sprintf("delivery = { mode = \"pull_request\", forge = %q, branch = %q }", kind, branch)
		}
		base := small{}.config(b.repo)
		testSteps(t, resource.TestCase{Steps: []resource.TestStep{
			{Config: base},
			{
				Config: small{extra: extra("dev/proposal")}.config(b.repo), PlanOnly: true,
				ExpectError: words(`has a branch "dev", and Git allows no branch "dev/proposal" for the pull request beside it`),
			},
			{Config: small{extra: extra("proposal/dev")}.config(b.repo)},
		}})
	})
}

// The key of a build is the hash of its context.
func TestComplianceReadsTheBuildsOfBitbucket(t *testing.T) {
	testBitbuckets(t, func(t *testing.T, b *bitbucket, kind, _ string) {
		settings := map[string]any{"git": map[string]any{"token": bitbucketToken}}
		configuration := assigned(b.repo.url, fleetWithClusters(nil), nil)
		configuration.Provider = settings
		apply(t, providertest.New(startProvider), configuration)
		for context, state := range map[string]string{
			"flotilla/drone-1/cluster": "SUCCESSFUL", "flotilla/drone-1/cluster-type": "SUCCESSFUL",
			"flotilla/drone-2/cluster": "SUCCESSFUL", "flotilla/drone-2/cluster-type": "FAILED",
		} {
			b.addBuild(context, state, "reconciliation")
		}
		values, diags := readCompliance(
			t,
			b.repo.url,
			settings,
			map[string]any{"feedback": map[string]any{"commit_statuses": map[string]any{"forge": kind}}},
		)
		if got := clusterVerdicts(values); diags.Err() != nil || !regexp.MustCompile(`^ready failed unknown$`).MatchString(got) {
			t.Errorf("the verdicts are %q: %s", got, diags)
		}
	})
}

// Flux needs username:token for Bitbucket Cloud.
func TestATokenThatFluxCannotSendToBitbucketIsAnErrorOfThePlan(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"s3cret": "feedback.token must be username:token for Flux and Bitbucket Cloud", "me@example.com:s3cret": ""} {
		config := `provider "flotilla" { clusters = { "drone-1" = { host = "https://127.0.0.1:1" } } }` + "\n" + strings.Replace(
			agentOf("https://bitbucket.org/platform/gitops.git"),
			"reconciler ",
			fmt.Sprintf(
				"feedback = { context = \"fleet/{cluster}/{host}\" }\n  credentials_wo = { token = \"t\", feedback = { token = %q } }\n  reconciler ",
				token,
			),
			1,
		)
		module, err := providertest.ParseModule(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, diags := providertest.New(startProvider).Plan(t.Context(), module.Configuration)
		found := slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
			return d.Error && d.At == `AttributeName("feedback")` && d.Summary == "Invalid agent" &&
				strings.Contains(strings.ToLower(d.Detail), strings.ToLower(want))
		})
		if found != (want != "") || strings.Contains(diags.String(), "s3cret") {
			t.Errorf("%s: %s", token, diags)
		}
	}
}
