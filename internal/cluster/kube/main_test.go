package kube_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// fleetVariable is the environment variable that makes the test binary serve the fleet of the benchmark in its own process.
const fleetVariable = "FLOTILLA_TEST_FLEET"

func TestMain(m *testing.M) {
	if os.Getenv(fleetVariable) != "" {
		if err := serveFleet(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(kubetest.Main(m.Run))
}
