package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// columnsDocument has what clusters share: the deployment targets of which they have a status, by host, and each of these
// statuses once. A status has no time; its `since` is "" where it never has one. A cluster then has only numbers.
type columnsDocument struct {
	Targets  map[string][]string `json:"targets,omitempty"`
	Statuses []statusDocument    `json:"statuses,omitempty"`
}

// numbers are of a cluster, by host: of each target of the host, in their order, the number of its status, from 1 on, and how
// many seconds before the time of the evidence it began. 0 alone is the status of the cluster.
type numbers map[string][]int64

// maxAgo bounds how many seconds before the evidence, or after it, a time can be: about two thousand years.
const maxAgo = 1 << 36

// timeless is a status without its time.
type timeless struct {
	AssignmentStatus
	never bool // it never has one
}

func timelessOf(s AssignmentStatus) timeless {
	of := timeless{s, s.Since.IsZero()}
	of.Since = time.Time{}
	return of
}

func (t timeless) compare(other timeless) int {
	order := cmp.Or(cmp.Compare(t.Commit, other.Commit), cmp.Compare(t.Verdict, other.Verdict), cmp.Compare(t.Message, other.Message))
	switch {
	case order != 0 || t == other:
		return order
	case t.OfRoot != other.OfRoot:
		return map[bool]int{true: 1, false: -1}[t.OfRoot]
	}
	return map[bool]int{true: 1, false: -1}[t.never]
}

// columns number the statuses of assignments that are not those of their clusters.
type columns struct {
	e        *Evidence
	statuses map[timeless]int
	document columnsDocument
}

func columnsOf(e *Evidence) *columns {
	c := &columns{e: e, statuses: map[timeless]int{}}
	targets := map[string]map[string]bool{}
	for _, of := range e.Clusters {
		own := of.own()
		for key, other := range of.Assignments {
			if other != own {
				host, target := splitKey(key)
				if targets[host] == nil {
					targets[host] = map[string]bool{}
				}
				targets[host][target] = true
				c.statuses[timelessOf(other)] = 0
			}
		}
	}
	if len(targets) > 0 {
		c.document.Targets = make(map[string][]string, len(targets))
	}
	for host, names := range targets {
		c.document.Targets[host] = slices.Sorted(maps.Keys(names))
	}
	for i, status := range slices.SortedFunc(maps.Keys(c.statuses), timeless.compare) {
		c.statuses[status] = i + 1
		written := documentOf(status.AssignmentStatus)
		if status.never {
			written.Since = new("")
		}
		c.document.Statuses = append(c.document.Statuses, written)
	}
	return c
}

// numbers are those of a cluster.
func (c *columns) numbers(of *Cluster) numbers {
	own := of.own()
	found := numbers{}
	for key, other := range of.Assignments {
		if host, _ := splitKey(key); other != own && found[host] == nil {
			list := make([]int64, 0, 2*len(c.document.Targets[host]))
			for _, target := range c.document.Targets[host] {
				one, is := of.Assignments[host+"/"+target]
				if !is || one == own {
					list = append(list, 0)
					continue
				}
				ago := int64(0)
				if !one.Since.IsZero() {
					ago = c.e.Time.Unix() - one.Since.Unix()
				}
				list = append(list, int64(c.statuses[timelessOf(one)]), ago)
			}
			found[host] = list
		}
	}
	return found
}

// own is the status of a cluster as that of an assignment.
func (c *Cluster) own() AssignmentStatus { return AssignmentStatus{Commit: c.Commit, Status: c.Status} }

func splitKey(key string) (host, target string) {
	at := strings.LastIndexByte(key, '/')
	return key[:max(at, 0)], key[at+1:]
}

// columns reads what clusters share: the keys of assignments, by host, and the statuses.
func (r *evidenceReader) columns(d *columnsDocument) {
	r.keys, r.statuses = make(map[string][]string, len(d.Targets)), make([]AssignmentStatus, len(d.Statuses))
	size := 0
	for host, targets := range d.Targets {
		for _, target := range targets {
			if size += len(host) + len(target); size > MaxEvidence {
				r.fail("the keys of its assignments are longer than %d MiB", MaxEvidence>>20)
				return
			}
			r.at = [2]string{"", host + "/" + target}
			if r.key(r.at[1]); strings.Contains(target, "/") {
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
		if r.statuses[i] = r.status(one); one.Since == nil {
			r.statuses[i].Since = r.when // which says that it has one
		}
	}
}

// assignments reads those of a cluster.
func (r *evidenceReader) assignments(of numbers) map[string]AssignmentStatus {
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
