package forge_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// pullFixture has the requests and answers of a kind of Git host for dev's pull request, number 7.
type pullFixture struct {
	path, url string // path of the repository, end of the URL of the web page
	// open lists and reads the open pull requests from dev's head into main, or, if anywhere is set, into any branch.
	open func(anywhere bool, pulls ...fields) []exchange
	// get reads the pull request.
	get func(changes ...fields) []exchange
	// The last exchange of merge is the merge.
	create, update, close exchange
	merge                 []exchange
	created, afterMerge   []exchange // read after a success

	text            string // the field of the body
	merged, closed  fields
	oldHead, fork   fields
	elsewhere       fields // changes for a pull request into prod
	refuses         int    // status of a refused create
	unknownStatus   int
	unknownBranch   string
	refusal         func(message string) fields
	missing, noRepo exchange
}

func (w pullFixture) withText(text string) fields { return fields{w.text: text} }

// refuseLast returns the exchanges with a refused last one.
func (w pullFixture) refuseLast(exchanges []exchange, status int, message string) []exchange {
	all := append([]exchange{}, exchanges...)
	last := &all[len(all)-1]
	last.status, last.answer = status, w.refusal(message)
	return all
}

func pullFixtures() map[forge.Forge]pullFixture {
	listing := func(request, base string, answer func(...fields) any, pull func(...fields) fields) func(bool, ...fields) []exchange {
		return func(anywhere bool, pulls ...fields) []exchange {
			if anywhere {
				request = strings.Replace(request, base, "", 1)
			}
			listed := []fields{}
			for _, changes := range pulls {
				listed = append(listed, pull(changes))
			}
			return []exchange{{request: request, answer: answer(listed...)}}
		}
	}
	list := func(pulls ...fields) any { return append([]fields{}, pulls...) }
	reading := func(request string, pull func(...fields) fields) func(...fields) []exchange {
		return func(changes ...fields) []exchange { return []exchange{{request: request, answer: pull(changes...)}} }
	}
	titled := func(more string) string { return `{"title": "Deploy dev", ` + more + `}` }
	described := `"description": ` + quoteJSON(devBody)
	hubCreate := titled(`"head": "flotilla/dev", "base": "main", "body": ` + quoteJSON(devBody))
	message := func(text string) fields { return fields{"message": text} }
	return map[forge.Forge]pullFixture{
		forge.GitHub: {
			path: "/owner/gitops.git", url: "/owner/gitops/pull/7",
			open: listing(hubOpen, "base=main&", list, hubListed), get: reading(hubGet, hubPull),
			create: exchange{request: "POST " + hub + "/pulls", status: 201, answer: hubPull(), body: hubCreate},
			update: exchange{request: "PATCH " + hub + "/pulls/7", body: titled(`"body": ` + quoteJSON(devBody)), answer: hubPull()},
			close:  exchange{request: "PATCH " + hub + "/pulls/7", body: `{"state": "closed"}`, answer: hubPull()},
			merge:  []exchange{hubRepository(true, true, true), {request: hubMerge, body: hubAsk, answer: fields{"sha": mergedAs, "merged": true}}},
			text:   "body", merged: hubMerged, closed: fields{"state": "closed"}, oldHead: hubOldHead, fork: hubFork,
			elsewhere: fields{"base": fields{"ref": "prod", "sha": oldHead, "repo": fields{"id": 5}}},
			refuses:   422, unknownStatus: 422, unknownBranch: "head is invalid", refusal: hubRefusal,
			missing: exchange{request: hubGet}, noRepo: exchange{request: hubOpen},
		},
		forge.GitLab: {
			path: "/group/sub/gitops.git", url: "/group/sub/gitops/-/merge_requests/7",
			open: listing(labList, "&target_branch=main", list, labListed), get: reading(labGet, labMerge),
			create: exchange{
				request: "POST " + lab, status: 201, answer: labMerge(),
				body: titled(described + `, "source_branch": "flotilla/dev", "target_branch": "main"`),
			},
			update: exchange{request: labPut, body: titled(described), answer: labMerge()},
			close:  exchange{request: labPut, body: `{"state_event": "close"}`, answer: labMerge(labClosed)},
			merge:  []exchange{{request: labPut + "/merge", body: `{"sha": "` + newHead + `"}`, answer: labMerge(labMerged)}},
			text:   "description", merged: labMerged, closed: labClosed, oldHead: labOldHead, fork: labFork,
			elsewhere: fields{"target_branch": "prod"},
			refuses:   409, unknownStatus: 409, unknownBranch: `Source branch "flotilla/dev" does not exist`, refusal: message,
			missing: exchange{request: labGet}, noRepo: exchange{request: labList},
		},
		forge.Azure: {
			path: "/org/owner/_git/gitops", url: "/org/owner/_git/gitops/pullrequest/7",
			open: listing(azOpen, "&searchCriteria.targetRefName=refs%2Fheads%2Fmain", func(p ...fields) any { return azList(p...) }, azPull),
			get:  reading(azGet, azPull),
			create: exchange{
				request: azPost, status: 201, answer: azPull(azStatus(azQueued)),
				body: titled(described + `, "sourceRefName": "refs/heads/flotilla/dev", "targetRefName": "refs/heads/main"`),
			},
			update: exchange{request: azPatch, body: titled(described), answer: azPull()},
			close:  exchange{request: azPatch, body: `{"status": "abandoned"}`, answer: azPull(azClosed)},
			merge: []exchange{{
				request: azPatch, answer: azPull(azStatus(azQueued)),
				body: `{"status": "completed", "lastMergeSourceCommit": {"commitId": "` + newHead + `"}}`,
			}},
			afterMerge: []exchange{{request: azGet, answer: azPull(azMerged)}},
			text:       "description", merged: azMerged, closed: azClosed, oldHead: azOldHead, fork: azFork,
			elsewhere: fields{"targetRefName": "refs/heads/prod"},
			refuses:   400, unknownStatus: 400, unknownBranch: "TF401398: the source and/or the target branch no longer exists",
			refusal: func(text string) fields { return azRefusal("SomeException", text) },
			missing: exchange{request: azGet}, noRepo: exchange{request: azOpen},
		},
		forge.Bitbucket: {
			path: "/owner/gitops.git", url: "/owner/gitops/pull-requests/7",
			open: func(anywhere bool, pulls ...fields) []exchange {
				base := "main"
				if anywhere {
					base = ""
				}
				var listed []fields
				var read []exchange
				for _, changes := range pulls {
					listed = append(listed, cloudPull(changes))
					if toJSON(changes["source"]) != toJSON(cloudFork["source"]) { // lists lack the reviewers
						read = append(read, cloudReads(changes)...)
					}
				}
				return concat(exchange{request: cloudList(base), answer: cloudPage(listed...)}, read)
			},
			get: cloudReads,
			create: exchange{
				request: cloudPost, status: 201, answer: cloudPull(),
				body: titled(described + `, "source": {"branch": {"name": "flotilla/dev"}}, "destination": {"branch": {"name": "main"}}`),
			},
			created: []exchange{cloudCommit(newHead)},
			update:  exchange{request: cloudPut, body: titled(described), answer: cloudPull()},
			close:   exchange{request: "POST " + cloud + "/pullrequests/7/decline", answer: cloudPull(cloudClosed)},
			merge: []exchange{
				{request: cloudGet, answer: cloudPull()},
				{request: cloudMerge, body: `{"close_source_branch": false}`, answer: cloudPull(cloudMerged)},
			},
			text: "description", merged: cloudMerged, closed: cloudClosed, oldHead: cloudOldHead, fork: cloudFork,
			elsewhere: fields{"destination": cloudEnd("prod", oldHead, "{repo}")},
			refuses:   400, unknownStatus: 400, unknownBranch: "source: Source branch not found", refusal: cloudRefusal,
			missing: exchange{request: cloudGet}, noRepo: exchange{request: cloudList("main")},
		},
		forge.BitbucketDataCenter: {
			path: repositoryPath(forge.BitbucketDataCenter), url: "/projects/PLAT/repos/gitops/pull-requests/7",
			open: listing(centerList, "", func(p ...fields) any { return centerPage(p...) }, centerPull), get: reading(centerGet, centerPull),
			create: exchange{
				request: "POST " + center, status: 201, answer: centerPull(),
				body: titled(described + `, "fromRef": {"id": "refs/heads/flotilla/dev"}, "toRef": {"id": "refs/heads/main"}`),
			},
			update: exchange{request: centerPut, body: titled(described + `, "version": 3`), answer: centerPull()},
			close:  exchange{request: "POST " + center + "/7/decline?version=3", answer: centerPull(centerClosed)},
			merge:  []exchange{{request: centerMerge, body: `{}`, answer: centerPull(centerMerged)}},
			text:   "description", merged: centerMerged, closed: centerClosed, oldHead: centerOldHead, fork: centerFork,
			elsewhere: fields{"toRef": centerRef("prod", oldHead, 5)},
			refuses:   409, unknownStatus: 404, unknownBranch: `Branch "refs/heads/flotilla/dev" does not exist.`,
			refusal: func(text string) fields { return centerRefusal("SomeException", text) },
			missing: exchange{request: centerGet}, noRepo: exchange{request: centerList},
		},
	}
}

