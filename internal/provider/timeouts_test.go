package provider_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	gitclient "github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// silentServer returns the address of a server that accepts connections and never answers.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var connections []net.Conn
		for {
			connection, err := listener.Accept()
			if err != nil {
				break
			}
			connections = append(connections, connection)
		}
		for _, connection := range connections {
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func TestTimeoutNamesItsSettingAndTheRemedy(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	address := silentServer(t)
	private, public := sshKey(t, "")
	host, port, _ := net.SplitHostPort(address)
	key := fmt.Sprintf(
		"provider \"flotilla\" {\n  git = { ssh_private_key = %q, ssh_known_hosts = \"[%s]:%s %s\" }\n}\n",
		private,
		host,
		port,
		public,
	)
	for name, repo := range map[string]repository{
		"http": {url: "http://" + address + "/o/r.git"},
		"ssh":  {url: "ssh://git@" + address + "/o/r.git", provider: key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{
				Steps: []resource.TestStep{{
					Config:      small{extra: `timeouts = { read = "250ms" }`}.config(repo),
					ExpectError: words(`The operation took longer than timeouts.read = "250ms" allows:`),
				}, {
					Config:      small{extra: `timeouts = { read = "250ms" }`}.config(repo),
					ExpectError: words(`Nothing was written. To allow more, set timeouts = { read = "500ms" }.`),
				}},
			})
		})
	}
}

// newStallingProxy starts a proxy for the server of a repository. While stalled is true, it accepts pushes and never answers.
func newStallingProxy(t *testing.T, repo repository) (proxied repository, stalled *atomic.Bool) {
	t.Helper()
	behind, err := url.Parse(repo.url)
	if err != nil {
		t.Fatal(err)
	}
	stalled = &atomic.Bool{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stalled.Load() && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	repo.url = server.URL + behind.Path
	return repo, stalled
}

func TestTimeoutOfAWriteSaysThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	repo, stalled := newStallingProxy(t, giteaRepository(t))
	const nothing = `The branch was unchanged when it was last read, so nothing was written then; if a slow server still accepts the commit, the next plan shows it.`
	// The step that ran out of time differs between runs.
	timeout := func(operation string) *regexp.Regexp {
		before := words(fmt.Sprintf(`The operation took longer than timeouts.%s = "1s" allows: repository %q:`, operation, repo.url))
		after := words(fmt.Sprintf(`%s To allow more, set timeouts = { %s = "2s" }.`, nothing, operation))
		return regexp.MustCompile(before.String() + `[\s\S]*` + after.String())
	}
	short := `timeouts = { create = "1s", update = "1s", delete = "1s" }`
	stall := func(on bool) func() { return func() { stalled.Store(on) } }
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{PreConfig: stall(true), Config: small{extra: short}.config(repo), ExpectError: timeout("create")},
			{PreConfig: stall(false), Config: small{extra: strings.Replace(short, `create = "1s", `, "", 1)}.config(repo)},
			{PreConfig: stall(true), Config: small{database: `"mysql://two"`, extra: short}.config(repo), ExpectError: timeout("update")},
			{Config: repo.provider + "locals {}\n", ExpectError: timeout("delete")},
			{
				PreConfig: stall(false), Config: small{}.config(repo),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{expectOnlyChanges{assignment, []string{"timeouts"}}}},
				Check: func(*terraform.State) error {
					if commits := repo.commits(t, "dev"); commits != 1 {
						t.Errorf("%d commits, want one", commits)
					}
					return nil
				},
			},
		},
	})
}

func TestBadTimeoutsAndOnDestroyAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	// One plan reports all errors. Each step checks one of them.
	config := small{extra: `timeouts    = { craete = "20m", read = "soon", update = "0s", delete = 20 }
  on_destroy  = "keeep"
  protection  = { max_removed = -1 }
  rollback_to = "main"`}.config(repo)
	var steps []resource.TestStep
	for _, want := range []string{
		`craete: unknown attribute; did you mean "create"?`,
		`read: must be a duration above zero, such as "90s", "20m" or "1h30m".`,
		`update: must be a duration above zero`,
		`delete: must be a duration above zero`,
		`"keeep" is none of delete, keep; did you mean "keep"?`,
		`max_removed: must be a whole number from 0 to 2147483647, not -1`,
		`"main" is not an object id`,
	} {
		steps = append(steps, resource.TestStep{Config: config, PlanOnly: true, ExpectError: words(want)})
	}
	steps = append(steps, resource.TestStep{
		Config: small{extra: `timeouts = "20m"`}.config(repo), PlanOnly: true, ExpectError: words(`Must be an object, not a string.`),
	})
	testSteps(t, resource.TestCase{Steps: steps})
}

