package forge_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// pullWorld is how a kind of Git host shows and changes dev's pull request, number 7.
type pullWorld struct {
	path, url string // of the repository; the end of the request's web page
	// open is a list of the open requests from dev's head, into main or, if anywhere, into any branch, and what is read of them.
	open func(anywhere bool, pulls ...fields) []exchange
	// get reads the request.
	get func(changes ...fields) []exchange
	// create, update and close are requests with their answers; merge ends with one.
	create, update, close exchange
	merge                 []exchange
	created, afterMerge   []exchange // read after a success

	text            string // the field of the body
	merged, closed  fields
	oldHead, fork   fields
	elsewhere       fields // into prod
	refuses         int    // the status of a refused create
	unknownStatus   int
	unknownBranch   string
	refusal         func(message string) fields
	missing, noRepo exchange
}

func (w pullWorld) described(text string) fields { return fields{w.text: text} }

// refused returns exchanges whose last one is refused.
func (w pullWorld) refused(exchanges []exchange, status int, message string) []exchange {
	all := append([]exchange{}, exchanges...)
	last := &all[len(all)-1]
	last.status, last.answer = status, w.refusal(message)
	return all
}

func pullWorlds() map[forge.Forge]pullWorld {
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
	described := `"description": ` + quoted(devBody)
	hubCreate := titled(`"head": "flotilla/dev", "base": "main", "body": ` + quoted(devBody))
	message := func(text string) fields { return fields{"message": text} }
	return map[forge.Forge]pullWorld{
		forge.GitHub: {
			path: "/owner/gitops.git", url: "/owner/gitops/pull/7",
			open: listing(hubOpen, "base=main&", list, hubListed), get: reading(hubGet, hubPull),
			create: exchange{request: "POST " + hub + "/pulls", status: 201, answer: hubPull(), body: hubCreate},
			update: exchange{request: "PATCH " + hub + "/pulls/7", body: titled(`"body": ` + quoted(devBody)), answer: hubPull()},
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
					if toJSON(changes["source"]) != toJSON(cloudFork["source"]) { // lists omit the reviewers
						read = append(read, cloudSees(changes)...)
					}
				}
				return flat(exchange{request: cloudList(base), answer: cloudPage(listed...)}, read)
			},
			get: cloudSees,
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
			path: pathOf(forge.BitbucketDataCenter), url: "/projects/PLAT/repos/gitops/pull-requests/7",
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

// onHost plays a promise on a scripted host.
type onHost = func(name string, promise func(*testing.T, *forge.GitHost), exchanges ...any)

// eachPullWorld plays promises on every kind of Git host with a script. Gitea's tests have a whole server.
func eachPullWorld(t *testing.T, play func(w pullWorld, on onHost)) {
	t.Helper()
	for kind, w := range pullWorlds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			play(w, func(name string, promise func(*testing.T, *forge.GitHost), exchanges ...any) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					promise(t, scripted(t, kind, w.path, flat(exchanges...)))
				})
			})
		})
	}
}

func (w pullWorld) not(status int, e exchange, message string) exchange {
	return w.refused([]exchange{e}, status, message)[0]
}

func TestCurrentIsTheOpenOneElseTheKnownOne(t *testing.T) {
	t.Parallel()
	eachPullWorld(t, func(w pullWorld, on onHost) {
		finds := func(state forge.RequestState, mergeCommit string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				got, err := host.Find(t.Context(), dev, 7)
				if err != nil || (got == nil) != (state == "") {
					t.Fatalf("current is %+v, %v", got, err)
				}
				if got == nil {
					return
				}
				if !strings.HasSuffix(got.URL, w.url) {
					t.Errorf("its page is %s", got.URL)
				}
				want := forge.PullRequest{
					Number: 7, URL: got.URL, State: state, Owner: "dev", Base: "main", Head: "flotilla/dev", HeadCommit: newHead, MergeCommit: mergeCommit,
				}
				if *got != want {
					t.Errorf("current is %+v", got)
				}
			}
		}
		others := w.described(prodMark)
		on("never one", finds("", ""), w.open(false), w.not(404, w.missing, "none"))
		on("open", finds(forge.Open, ""), w.open(false, fields{}))
		on("merged", finds(forge.Merged, mergedAs), w.open(false), w.get(w.merged))
		on("closed", finds(forge.Closed, ""), w.open(false), w.get(w.closed))
		on("in the text of a browser", finds(forge.Closed, ""), w.open(false), w.get(w.closed, w.described("Hello\r\n"+devMark+"\r\n")))
		on("those of others", finds("", ""), w.open(false, w.fork, others, w.described(otherText)), w.get(w.closed, others))
	})
}

func TestABranchIsFreeUnlessAnotherRequestComesFromIt(t *testing.T) {
	t.Parallel()
	eachPullWorld(t, func(w pullWorld, on onHost) {
		frees := func(says string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) { t.Helper(); free(t, host, says) }
		}
		const from = `pull request #7 from "flotilla/dev" into `
		on("nothing", frees(""), w.open(true))
		on("ours", frees(""), w.open(true, fields{}))
		on("a fork's", frees(""), w.open(true, with(w.fork, w.described(prodMark))))
		on("ours into another", frees(`pull request #7 of assignment "dev" goes from "flotilla/dev" into "prod", not into "main"`),
			w.open(true, w.elsewhere))
		on("another's", frees(from+`"main" belongs to assignment "prod", not to "dev"`), w.open(true, w.described(prodMark)))
		on("a person's, elsewhere", frees(from+`"prod" was not opened by assignment "dev"`),
			w.open(true, with(w.elsewhere, w.described(otherText))))
	})
}

