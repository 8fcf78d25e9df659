// Package budget limits the time that a process waits for items of workloads, such as repositories and charts, and records the
// time of each.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Ledger records the time of a process. The zero value is ready for concurrent use.
type Ledger struct {
	mutex sync.Mutex
	all   meter // runs while any item runs
	items map[string]*meter
}

// meter adds up the time of an item. Overlapping runs count once.
type meter struct {
	running int
	since   time.Time // valid while running
	before  time.Duration
}

func (m *meter) begin(now time.Time) {
	if m.running++; m.running == 1 {
		m.since = now
	}
}

func (m *meter) end(now time.Time) {
	if m.running--; m.running == 0 {
		m.before += now.Sub(m.since)
	}
}

func (m *meter) total(now time.Time) time.Duration {
	if m.running == 0 {
		return m.before
	}
	return m.before + now.Sub(m.since)
}

type operation struct {
	ledger *Ledger
	limit  time.Duration
	over   error
	cancel context.CancelCauseFunc
}

type operationKey struct{}

// With returns a context that makes Begin record into the ledger. It ends with the cause over when the items of all operations of
// the process exceed the limit.
func With(ctx context.Context, ledger *Ledger, limit time.Duration, over error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, operationKey{}, &operation{ledger, limit, over, cancel}), func() { cancel(nil) }
}

// Begin records the time of an item until end. Without a ledger in the context it does nothing.
func Begin(ctx context.Context, item string) (end func()) {
	o, _ := ctx.Value(operationKey{}).(*operation)
	if o == nil {
		return func() {}
	}
	left := o.limit - o.ledger.begin(item)
	if left <= 0 {
		o.cancel(o.over)
	}
	timer := time.AfterFunc(max(left, 0), func() { o.cancel(o.over) })
	return func() {
		timer.Stop()
		o.ledger.end(item)
	}
}

func (l *Ledger) begin(item string) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	if l.items == nil {
		l.items = map[string]*meter{}
	}
	if l.items[item] == nil {
		l.items[item] = &meter{}
	}
	l.items[item].begin(now)
	total := l.all.total(now)
	l.all.begin(now)
	return total
}

func (l *Ledger) end(item string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	l.items[item].end(now)
	l.all.end(now)
}

const maxListed = 5

// Longest lists the slowest items: `repository "a" (1m0s) and 3 more`; "" for none.
func Longest(ctx context.Context) string {
	o, _ := ctx.Value(operationKey{}).(*operation)
	if o == nil {
		return ""
	}
	l := o.ledger
	l.mutex.Lock()
	defer l.mutex.Unlock()
	type entry struct {
		item string
		took time.Duration
	}
	now := time.Now()
	entries := make([]entry, 0, len(l.items))
	for item, meter := range l.items {
		entries = append(entries, entry{item, meter.total(now)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.item, b.item)) })
	listed := make([]string, len(entries))
	for i, one := range entries {
		listed[i] = fmt.Sprintf("%s (%s)", one.item, one.took.Round(100*time.Millisecond))
	}
	return wording.List(listed, maxListed)
}
