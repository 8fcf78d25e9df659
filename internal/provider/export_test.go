package provider

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// ForTest returns the provider with local repositories served in process: git processes for each request would take most of the
// time of tests. See [gittest.GitServes].
func ForTest() provider.Provider { return forTest(nil, git.ConnectorOptions{}) }

// StartAt starts a provider with another clock.
func StartAt(clock compliance.Clock) func() (tfprotov6.ProviderServer, error) {
	return StartWith(clock, git.ConnectorOptions{})
}

// StartWith starts a provider with another clock, nil for the machine's, and options of its Git client.
func StartWith(clock compliance.Clock, options git.ConnectorOptions) func() (tfprotov6.ProviderServer, error) {
	return func() (tfprotov6.ProviderServer, error) {
		server, isWhole := Server(forTest(clock, options)).(troubleshooting.Server)
		if !isWhole {
			return nil, errors.New("the provider has no actions, or lists nothing")
		}
		return schemaCacheServer{server}, nil
	}
}

// schemaCacheServer builds the constant schemas once for all tests.
type schemaCacheServer struct{ troubleshooting.Server }

var testedSchema = sync.OnceValues(func() (*tfprotov6.GetProviderSchemaResponse, error) {
	return Server(ForTest()).GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
})

func (schemaCacheServer) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return testedSchema()
}

// workers render for all providers of this process, because starting one takes longer than most tests render.
var workers = renderer.NewWorkers(8)

func forTest(clock compliance.Clock, options git.ConnectorOptions) provider.Provider {
	served := gittest.Options()
	options.Local, options.Init = served.Local, served.Init
	if clock == nil {
		clock = connection.WallClock{}
	}
	return &flotilla{version: "test", clock: clock, git: options, workers: workers}
}
