package observe

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
)

// columnsDocument has the data that clusters share: deployment targets with a status of their own, by host, and each
// distinct status once, without its time. `since` is "" if a status never has a time.
type columnsDocument struct {
	Targets  map[string][]string `json:"targets,omitempty"`
	Statuses []statusDocument    `json:"statuses,omitempty"`
}

// statusNumbers encodes the assignments of a cluster by host. Each target of the host has the number of its status,
// counted from 1, and the seconds from its start to the evidence; a single 0 means the status of the cluster.
type statusNumbers map[string][]int64

// maxAgo is about two thousand years in seconds.
const maxAgo = 1 << 36

type untimedStatus struct {
	AssignmentStatus
	never bool // the status never has a time
}

type columns struct {
	e        *Evidence
	targets  map[string][]string
	statuses numbering.Numbers[untimedStatus]
}

func columnsOf(e *Evidence) *columns {
	targets := map[string]map[string]bool{}
	for _, of := range e.Clusters {
		own := of.defaultStatus()
		for key, other := range of.Assignments {
			if other != own {
				host, target := splitKey(key)
				folder.Put(targets, folder.Key{Host: host, DeploymentTarget: target}, true)
			}
		}
	}
	c := &columns{e: e, targets: make(map[string][]string, len(targets))}
	for host, names := range targets {
		c.targets[host] = slices.Sorted(maps.Keys(names))
	}
	return c
}

// document returns the data that the numbers of all clusters refer to.
func (c *columns) document() columnsDocument {
	document := columnsDocument{Targets: c.targets}
	for _, status := range c.statuses.All() {
		written := documentOf(status.AssignmentStatus)
		if status.never {
			written.Since = new("")
		}
		document.Statuses = append(document.Statuses, written)
	}
	return document
}

func (c *columns) numbers(of *ClusterEvidence) statusNumbers {
	own := of.defaultStatus()
	found := statusNumbers{}
	for _, key := range slices.Sorted(maps.Keys(of.Assignments)) {
		host, _ := splitKey(key)
		if of.Assignments[key] == own || found[host] != nil {
			continue
		}
		list := make([]int64, 0, 2*len(c.targets[host]))
		for _, target := range c.targets[host] {
			one, is := of.Assignments[host+"/"+target]
			if !is || one == own {
				list = append(list, 0)
				continue
			}
			status, ago := untimedStatus{one, one.Since.IsZero()}, int64(0)
			if !status.never {
				ago = c.e.Time.Unix() - one.Since.Unix()
			}
			status.Since = time.Time{}
			list = append(list, int64(c.statuses.Number(status))+1, ago)
		}
		found[host] = list
	}
	return found
}

func (c *ClusterEvidence) defaultStatus() AssignmentStatus {
	return AssignmentStatus{Commit: c.Commit, Status: c.Status}
}

func splitKey(key string) (host, target string) {
	at := strings.LastIndexByte(key, '/')
	return key[:max(at, 0)], key[at+1:]
}

func (r *evidenceReader) readColumns(d *columnsDocument) {
	r.keys, r.statuses = make(map[string][]string, len(d.Targets)), make([]AssignmentStatus, len(d.Statuses))
	size := 0
	for host, targets := range d.Targets {
		for _, target := range targets {
			if size += len(host) + len(target); size > MaxEvidence {
				r.fail("the keys of its assignments are longer than %d MiB", MaxEvidence>>20)
				return
			}
			r.at = [2]string{"", host + "/" + target}
			if r.checkKey(r.at[1]); strings.Contains(target, "/") {
				r.fail("a deployment target has no slash in its name")
			}
			r.keys[host] = append(r.keys[host], r.at[1])
		}
	}
	r.at = [2]string{}
	for i, one := range d.Statuses {
		if one.Verdict == nil || one.Since != nil && *one.Since != "" {
			r.fail("status %d has no verdict, or a time", i+1)
			continue
		}
		if r.statuses[i] = r.readStatus(one); one.Since == nil {
			r.statuses[i].Since = r.when // marks a status that has a time
		}
	}
}

func (r *evidenceReader) readAssignments(of statusNumbers) map[string]AssignmentStatus {
	count := 0
	for host := range of {
		count += len(r.keys[host])
	}
	if len(of) == 0 {
		return nil
	}
	found := make(map[string]AssignmentStatus, count)
	for host, list := range of {
		r.at[1] = host
		left := list
		next := func() int64 {
			if len(left) == 0 {
				r.fail("it has fewer numbers than its host has deployment targets")
				return 0
			}
			number := left[0]
			left = left[1:]
			return number
		}
		for _, key := range r.keys[host] {
			number := next()
			if number == 0 {
				continue
			}
			ago := next()
			if number < 0 || number > int64(len(r.statuses)) || ago < -maxAgo || ago > maxAgo {
				r.fail("%d, %d is no number of a status with its time", number, ago)
				break
			}
			status := r.statuses[number-1]
			if !status.Since.IsZero() {
				status.Since = time.Unix(r.when.Unix()-ago, 0).UTC()
			}
			found[key] = status
		}
		if len(left) > 0 && r.err == nil {
			r.fail("it has more numbers than its host has deployment targets")
		}
	}
	return found
}
