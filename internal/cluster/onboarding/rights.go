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

// A removal that fails halfway leaves an agent that neither follows its folders nor is gone, so reads and dry runs
// check each permission first.

// denied has the denied requests by verb.
type denied struct {
	mu     sync.Mutex
	byVerb map[string][]string
}

func (d *denied) collect(err error, verb, what string) error {
	if kube.ReasonOf(err) != kube.ReasonForbidden {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byVerb[verb] = append(d.byVerb[verb], what)
	return nil
}

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

// checkRights checks the permissions for every change of a removal and its later reads.
func (r *remover) checkRights(ctx context.Context, p *plannedRemoval) error {
	d := &denied{byVerb: map[string][]string{}}
	var attempts []attempt
	for _, one := range p.released {
		attempts = append(attempts, attempt{kube.VerbPatch, one.Ref})
	}
	for _, one := range p.roots {
		if !isTerminating(one.live) {
			attempts = append(attempts, attempt{kube.VerbPatch, one.Ref}, attempt{kube.VerbDelete, one.Ref})
		}
		made, err := listGenerated(ctx, r.cluster, one)
		if err := d.collect(err, "list", "what "+one.ID().String()+" makes"); err != nil {
			return err
		}
		for _, live := range made {
			attempts = append(attempts, attempt{kube.VerbPatch, kube.RefOf(live)})
		}
	}
	for _, one := range p.rest {
		if !isTerminating(one.live) {
			attempts = append(attempts, attempt{kube.VerbDelete, one.Ref})
		}
		if r.registers(one) {
			attempts = append(attempts, attempt{kube.VerbPatch, one.Ref})
		}
	}
	for ref := range p.left.all {
		if ref.Kind == "Namespace" && ref.Group() == "" {
			attempts = append(attempts, attempt{kube.VerbPatch, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: ref.Name}})
		}
	}
	err := forEach(len(attempts), func(i int) error {
		return d.collect(r.cluster.Try(ctx, attempts[i].verb, attempts[i].ref), attempts[i].verb, attempts[i].ref.String())
	})
	if err == nil {
		err = r.checkReads(ctx, p, d)
	}
	if err != nil {
		return err
	}
	return d.failure()
}

type attempt struct {
	verb string
	ref  kube.Ref
}

// checkReads checks the reads after the first change.
func (r *remover) checkReads(ctx context.Context, p *plannedRemoval, d *denied) error {
	err := forEach(len(p.left.awaited), func(i int) error {
		_, err := r.cluster.Read(ctx, p.left.awaited[i])
		return d.collect(err, "get", p.left.awaited[i].String())
	})
	if err != nil {
		return err
	}
	for _, one := range slices.Concat(p.rest, p.released) {
		switch {
		case r.registers(one):
			_, err = r.cluster.List(ctx, listedAs(hubsKind()), kube.ListOptions{Namespace: one.Namespace, Skip: notNames})
			err = d.collect(err, "list", hubsKind().Resource+" in namespace "+one.Namespace)
		case one.Stage == agent.Definitions:
			_, err = listDefined(ctx, r.cluster, one.live)
			err = d.collect(err, "list", "the objects of "+one.ID().String())
		case one.Stage == agent.Namespaces:
			err = checkLists(ctx, r.cluster, one.Name, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkLists(ctx context.Context, cluster ObjectReader, namespace string, d *denied) error {
	kinds, _, err := cluster.Resources(ctx)
	if err != nil {
		return err
	}
	kinds = slices.DeleteFunc(kinds, func(kind kube.Resource) bool { return !kind.Namespaced || isTransient(kind) })
	leave := func() func(*unstructured.Unstructured) { return func(*unstructured.Unstructured) {} }
	return forEach(len(kinds), func(i int) error {
		_, err := cluster.List(ctx, kinds[i].ResourceKind, kube.ListOptions{Namespace: namespace, Skip: notNames, Fold: leave})
		return d.collect(err, "list", "objects of every kind in Namespace "+namespace)
	})
}

func hubsKind() *reconciler.ObjectKind {
	hub := reconciler.Hub()
	return &hub.Kinds[slices.IndexFunc(hub.Kinds, func(kind reconciler.ObjectKind) bool { return kind.Destination != "" })]
}

// FindUnconfined lists the controllers of an agent that lack confining arguments, each as a clause. forbidden reports
// that the credentials may not list Deployments. In the agent's namespace, labels do not matter.
func FindUnconfined(
	ctx context.Context, cluster ClusterAPI, confinement *reconciler.Confinement, namespace string,
) (lacks []string, forbidden bool, err error) {
	kind := kube.ResourceKind{Group: "apps", Versions: "v1", Resource: "deployments"}
	seen := map[string]bool{}
	for _, options := range []kube.ListOptions{{LabelSelector: confinement.Selector}, {Namespace: namespace}} {
		found, err := cluster.List(ctx, kind, options)
		if kube.ReasonOf(err) == kube.ReasonForbidden {
			forbidden = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		for _, deployment := range found.Items {
			if name := deployment.GetNamespace() + "/" + deployment.GetName(); !seen[name] {
				seen[name] = true
				if missing := confinement.Missing(deployment); len(missing) > 0 {
					lacks = append(lacks, reconciler.DescribeMissing(deployment, missing))
				}
			}
		}
	}
	return lacks, forbidden && len(seen) == 0, nil
}