func TestEnsureOpensOrUpdatesInPlace(t *testing.T) {
	t.Parallel()
	eachPullWorld(t, func(w pullWorld, on onHost) {
		ensures := func(kind error, says string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) { t.Helper(); wantEnsured(t, host, simply(), kind, says, false) }
		}
		succeeds := ensures(nil, "")
		none, there := w.open(false), w.open(false, fields{})
		others, persons := w.open(false, w.described(prodMark)), w.open(false, w.described(otherText))
		on("opens", succeeds, none, w.create, w.created)
		on("nothing", succeeds, there)
		on("nothing, in the lines of a browser", succeeds, w.open(false, w.described(strings.ReplaceAll(devBody, "\n", "\r\n"))))
		on("updates", succeeds, w.open(false, fields{"title": "Old"}), w.update)
		on("a person's", ensures(forge.ErrNotOwned, "pull request #7"), persons)
		on("another owner's", ensures(forge.ErrNotOwned, `belongs to assignment "prod"`), others)
		on("somebody was faster", ensures(forge.ErrNotOwned, `belongs to assignment "prod"`), none, w.not(w.refuses, w.create, "exists"), others)
		on("the answer was lost", succeeds, none, w.not(502, w.create, "oh no"), there)
		on("the host is down", ensures(forge.ErrUnreachable, "502 Bad Gateway"), none, w.not(502, w.create, "oh no"), none)
		on("refused", ensures(forge.ErrRefused, "nothing to merge"), none, w.not(w.refuses, w.create, "nothing to merge"), none)
		on("the branch is not known yet", succeeds, none, w.not(w.unknownStatus, w.create, w.unknownBranch), none, w.create, w.created)
		on("a token that may not", ensures(forge.ErrUnauthorized, "you may not"), none, w.not(403, w.create, "you may not"))
		on("a token that is wrong", ensures(forge.ErrUnauthorized, "401 Unauthorized"), w.not(401, w.noRepo, "who are you"))
		on("a repository that is not there", ensures(forge.ErrNotFound, "404 Not Found: there is none"), w.not(404, w.noRepo, "there is none"))
	})
}

var devRequest = forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}

func TestMergeNow(t *testing.T) {
	t.Parallel()
	eachPullWorld(t, func(w pullWorld, on onHost) {
		merges := func(kind error, says string) func(*testing.T, *forge.GitHost) {
			return func(t *testing.T, host *forge.GitHost) {
				t.Helper()
				request := devRequest
				wantMerged(t, host, &request, forge.Now, kind, says)
			}
		}
		succeeds, merged := merges(nil, ""), w.get(w.merged)
		refused := func(status int, message string) []exchange { return flat(w.get(), w.refused(w.merge, status, message)) }
		on("merged", succeeds, w.get(), w.merge, w.afterMerge, merged)
		on("merged after a while", succeeds, w.get(), w.merge, w.afterMerge, w.get(), merged)
		on("merged already", succeeds, merged)
		on("the push is not noticed yet", succeeds, w.get(w.oldHead), w.get(), w.merge, w.afterMerge, merged)
		on("the answer was lost", succeeds, refused(502, "oh no"), merged)
		on("the head moved meanwhile", merges(forge.ErrHeadMoved, "the head of pull request #7 is "+oldHead+", not "+newHead),
			refused(409, "modified"), w.get(w.oldHead))
		on("the head moved, and was merged", merges(forge.ErrHeadMoved, "was merged at "+oldHead),
			w.get(), w.merge, w.afterMerge, w.get(w.merged, w.oldHead))
		on("merged with another head before", merges(forge.ErrHeadMoved, "was merged at "+oldHead), w.get(w.merged, w.oldHead))
		on("not allowed", merges(forge.ErrUnauthorized, "you may not"), refused(403, "you may not"), w.get())
		on("down", merges(forge.ErrUnreachable, "500 Internal Server Error"), refused(500, "oh no"), w.get())
		on("closed", merges(forge.ErrNotMergeable, "was closed"), w.get(w.closed))
		on("closed meanwhile", merges(forge.ErrNotMergeable, "was closed"), refused(409, "closed"), w.get(w.closed))
		on("another's", merges(forge.ErrNotOwned, "is not changed"), w.get(w.described(prodMark)))
		on("a fork's", merges(forge.ErrNotOwned, "does not come from branch"), w.get(w.fork)[:1])
		on("does not exist", merges(forge.ErrNotFound, "pull request #7"), w.not(404, w.missing, "none"))
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	eachPullWorld(t, func(w pullWorld, on onHost) {
		closes := func(kind error) func(*testing.T, *forge.GitHost) {
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
		failed := w.not(500, w.close, "oh no")
		on("open", closes(nil), w.get(), w.close)
		on("closed", closes(nil), w.get(w.closed))
		on("merged", closes(nil), w.get(w.merged))
		on("the answer was lost", closes(nil), w.get(), failed, w.get(w.closed))
		on("down", closes(forge.ErrUnreachable), w.get(), failed, w.get())
		on("another's", closes(forge.ErrNotOwned), w.get(w.described(devMark+"er")))
	})
}
