package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (l *life) joinOrLeave(host string) {
	if i := slices.Index(l.wants.hosts, host); i >= 0 {
		l.wants.hosts = slices.Delete(slices.Clone(l.wants.hosts), i, i+1)
		if l.wants.held != nil && l.wants.held["hosts"].([]any)[0] == host {
			l.wants.held = nil
		}
		return
	}
	l.wants.hosts = append(slices.Clone(l.wants.hosts), host)
	slices.Sort(l.wants.hosts)
}

// files are those of the branch.
func (l *life) files() map[string]string { return l.world.files(gitops, "dev") }

func (l *life) write(name, content string) {
	files := maps.Clone(l.files())
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

// foreignFile writes what is nobody's here.
func (l *life) foreignFile(name string) {
	l.count++
	l.foreign[name] = fmt.Sprintln("of somebody else", l.count)
	l.write(name, l.foreign[name])
	l.say("    somebody writes %s", name)
}

// editByHand changes or removes a file of the assignment.
func (l *life) editByHand() {
	var owned []string
	for name := range l.files() {
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
		l.write(name, "")
	} else {
		l.write(name, l.files()[name]+"# by hand\n")
	}
	l.say("    somebody changes %s by hand", name)
	l.unheard = true
	l.tally.mended.Add(1)
}

// sync lets some clusters follow the branch.
func (l *life) sync(share float64) {
	tip, files := l.world.tip(gitops, "dev"), l.files()
	for _, host := range l.wants.hosts {
		cluster := host + "-a"
		if l.random.Float64() > share {
			continue
		}
		ready := true
		for name, content := range files {
			if strings.HasPrefix(name, lifePath+"/"+host+"/") && strings.Contains(content, lifeBad) {
				ready = false
			}
		}
		if was := l.agents[cluster]; was == nil || was.commit != tip || was.ready != ready {
			l.agents[cluster] = &simulatedAgent{tip, ready, l.now().Truncate(time.Second)}
		}
	}
}
