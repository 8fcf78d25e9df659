package gitops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// applyOrder tells a process what to apply: one commit after the other, each
// with one folder more of the owner's host.
type applyOrder struct {
	Remote  git.Remote
	Name    string // of the owner, and of its host
	Commits int
}

// applied is what came of one commit.
type applied struct {
	Commit string
	Pushes int
	Error  string
}

// claimOrder tells a process what to claim: so many rounds, in each another number of clusters, at most four.
type claimOrder struct {
	Remote git.Remote
	Name   string
	Index  int
	Rounds int
	Pool   []string
}

// number is how many clusters a process wants in a round. In the last one everybody wants four.
func (o claimOrder) number(round int) int {
	if round == o.Rounds-1 {
		return mostClaimed
	}
	return (o.Index*7 + round*3) % (mostClaimed + 1)
}

const mostClaimed = 4

// claimedNow is what came of one round.
type claimedNow struct {
	Round    int
	Commit   string
	Pushes   int
	Clusters []string
	Error    string
}

// claimProcess reads an order, and carries it out when its input ends.
func claimProcess(in io.Reader, out io.Writer) error {
	var order claimOrder
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&order); err != nil {
		return err
	}
	if err := waitToBegin(in, out); err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	for round := range order.Rounds {
		result, err := newClient(
			gitops.BranchOptions{},
		).WriteClaim(context.Background(), order.Remote, claiming(order.Name, order.number(round), order.Pool))
		came := claimedNow{Round: round, Commit: result.Commit, Pushes: result.Pushes, Clusters: result.Clusters}
		if err != nil {
			came.Error = err.Error()
		}
		if err := encoder.Encode(came); err != nil {
			return err
		}
	}
	return nil
}

// waitToBegin says by an empty line that the process is ready, and returns when its input ends: so that many begin at the same moment.
func waitToBegin(in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// applyProcess reads an order, and carries it out when its input ends.
func applyProcess(in io.Reader, out io.Writer) error {
	var order applyOrder
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&order); err != nil {
		return err
	}
	if err := waitToBegin(in, out); err != nil {
		return err
	}
	host := map[string]gitops.FolderEdit{}
	edit := gitops.Edit{Owner: gitops.Owner{Name: order.Name, Path: "dev"}, Hosts: gitops.FolderEdits{order.Name: host}}
	encoder := json.NewEncoder(out)
	for i := range order.Commits {
		folder := rendered(noTest{}, "a", fmt.Sprintf("%s %d", order.Name, i))
		host[fmt.Sprintf("app-%d", i)] = folder
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), order.Remote, edit)
		came := applied{Commit: result.Commit, Pushes: result.Pushes}
		if err != nil {
			came.Error = err.Error()
		}
		if err := encoder.Encode(came); err != nil {
			return err
		}
	}
	return nil
}