// checkPromise checks a promise with a scripted Git host.
type checkPromise = func(name string, promise func(*testing.T, *forge.GitHost), exchanges ...any)

// forEachPullFixture checks promises with scripts of each kind of Git host. Tests of Gitea run a real server.
func forEachPullFixture(t *testing.T, test func(w pullFixture, check checkPromise)) {
	t.Helper()
	for kind, w := range pullFixtures() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(w, func(name string, promise func(*testing.T, *forge.GitHost), exchanges ...any) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					promise(t, newScriptedHost(t, kind, w.path, concat(exchanges...)))
				})
			})
		})
	}
}

// refuse returns the exchange with a refusal.
func (w pullFixture) refuse(status int, e exchange, message string) exchange {
	return w.refuseLast([]exchange{e}, status, message)[0]
}

func TestFindPrefersTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	forEachPullFixture(t, func(w pullFixture, check checkPromise) {
		wantFound := func(state forge.RequestState, mergeCommit string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				got, err := host.Find(t.Context(), dev, 7)
				if err != nil || (got == nil) != (state == "") {
					t.Fatalf("got %+v, %v", got, err)
				}
				if got == nil {
					return
				}
				if !strings.HasSuffix(got.URL, w.url) {
					t.Errorf("got the page %s", got.URL)
				}
				want := forge.PullRequest{
					Number: 7, URL: got.URL, State: state, Owner: "dev", Base: "main", Head: "flotilla/dev", HeadCommit: newHead, MergeCommit: mergeCommit,
				}
				if *got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		}
		foreign := w.withText(prodMark)
		check("none", wantFound("", ""), w.open(false), w.refuse(404, w.missing, "none"))
		check("open", wantFound(forge.Open, ""), w.open(false, fields{}))
		check("merged", wantFound(forge.Merged, mergedAs), w.open(false), w.get(w.merged))
		check("closed", wantFound(forge.Closed, ""), w.open(false), w.get(w.closed))
		check("a text with CRLF", wantFound(forge.Closed, ""), w.open(false), w.get(w.closed, w.withText("Hello\r\n"+devMark+"\r\n")))
		check("foreign pull requests", wantFound("", ""), w.open(false, w.fork, foreign, w.withText(otherText)), w.get(w.closed, foreign))
	})
}

