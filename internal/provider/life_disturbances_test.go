package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (l *life) toggleHost(host string) {
	if i := slices.Index(l.wanted.hosts, host); i >= 0 {
		l.wanted.hosts = slices.Delete(slices.Clone(l.wanted.hosts), i, i+1)
		if l.wanted.hold != nil && l.wanted.hold["hosts"].([]any)[0] == host {
			l.wanted.hold = nil
		}
		return
	}
	l.wanted.hosts = append(slices.Clone(l.wanted.hosts), host)
	slices.Sort(l.wanted.hosts)
}

func (l *life) branchFiles() map[string]string { return l.world.files(gitops, "dev") }

func (l *life) commitFile(name, content string) {
	files := maps.Clone(l.branchFiles())
	if files == nil {
		files = map[string]string{}
	}
	if content == "" {
		delete(files, name)
	} else {
		files[name] = content
	}
	l.world.commit(gitops, "dev", files)
}

// writeForeignFile writes a file that belongs to no assignment.
func (l *life) writeForeignFile(name string) {
	l.counter++
	l.foreign[name] = fmt.Sprintln("of somebody else", l.counter)
	l.commitFile(name, l.foreign[name])
	l.record("    somebody writes %s", name)
}

func (l *life) editByHand() {
	var owned []string
	for name := range l.branchFiles() {
		if strings.Contains(name, "-live/") {
			owned = append(owned, name)
		}
	}
	if len(owned) == 0 {
		return
	}
	slices.Sort(owned)
	name := pick(l.random, owned)
	if l.random.IntN(2) == 0 {
		l.commitFile(name, "")
	} else {
		l.commitFile(name, l.branchFiles()[name]+"# by hand\n")
	}
	l.record("    somebody changes %s by hand", name)
	l.hasStaleReports = true
	l.tally.repaired.Add(1)
}

// syncClusters lets some clusters follow the branch.
func (l *life) syncClusters(share float64) {
	tip, files := l.world.tip(gitops, "dev"), l.branchFiles()
	for _, host := range l.wanted.hosts {
		cluster := host + "-a"
		if l.random.Float64() > share {
			continue
		}
		ready := true
		for name, content := range files {
			if strings.HasPrefix(name, lifePath+"/"+host+"/") && strings.Contains(content, neverReady) {
				ready = false
			}
		}
		if agent := l.agents[cluster]; agent == nil || agent.commit != tip || agent.ready != ready {
			l.agents[cluster] = &simulatedAgent{tip, ready, l.now().Truncate(time.Second)}
		}
	}
}
