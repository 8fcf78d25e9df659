package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// azureGit stands before the repository's name in URLs of Azure Repos.
const azureGit = "_git"

// azureBad is what names of projects and repositories cannot have, and a path
// should not.
const azureBad = `/\:*?"<>|;#{}%`

// locateAzure reads what comes before and after "_git":
//
//	https://dev.azure.com/{organization}/{project}/_git/{repository}
//	https://{organization}.visualstudio.com/[DefaultCollection/]{project}/_git/{repository}
//	https://{server}/{path}/{collection}/{project}/_git/{repository}
//
// Without a project its name is the repository's. Names may have spaces and
// letters of any kind. People are looked up at an address of their own in Azure
// DevOps Services ("Identities - Read Identities").
func locateAzure(clone, api *url.URL) (address, error) {
	at := address{forge: Azure, api: api}
	segments := strings.Split(strings.Trim(clone.Path, "/"), "/")
	n := len(segments)
	if n < 2 || segments[n-2] != azureGit {
		return address{}, fmt.Errorf("the URL's path %q is not that of a repository of Azure Repos: .../project/_git/repository", clone.Path)
	}
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, azureBad) || strings.ContainsFunc(segment, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\ufffd'
		}) {
			return address{}, fmt.Errorf("the URL's path %q does not name a repository", clone.Path)
		}
	}
	at.name = segments[n-1]
	before := segments[:n-2]
	collection := 1 // of the segments before the project
	host := strings.ToLower(clone.Hostname())
	if organization, ok := strings.CutSuffix(host, ".visualstudio.com"); ok {
		collection = 0
		if len(before) > 0 && strings.EqualFold(before[0], "DefaultCollection") {
			before = before[1:]
		}
		at.people = &url.URL{Scheme: clone.Scheme, Host: organization + ".vssps.visualstudio.com", Path: "/"}
	}
	root := url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: "/"}
	at.web = joined(&root, segments...).String()
	if api != nil {
		// The API's URL is that of the organization or collection, and tells how much
		// of the path is.
		known := strings.Split(strings.Trim(api.Path, "/"), "/")
		if collection = len(known); api.Path == "" || api.Path == "/" {
			collection = 0
		}
		collection = min(collection, len(before))
	} else if collection > 0 && host != "dev.azure.com" {
		collection = max(len(before)-1, 1)
	}
	switch {
	case len(before) < collection:
		return address{}, errors.New("the URL's path has no organization or collection before the project")
	case len(before) == collection:
		at.owner = at.name
	case len(before) == collection+1:
		at.owner = before[collection]
	default:
		return address{}, fmt.Errorf("the URL's path %q is not that of a repository of Azure Repos: organization/project/_git/repository", clone.Path)
	}
	if at.api == nil {
		at.api = root.JoinPath() // a copy
		at.api.Path = "/" + strings.Join(before[:collection], "/")
	}
	at.api.Path = strings.TrimRight(at.api.Path, "/") + "/"
	switch {
	case api != nil:
		at.people = at.api
	case host == "dev.azure.com":
		at.people = &url.URL{Scheme: clone.Scheme, Host: "vssps.dev.azure.com", Path: at.api.Path}
	case at.people == nil:
		at.people = at.api
	}
	return at, nil
}