func TestABranchIsFreeUnlessAnotherPullRequestUsesIt(t *testing.T) {
	t.Parallel()
	forEachPullFixture(t, func(w pullFixture, check checkPromise) {
		wantFree := func(wantText string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) { t.Helper(); wantFreeHead(t, host, wantText) }
		}
		const from = `pull request #7 from "flotilla/dev" into `
		check("no pull request", wantFree(""), w.open(true))
		check("ours", wantFree(""), w.open(true, fields{}))
		check("a fork's", wantFree(""), w.open(true, withFields(w.fork, w.withText(prodMark))))
		check("ours into another branch", wantFree(`pull request #7 of assignment "dev" goes from "flotilla/dev" into "prod", not into "main"`),
			w.open(true, w.elsewhere))
		check("another's", wantFree(from+`"main" belongs to assignment "prod", not to "dev"`), w.open(true, w.withText(prodMark)))
		check("a person's into another branch", wantFree(from+`"prod" was not opened by assignment "dev"`),
			w.open(true, withFields(w.elsewhere, w.withText(otherText))))
	})
}

func TestEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	forEachPullFixture(t, func(w pullFixture, check checkPromise) {
		wantEnsure := func(kind error, wantText string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				wantEnsured(t, host, shortRequest(), kind, wantText, false)
			}
		}
		succeeds := wantEnsure(nil, "")
		none, existing := w.open(false), w.open(false, fields{})
		foreign, manual := w.open(false, w.withText(prodMark)), w.open(false, w.withText(otherText))
		check("a new pull request", succeeds, none, w.create, w.created)
		check("no change", succeeds, existing)
		check("no change, with CRLF", succeeds, w.open(false, w.withText(strings.ReplaceAll(devBody, "\n", "\r\n"))))
		check("an update", succeeds, w.open(false, fields{"title": "Old"}), w.update)
		check("a person's", wantEnsure(forge.ErrNotOwned, "pull request #7"), manual)
		check("another owner's", wantEnsure(forge.ErrNotOwned, `belongs to assignment "prod"`), foreign)
		check("a concurrent pull request", wantEnsure(forge.ErrNotOwned, `belongs to assignment "prod"`), none, w.refuse(w.refuses, w.create, "exists"), foreign)
		check("a lost answer", succeeds, none, w.refuse(502, w.create, "oh no"), existing)
		check("the host is down", wantEnsure(forge.ErrUnreachable, "502 Bad Gateway"), none, w.refuse(502, w.create, "oh no"), none)
		check("refused", wantEnsure(forge.ErrRefused, "nothing to merge"), none, w.refuse(w.refuses, w.create, "nothing to merge"), none)
		check("an unnoticed branch", succeeds, none, w.refuse(w.unknownStatus, w.create, w.unknownBranch), none, w.create, w.created)
		check("a token without rights", wantEnsure(forge.ErrUnauthorized, "you may not"), none, w.refuse(403, w.create, "you may not"))
		check("a wrong token", wantEnsure(forge.ErrUnauthorized, "401 Unauthorized"), w.refuse(401, w.noRepo, "who are you"))
		check("a missing repository", wantEnsure(forge.ErrNotFound, "404 Not Found: there is none"), w.refuse(404, w.noRepo, "there is none"))
	})
}

