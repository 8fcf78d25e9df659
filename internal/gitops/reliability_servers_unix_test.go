//go:build unix

package gitops_test

// reliabilityServers are the real servers that the guide "Reliability" names.
var reliabilityServers = []serving{
	{name: "bare repository, local path", remote: servings[0].remote},
	{name: "git http-backend", config: anyObject, remote: overHTTP},
	{name: "git over ssh", remote: overSSH},
	{name: "Gitea over http", mirror: true, remote: overGiteaHTTP},
	{name: "Gitea over ssh", mirror: true, remote: overGiteaSSH},
}
