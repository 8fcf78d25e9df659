package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// azureOld ends older names of Azure DevOps Services, after the organization.
const (
	azureServices = "dev.azure.com"
	azureOld      = ".visualstudio.com"
)

const azureGit = "_git"

// azureBad are forbidden in names of projects and repositories.
const azureBad = `/\:*?"<>|;#{}%`

// locateAzure parses these URLs:
//
//	https://dev.azure.com/{organization}/{project}/_git/{repository}
//	https://{organization}.visualstudio.com/[DefaultCollection/]{project}/_git/{repository}
//	https://{server}/{path}/{collection}/{project}/_git/{repository}
//
// A missing project has the repository's name. Names may contain spaces and letters of any script. Azure DevOps Services has
// another server for people ("Identities - Read Identities").
func locateAzure(clone, api *url.URL) (address, error) {
	segments := strings.Split(strings.Trim(clone.Path, "/"), "/")
	n := len(segments)
	if n < 2 || segments[n-2] != azureGit {
		return address{}, fmt.Errorf("the URL's path %q is not that of a repository of Azure Repos: .../project/_git/repository", clone.Path)
	}
	for _, segment := range segments {
		if segment == "" || strings.ContainsAny(segment, azureBad) || strings.ContainsFunc(segment, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\ufffd'
		}) {
			return address{}, fmt.Errorf("the URL's path %q does not name a repository", clone.Path)
		}
	}
	root := &url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: "/"}
	at := address{name: segments[n-1], web: joinSegments(root, segments...).String()}
	before := segments[:n-2]
	collection := max(len(before)-1, 1) // before the project
	host := strings.ToLower(clone.Hostname())
	organization, old := strings.CutSuffix(host, azureOld)
	if old && len(before) > 0 && strings.EqualFold(before[0], "DefaultCollection") {
		before = before[1:]
	}
	switch {
	case api != nil:
		collection = min(len(strings.FieldsFunc(api.Path, func(r rune) bool { return r == '/' })), len(before))
	case old:
		collection = 0
	case host == azureServices:
		collection = 1
	}
	switch {
	case len(before) < collection:
		return address{}, errors.New("the URL's path has no organization or collection before the project")
	case len(before) == collection:
		at.owner = at.name
	case len(before) == collection+1:
		at.owner = before[collection]
	default:
		return address{}, fmt.Errorf(
			"the URL's path %q is not that of a repository of Azure Repos: organization/project/_git/repository",
			clone.Path,
		)
	}
	if at.api = api; api == nil {
		at.api = &url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: strings.Join(before[:collection], "/")}
	}
	at.api.Path = "/" + strings.Trim(at.api.Path, "/")
	if at.api.Path != "/" {
		at.api.Path += "/"
	}
	at.people = at.api
	switch {
	case api != nil:
	case old:
		at.people = &url.URL{Scheme: clone.Scheme, Host: organization + ".vssps" + azureOld, Path: "/"}
	case host == azureServices:
		at.people = &url.URL{Scheme: clone.Scheme, Host: "vssps." + azureServices, Path: at.api.Path}
	}
	return at, nil
}

// azureWeb parses git@ssh.dev.azure.com:v3/{organization}/{project}/{repository}.
func azureWeb(ssh *url.URL) string {
	segments := strings.Split(strings.Trim(strings.TrimSuffix(ssh.Path, ".git"), "/"), "/")
	if len(segments) != 4 {
		return "https://" + ssh.Hostname() + strings.TrimSuffix(ssh.Path, ".git")
	}
	return "https://" + azureServices + "/" + segments[1] + "/" + segments[2] + "/" + azureGit + "/" + segments[3]
}
