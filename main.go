// Command terraform-provider-flotilla serves the Flotilla provider to Terraform and OpenTofu.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/garbage"
)

// version is set by the linker for a release.
var version = "dev"

func main() {
	renderer.RunIfWorker()
	debug := flag.Bool("debug", false, "serve for a debugger, and print how Terraform finds this process")
	printVersion := flag.Bool("version", false, "print the version, and what this program is built for")
	flag.Parse()
	if *printVersion {
		fmt.Fprintf(os.Stdout, "terraform-provider-flotilla %s %s/%s\n", version, runtime.GOOS, runtime.GOARCH)
		return
	}
	garbage.Bound()
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	err := tf6server.Serve("registry.terraform.io/flotilla/flotilla", func() tfprotov6.ProviderServer {
		return provider.Server(provider.New(version)())
	}, options...)
	if err != nil {
		log.Fatal(err)
	}
}
