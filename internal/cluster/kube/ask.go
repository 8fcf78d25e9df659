package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Options say how clusters are asked. The zero value has the defaults.
type Options struct {
	// Deadline bounds everything that one cluster takes: its exec command, connecting, all answers. 0: DefaultDeadline.
	Deadline time.Duration
	// Parallel is how many clusters are asked at once. 0: DefaultParallel.
	Parallel int
	// UserAgent is what API servers see in their audit logs. Empty: terraform-provider-flotilla.
	UserAgent string
}

// Options where none are given.
const (
	DefaultDeadline = 10 * time.Second
	DefaultParallel = 256
)

// connectDeadline bounds connecting, and then the TLS handshake. It is short, so that unreachable clusters do not delay
// the clusters that are asked after them.
const connectDeadline = 4 * time.Second

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.UserAgent == "" {
		o.UserAgent = "terraform-provider-flotilla"
	}
	return o
}

// Answer is what one cluster answered. With an error, the value is what was read before the error.
type Answer[T any] struct {
	Value T
	Err   error // an *Error, or nil
}

// Ask asks all clusters, several at once, and returns the answers by name when every cluster has answered or its
// deadline has passed. It calls ask in several goroutines; ask must end when its context does, as the methods of Client
// do. When ctx ends, clusters that have not answered have an error of ReasonCanceled.
func Ask[T any](
	ctx context.Context,
	clusters map[string]Cluster,
	options Options,
	ask func(ctx context.Context, name string, client *Client) (T, error),
) map[string]Answer[T] {
	options = options.withDefaults()
	names := slices.Sorted(maps.Keys(clusters))
	answers := make([]Answer[T], len(names))
	running := newCommands()
	parallel.EachAtMost(len(names), options.Parallel, func(i int) {
		name := names[i]
		answers[i].Err = askOne(ctx, clusters[name], options, running, func(ctx context.Context, client *Client) (err error) {
			answers[i].Value, err = ask(ctx, name, client)
			return err
		})
	})
	found := make(map[string]Answer[T], len(names))
	for i, name := range names {
		found[name] = answers[i]
	}
	return found
}

// AskOne is Ask of one cluster. An error is an *Error.
func AskOne(ctx context.Context, cluster Cluster, options Options, ask func(context.Context, *Client) error) error {
	return askOne(ctx, cluster, options.withDefaults(), newCommands(), ask)
}

// askOne asks one cluster within its deadline.
func askOne(whole context.Context, cluster Cluster, options Options, running *commands, ask func(context.Context, *Client) error) error {
	var printed []string
	scrubber := sync.OnceValue(func() secret.Scrubber { return cluster.scrubber(printed...) })
	if whole.Err() != nil {
		return publicError(whole, whole, whole.Err(), options, scrubber)
	}
	connection, err := configOf(cluster)
	if err != nil {
		return publicError(whole, whole, err, options, scrubber)
	}
	if connection.exec != nil {
		if err := running.acquire(whole); err != nil {
			return publicError(whole, whole, err, options, scrubber)
		}
	}
	ctx, cancel := context.WithTimeout(whole, options.Deadline)
	defer cancel()
	if connection.exec != nil {
		printed, err = running.signIn(ctx, connection)
		running.release()
		if err != nil {
			return publicError(whole, ctx, err, options, scrubber)
		}
	}
	client, err := connection.newClient(options, scrubber)
	if err != nil {
		return publicError(whole, ctx, err, options, scrubber)
	}
	defer client.close()
	return publicError(whole, ctx, ask(ctx, client), options, scrubber)
}
