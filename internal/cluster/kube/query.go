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

// QueryOptions configure queries. The zero value has the defaults.
type QueryOptions struct {
	// Deadline bounds the entire query of one cluster: exec command, connection, all answers. 0 means
	// DefaultDeadline.
	Deadline time.Duration
	// Parallel is the number of clusters queried at once. 0 means DefaultParallel.
	Parallel int
	// UserAgent appears in the audit logs of API servers. Empty means terraform-provider-flotilla.
	UserAgent string
}

// The defaults of QueryOptions.
const (
	DefaultDeadline = 10 * time.Second
	DefaultParallel = 256
)

// connectDeadline bounds the connection, and then the TLS handshake. It is short so that unreachable clusters do not
// delay clusters later in the queue.
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

// Answer is the answer of one cluster. If Err is set, Value has what was read before the error.
type Answer[T any] struct {
	Value T
	Err   error // an *RequestError, or nil
}

// QueryAll queries all clusters in parallel. It returns the answers by name once every cluster has answered or its
// deadline has passed. It calls query in several goroutines; query must end with its context, as the methods of
// ClusterClient do. When ctx ends, clusters without an answer get an error of ReasonCanceled.
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

// QueryOne queries one cluster. Its error is an *RequestError.
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
	return publicError(whole, ctx, query(ctx, client), options, scrubber)
}
