// Command releasecheck looks into the folder that goreleaser leaves, and tells what a registry of providers would miss
// in it: names, checksums, the manifest, and what is in each archive.
//
//	releasecheck <folder> <manifest> <os_arch>...
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: releasecheck <folder> <manifest> <os_arch>...")
		os.Exit(2)
	}
	r, err := check(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "%s: %d archives, checksums and manifest are what a registry takes\n", r.version, len(os.Args[3:]))
}