// A destroy plan reads the branch to find folders of new owners.
func TestADestroyPlanWaitsNoLongerThanTimeoutsRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	initHosted(t, folder, "r.git", "main")
	backend := httpBackend(t, folder)
	var stalled atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stalled.Load() {
			<-r.Context().Done()
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	w := providertest.New(startProvider)
	apply(t, w, assigned(server.URL+"/r.git", fleetOf(nil), map[string]any{
		"protection": map[string]any{"max_removed": 3}, "timeouts": map[string]any{"read": "30s"},
	}))
	apply(t, w, assigned(server.URL+"/r.git", fleetOf(nil), map[string]any{
		"protection": map[string]any{"max_removed": 3, "allow_empty": true}, "timeouts": map[string]any{"read": "1s"},
	}))
	stalled.Store(true)
	began := time.Now()
	if _, diags := w.Plan(t.Context(), providertest.Configuration{}, providertest.SkipRefresh()); diags.Err() != nil {
		t.Error(diags.Err())
	}
	if took := time.Since(began); took > 2*time.Minute { // the default is five minutes
		t.Errorf("the plan took %s", took)
	}
}

// deadlineHost is a Git host that records the deadlines of fetches and pushes.
type deadlineHost struct {
	*gittest.Host
	mu              sync.Mutex
	fetches, pushes []time.Time
}

func (p *deadlineHost) recordDeadline(ctx context.Context, deadlines *[]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline, _ := ctx.Deadline() // zero without a deadline
	*deadlines = append(*deadlines, deadline)
}

// RoundTrip counts only the pack as a push: the plan of an empty repository requests references as a push does.
func (p *deadlineHost) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.String(), "/info/refs?service=git-upload-pack"):
		p.recordDeadline(r.Context(), &p.fetches)
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		p.recordDeadline(r.Context(), &p.pushes)
	}
	return p.Host.RoundTrip(r)
}

func TestTheGuideOnAssignmentsSaysHowLongOperationsMayTake(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`limits each operation, connections included: (\d+) minutes for operations that write, and (\d+) for operations that read, plans included`).
		FindStringSubmatch(guideText(t, assignmentsGuide))
	if sentence == nil {
		t.Fatal("the guide does not say how long operations may take")
	}
	minutes := func(text string) time.Duration { n, _ := strconv.Atoi(text); return time.Duration(n) * time.Minute }
	writing, reading := minutes(sentence[1]), minutes(sentence[2])
	const url = "https://git.example.com/team/one.git"
	host := &deadlineHost{Host: gittest.NewHost()}
	host.Create("team/one", true)
	w := providertest.New(provider.StartWith(nil, gitclient.ConnectorOptions{Over: host}))
	checkDeadline := func(operation string, limit time.Duration, deadlines *[]time.Time, run func() providertest.Diagnostics) {
		t.Helper()
		*deadlines = nil
		began := time.Now()
		if diags := run(); diags.Err() != nil {
			t.Fatal(diags)
		}
		ended := time.Now()
		if len(*deadlines) == 0 {
			t.Errorf("%s does not reach the Git host", operation)
		}
		for _, deadline := range *deadlines {
			if deadline.Before(began.Add(limit)) || deadline.After(ended.Add(limit)) {
				t.Errorf("%s has a deadline %s after its start, want %s", operation, deadline.Sub(began), limit)
			}
		}
	}
	for _, step := range []struct {
		operation string
		fleet     providertest.Call
		options   []providertest.Option
	}{{"create", fleetOf(nil), nil}, {"update", databaseFleet("mysql://two"), nil}, {"delete", fleetOf(nil), []providertest.Option{providertest.Destroy()}}} {
		further := map[string]any{"protection": map[string]any{"max_removed": 100, "allow_empty": true}}
		var plan *providertest.Plan
		checkDeadline("the plan of "+step.operation, reading, &host.fetches, func() (diags providertest.Diagnostics) {
			plan, diags = w.Plan(t.Context(), assigned(url, step.fleet, further), step.options...)
			return diags
		})
		checkDeadline(step.operation, writing, &host.pushes, func() providertest.Diagnostics { return w.ApplyPlan(t.Context(), plan) })
	}
}
