package onboarding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// A removal that fails halfway leaves an agent that neither follows its folders nor is gone. So each permission is tried first,
// by reads and dry runs.

// denied are the requests that the credentials may not send, by verb.
type denied struct {
	mu     sync.Mutex
	byVerb map[string][]string
}

// take keeps what a request was denied, and returns every other error.
func (d *denied) take(err error, verb, what string) error {
	if kube.ReasonOf(err) != kube.ReasonForbidden {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byVerb[verb] = append(d.byVerb[verb], what)
	return nil
}

// failure says what was denied; nil for nothing.
func (d *denied) failure() error {
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(d.byVerb)) {
		slices.Sort(d.byVerb[verb])
		parts = append(parts, verb+" "+wording.List(slices.Compact(d.byVerb[verb]), wording.Named))
	}
	if len(parts) == 0 {
		return nil
	}
	text := fmt.Sprintf("these credentials may not %s, which the removal needs; nothing was changed there", strings.Join(parts, ", nor "))
	return &Failure{Cause: CauseForbidden, Text: text, err: errDenied}
}

var errDenied = errors.New("the credentials lack permissions")

// checkRights checks that the credentials may make every change of a removal, and read what it reads later.
func (r *remover) checkRights(ctx context.Context, p *plannedRemoval) error {
	d := &denied{byVerb: map[string][]string{}}
	var tries []try
	for _, one := range p.released {
		tries = append(tries, try{kube.VerbPatch, one.Ref()})
	}
	for _, one := range p.roots {
		if !isTerminating(one.live) {
			tries = append(tries, try{kube.VerbPatch, one.Ref()}, try{kube.VerbDelete, one.Ref()})
		}
		made, err := r.generatedBy(ctx, one)
		if err := d.take(err, "list", "what "+one.ID().String()+" makes"); err != nil {
			return err
		}
		for _, live := range made {
			tries = append(tries, try{kube.VerbPatch, kube.RefOf(live)})
		}
	}
	for _, one := range p.rest {
		if !isTerminating(one.live) {
			tries = append(tries, try{kube.VerbDelete, one.Ref()})
		}
		if r.registers(one) {
			tries = append(tries, try{kube.VerbPatch, one.Ref()})
		}
	}
	for ref := range p.left.all {
		if ref.Kind == "Namespace" && ref.Group() == "" {
			tries = append(tries, try{kube.VerbPatch, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: ref.Name}})
		}
	}
	err := each(len(tries), func(i int) error {
		return d.take(r.cluster.Try(ctx, tries[i].verb, tries[i].ref), tries[i].verb, tries[i].ref.String())
	})
	if err == nil {
		err = r.checkReads(ctx, p, d)
	}
	if err != nil {
		return err
	}
	return d.failure()
}

// try is a change that is tried.
type try struct {
	verb string
	ref  kube.Ref
}

// checkReads checks the reads that come after the first change: of what the agent has applied, until that has gone, and of what
// is in namespaces and of the kinds that are removed.
func (r *remover) checkReads(ctx context.Context, p *plannedRemoval, d *denied) error {
	err := each(len(p.left.awaited), func(i int) error {
		_, err := r.cluster.Read(ctx, p.left.awaited[i])
		return d.take(err, "get", p.left.awaited[i].String())
	})
	if err != nil {
		return err
	}
	for _, one := range p.rest {
		switch {
		case r.registers(one):
			_, err = r.cluster.List(ctx, listedAs(hubsKind()), kube.ListOptions{Namespace: one.Namespace, Skip: notNames})
			err = d.take(err, "list", hubsKind().Resource+" in namespace "+one.Namespace)
		case one.Stage == agent.Definitions:
			_, err = r.objectsOf(ctx, one.live)
			err = d.take(err, "list", "the objects of "+one.ID().String())
		case one.Stage == agent.Namespaces:
			err = r.checkLists(ctx, one.Name, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLists checks that everything in a namespace can be listed.
func (r *remover) checkLists(ctx context.Context, namespace string, d *denied) error {
	kinds, _, err := r.cluster.Resources(ctx)
	if err != nil {
		return err
	}
	kinds = slices.DeleteFunc(kinds, func(kind kube.Resource) bool { return !kind.Namespaced || isTransient(kind) })
	leave := func() func(*unstructured.Unstructured) { return func(*unstructured.Unstructured) {} }
	return each(len(kinds), func(i int) error {
		_, err := r.cluster.List(ctx, kinds[i].Kind, kube.ListOptions{Namespace: namespace, Skip: notNames, Fold: leave})
		return d.take(err, "list", "objects of every kind in Namespace "+namespace)
	})
}

// hubsKind is the kind of the objects on a hub that are applied to other clusters.
func hubsKind() *reconciler.ObjectKind {
	hub := reconciler.Hub()
	return &hub.Kinds[slices.IndexFunc(hub.Kinds, func(kind reconciler.ObjectKind) bool { return kind.Destination != "" })]
}
