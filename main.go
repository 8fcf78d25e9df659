// Command terraform-provider-flotilla serves the Flotilla provider to Terraform and OpenTofu.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
)

// version is set by the linker for a release.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger, and print how Terraform finds this process")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address:         "registry.terraform.io/flotilla/flotilla",
		Debug:           *debug,
		ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
}
