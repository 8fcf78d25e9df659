package provider_test

import (
	"cmp"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) {
	renderer.RunIfWorker()
	// Plans are short and leave little garbage: rare collections save time as long as there is memory.
	debug.SetGCPercent(1000)
	debug.SetMemoryLimit(2 << 30)
	// This is the address for configurations without a terraform block.
	os.Setenv("TF_ACC_PROVIDER_NAMESPACE", cmp.Or(os.Getenv("TF_ACC_PROVIDER_NAMESPACE"), "flotilla"))
	for _, variable := range []string{"FLOTILLA_GIT_TOKEN", "FLOTILLA_GIT_USERNAME", "FLOTILLA_GIT_PASSWORD", "FLOTILLA_GITHUB_APP_ID", "FLOTILLA_GITHUB_APP_INSTALLATION_ID", "FLOTILLA_GITHUB_APP_PRIVATE_KEY"} {
		os.Unsetenv(variable)
	}
	// Most tests wait for servers and Terraform: by default, more tests than processors run at once.
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	cache, err := os.MkdirTemp("", "flotilla-cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("FLOTILLA_CACHE_DIR", cache)
	gittest.Hurry(cache)
	code := kubetest.Main(func() int { return giteatest.Main(m) })
	removeMirror()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

// factories serve the provider in the test's process.
func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"flotilla": startProvider,
	}
}

// requiredProviders is needed for imports. The test framework adds it to other steps.
const requiredProviders = `
terraform {
  required_providers {
    flotilla = { source = "flotilla/flotilla" }
  }
}
`
