// Command act-runner runs jobs of Gitea Actions on this machine, without containers, one at a time. It speaks the protocol of Gitea's
// runner, and runs jobs by the same engine, Gitea's act.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"code.gitea.io/actions-proto-go/runner/v1/runnerv1connect"
	"connectrpc.com/connect"
	"github.com/nektos/act/pkg/model"
	"github.com/nektos/act/pkg/runner"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// label is the only one of runs-on.
const label = "ubuntu-latest"

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: act-runner <URL of Gitea> <registration token> <folder>")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := register(ctx, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	for ctx.Err() == nil {
		if err := r.runNext(ctx); err != nil {
			log.Print(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// jobRunner runs the jobs that a Gitea gives it.
type jobRunner struct {
	client      runnerv1connect.RunnerServiceClient
	url, folder string
	credentials http.Header
	version     int64 // of Gitea's list of tasks
}

func register(ctx context.Context, url, token, folder string) (*jobRunner, error) {
	r := &jobRunner{client: runnerv1connect.NewRunnerServiceClient(http.DefaultClient, url+"/api/actions"), url: url, folder: folder}
	registered, err := r.client.Register(ctx, connect.NewRequest(&runnerv1.RegisterRequest{
		Name: "act-runner", Token: token, Version: "act", Labels: []string{label},
	}))
	if err != nil {
		return nil, err
	}
	r.credentials = http.Header{"X-Runner-Uuid": {registered.Msg.Runner.Uuid}, "X-Runner-Token": {registered.Msg.Runner.Token}}
	_, err = r.client.Declare(ctx, newRequest(r, &runnerv1.DeclareRequest{Version: "act", Labels: []string{label}}))
	return r, err
}

func newRequest[T any](r *jobRunner, message *T) *connect.Request[T] {
	request := connect.NewRequest(message)
	for name, values := range r.credentials {
		request.Header()[name] = values
	}
	return request
}

// runNext runs a job, if one waits, and reports its result.
func (r *jobRunner) runNext(ctx context.Context) error {
	fetched, err := r.client.FetchTask(ctx, newRequest(r, &runnerv1.FetchTaskRequest{TasksVersion: r.version}))
	if err != nil {
		return err
	}
	task := fetched.Msg.Task
	if task == nil {
		r.version = fetched.Msg.TasksVersion
		return nil
	}
	state := &runnerv1.TaskState{Id: task.Id, Result: runnerv1.Result_RESULT_SUCCESS, StartedAt: timestamppb.Now()}
	if err := r.runTask(ctx, task); err != nil {
		log.Print(err)
		state.Result = runnerv1.Result_RESULT_FAILURE
	}
	state.StoppedAt = timestamppb.Now()
	_, err = r.client.UpdateTask(ctx, newRequest(r, &runnerv1.UpdateTaskRequest{State: state}))
	return err
}

func (r *jobRunner) runTask(ctx context.Context, task *runnerv1.Task) error {
	workflow, err := model.ReadWorkflow(strings.NewReader(string(task.WorkflowPayload)))
	if err != nil {
		return err
	}
	jobs := workflow.GetJobIDs()
	if len(jobs) != 1 {
		return errors.New("a task has one job")
	}
	plan, err := model.CombineWorkflowPlanner(workflow).PlanJob(jobs[0])
	if err != nil {
		return err
	}
	fields := task.Context.AsMap()
	text := func(name string) string { value, _ := fields[name].(string); return value }
	event, _ := fields["event"].(map[string]any)
	eventJSON, err := json.Marshal(event)
	if err != nil {
		return err
	}
	run, err := runner.New(&runner.Config{
		Workdir:               r.folder,
		ActionCacheDir:        r.folder,
		EventJSON:             string(eventJSON),
		Secrets:               task.Secrets,
		Vars:                  task.Vars,
		GitHubInstance:        r.url,
		DefaultActionInstance: r.url,
		AutoRemove:            true,
		LogOutput:             true,
		NoSkipCheckout:        true,
		PlatformPicker:        func([]string) string { return "-self-hosted" },
		PresetGitHubContext: &model.GithubContext{
			Event:           event,
			RunID:           strconv.FormatInt(task.Id, 10),
			RunNumber:       text("run_number"),
			Actor:           text("actor"),
			Repository:      text("repository"),
			EventName:       text("event_name"),
			Sha:             text("sha"),
			Ref:             text("ref"),
			RefName:         text("ref_name"),
			RefType:         text("ref_type"),
			HeadRef:         text("head_ref"),
			BaseRef:         text("base_ref"),
			Token:           task.Secrets["GITEA_TOKEN"],
			RepositoryOwner: text("repository_owner"),
			RetentionDays:   text("retention_days"),
		},
	})
	if err != nil {
		return err
	}
	return run.NewPlanExecutor(plan)(ctx)
}
