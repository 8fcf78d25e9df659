package gitops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// applyOrder tells a process to make commits. Each commit adds one folder to the owner's host.
type applyOrder struct {
	Remote  git.Remote
	Name    string // of the owner, and of its host
	Commits int
}

// applyReport is the result of one commit.
type applyReport struct {
	Commit string
	Pushes int
	Error  string
}

// claimOrder tells a process to claim a different number of clusters in each round, at most maxClaimed.
type claimOrder struct {
	Remote git.Remote
	Name   string
	Index  int
	Rounds int
	Pool   []string
}

// wantedNumber returns the number of clusters for a round. In the last round, each process wants maxClaimed.
func (o claimOrder) wantedNumber(round int) int {
	if round == o.Rounds-1 {
		return maxClaimed
	}
	return (o.Index*7 + round*3) % (maxClaimed + 1)
}

const maxClaimed = 4

// claimReport is the result of one round.
type claimReport struct {
	Round    int
	Commit   string
	Pushes   int
	Clusters []string
	Error    string
}

// claimProcess reads an order and executes it when its input ends.
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
		).WriteClaim(context.Background(), order.Remote, claimEdit(order.Name, order.wantedNumber(round), order.Pool))
		report := claimReport{Round: round, Commit: result.Commit, Pushes: result.Pushes, Clusters: result.Clusters}
		if err != nil {
			report.Error = err.Error()
		}
		if err := encoder.Encode(report); err != nil {
			return err
		}
	}
	return nil
}

// waitToBegin writes an empty line when the process is ready, and returns when its input ends, so that all processes begin at once.
func waitToBegin(in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// applyProcess reads an order and executes it when its input ends.
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
		folder := newFolder(noTest{}, "a", fmt.Sprintf("%s %d", order.Name, i))
		host[fmt.Sprintf("app-%d", i)] = folder
		result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), order.Remote, edit)
		report := applyReport{Commit: result.Commit, Pushes: result.Pushes}
		if err != nil {
			report.Error = err.Error()
		}
		if err := encoder.Encode(report); err != nil {
			return err
		}
	}
	return nil
}