var devRequest = forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}

func TestMergeNow(t *testing.T) {
	t.Parallel()
	forEachPullFixture(t, func(w pullFixture, check checkPromise) {
		wantMerge := func(kind error, wantText string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				request := devRequest
				wantMerged(t, host, &request, forge.Now, kind, wantText)
			}
		}
		succeeds, merged := wantMerge(nil, ""), w.get(w.merged)
		refused := func(status int, message string) []exchange {
			return concat(w.get(), w.refuseLast(w.merge, status, message))
		}
		check("merged", succeeds, w.get(), w.merge, w.afterMerge, merged)
		check("a slow merge", succeeds, w.get(), w.merge, w.afterMerge, w.get(), merged)
		check("already merged", succeeds, merged)
		check("an unnoticed push", succeeds, w.get(w.oldHead), w.get(), w.merge, w.afterMerge, merged)
		check("a lost answer", succeeds, refused(502, "oh no"), merged)
		check("the head moved meanwhile", wantMerge(forge.ErrHeadMoved, "the head of pull request #7 is "+oldHead+", not "+newHead),
			refused(409, "modified"), w.get(w.oldHead))
		check("the head moved, and was merged", wantMerge(forge.ErrHeadMoved, "was merged at "+oldHead),
			w.get(), w.merge, w.afterMerge, w.get(w.merged, w.oldHead))
		check("already merged with another head", wantMerge(forge.ErrHeadMoved, "was merged at "+oldHead), w.get(w.merged, w.oldHead))
		check("not allowed", wantMerge(forge.ErrUnauthorized, "you may not"), refused(403, "you may not"), w.get())
		check("down", wantMerge(forge.ErrUnreachable, "500 Internal Server Error"), refused(500, "oh no"), w.get())
		check("closed", wantMerge(forge.ErrNotMergeable, "was closed"), w.get(w.closed))
		check("closed meanwhile", wantMerge(forge.ErrNotMergeable, "was closed"), refused(409, "closed"), w.get(w.closed))
		check("another's", wantMerge(forge.ErrNotOwned, "is not changed"), w.get(w.withText(prodMark)))
		check("a fork's", wantMerge(forge.ErrNotOwned, "does not come from branch"), w.get(w.fork)[:1])
		check("does not exist", wantMerge(forge.ErrNotFound, "pull request #7"), w.refuse(404, w.missing, "none"))
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	forEachPullFixture(t, func(w pullFixture, check checkPromise) {
		wantClose := func(kind error) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				request := devRequest
				err := host.Close(t.Context(), &request)
				if kind == nil && err != nil {
					t.Error(err)
				} else if kind != nil {
					wantError(t, err, kind, "pull request #7")
				}
			}
		}
		failed := w.refuse(500, w.close, "oh no")
		check("open", wantClose(nil), w.get(), w.close)
		check("closed", wantClose(nil), w.get(w.closed))
		check("merged", wantClose(nil), w.get(w.merged))
		check("a lost answer", wantClose(nil), w.get(), failed, w.get(w.closed))
		check("down", wantClose(forge.ErrUnreachable), w.get(), failed, w.get())
		check("another's", wantClose(forge.ErrNotOwned), w.get(w.withText(devMark+"er")))
	})
}
