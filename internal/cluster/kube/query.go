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

// QueryOptions configure queries; zero values are defaults.
type QueryOptions struct {
	Deadline  time.Duration // of one cluster: exec command, connection, all answers
	Parallel  int           // clusters at once
	UserAgent string        // in the audit logs of API servers
}

// The defaults of QueryOptions.
const (
	DefaultDeadline = 10 * time.Second
	DefaultParallel = 256
)

// connectDeadline bounds the connection, and then the TLS handshake, so unreachable clusters do not delay others.
const connectDeadline = 4 * time.Second

func (o QueryOptions) withDefaults() QueryOptions {
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

// Answer is the answer of one cluster, up to its error.
type Answer[T any] struct {
	Value T
	Err   error // a *RequestError
}

// QueryAll queries all clusters in parallel and returns the answers by name. query must end with its context.
func QueryAll[T any](
	ctx context.Context,
	clusters map[string]Cluster,
	options QueryOptions,
	query func(ctx context.Context, name string, client *ClusterClient) (T, error),
) map[string]Answer[T] {
	options = options.withDefaults()
	names := slices.Sorted(maps.Keys(clusters))
	answers := make([]Answer[T], len(names))
	running := newCommands()
	parallel.EachAtMost(len(names), options.Parallel, func(i int) {
		name := names[i]
		answers[i].Err = queryOne(ctx, clusters[name], options, running, func(ctx context.Context, client *ClusterClient) (err error) {
			answers[i].Value, err = query(ctx, name, client)
			return err
		})
	})
	found := make(map[string]Answer[T], len(names))
	for i, name := range names {
		found[name] = answers[i]
	}
	return found
}

// QueryOne queries one cluster. Its error is a *RequestError.
func QueryOne(ctx context.Context, cluster Cluster, options QueryOptions, query func(context.Context, *ClusterClient) error) error {
	return queryOne(ctx, cluster, options.withDefaults(), newCommands(), query)
}

func queryOne(
	whole context.Context,
	cluster Cluster,
	options QueryOptions,
	running *commands,
	query func(context.Context, *ClusterClient) error,
) error {
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
		// The cluster's deadline starts once the command has a free place.
		if err := running.slots.Acquire(whole, 1); err != nil {
			return publicError(whole, whole, err, options, scrubber)
		}
	}
	ctx, cancel := context.WithTimeout(whole, options.Deadline)
	defer cancel()
	if connection.exec != nil {
		printed, err = running.signIn(ctx, connection)
		running.slots.Release(1)
		if err != nil {
			return publicError(whole, ctx, err, options, scrubber)
		}
	}
	client, err := connection.newClient(options, scrubber)
	if err != nil {
		return publicError(whole, ctx, err, options, scrubber)
	}
	defer client.close()
	return publicError(whole, ctx, query(ctx, client), options, scrubber)
}
