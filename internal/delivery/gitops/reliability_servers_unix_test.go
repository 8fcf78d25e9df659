//go:build unix

package gitops_test

import "github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"

// reliabilityServers are the servers in the guide "Reliability".
var reliabilityServers = []serving{
	{name: "bare repository, local path", remote: servings[0].remote},
	{name: "git http-backend", config: anyObject, remote: overHTTP},
	{name: "git over ssh", remote: overSSH},
	{name: "Gitea over http", mirror: true, remote: overGiteaHTTP},
	{name: "Gitea over ssh", mirror: true, remote: overGiteaSSH},
}

// raceServers returns the servers for races: all of them in `make acceptance`, otherwise git over HTTP. TestReliabilityClaims covers
// a local path.
func raceServers() []serving {
	if !acceptancetest.All() {
		return reliabilityServers[1:2]
	}
	return reliabilityServers
}
