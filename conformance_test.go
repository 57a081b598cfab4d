package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

func TestConformancePlain(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{New: func(t testing.TB, p ratelimit.Policy, c *conformance.Clock, maxWait time.Duration) conformance.Limiter {
		return conformingPlain{conformingNew(t, p, ratelimit.WithClock(c), ratelimit.WithMaxWait(maxWait))}
	}})
}

func TestConformanceAll(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{New: func(t testing.TB, p ratelimit.Policy, c *conformance.Clock, maxWait time.Duration) conformance.Limiter {
		return conformingPlain{ratelimit.All(conformingNew(t, p, ratelimit.WithClock(c), ratelimit.WithMaxWait(maxWait)))}
	}})
}

func TestConformanceKeyed(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{Keyed: true, New: conformingKeyedNew(func(k *ratelimit.Keyed[string]) conformance.Limiter {
		return conformingKeyed{k}
	})})
}

func TestConformanceFor(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{Keyed: true, New: conformingKeyedNew(func(k *ratelimit.Keyed[string]) conformance.Limiter {
		return conformingFor{k}
	})})
}

func TestConformanceTake(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{Keyed: true, New: conformingKeyedNew(func(k *ratelimit.Keyed[string]) conformance.Limiter {
		return conformingTake{conformingKeyed{k}}
	})})
}

// TestConformanceAlso adds a policy that is never in the way.
func TestConformanceAlso(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{Keyed: true, New: func(t testing.TB, p ratelimit.Policy, c *conformance.Clock, maxWait time.Duration) conformance.Limiter {
		k, err := ratelimit.NewKeyed[string](p, ratelimit.WithClock(c), ratelimit.WithMaxWait(maxWait),
			ratelimit.WithAlso(ratelimit.Unlimited()))
		if err != nil {
			t.Fatalf("NewKeyed(%v): %v", p, err)
		}
		return conformingKeyed{k}
	}})
}

// TestConformanceFunc takes each key's policy from a function.
func TestConformanceFunc(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{Keyed: true, New: func(t testing.TB, p ratelimit.Policy, c *conformance.Clock, maxWait time.Duration) conformance.Limiter {
		k, err := ratelimit.NewKeyedFunc(func(string) ratelimit.Policy { return p }, ratelimit.WithClock(c), ratelimit.WithMaxWait(maxWait))
		if err != nil {
			t.Fatalf("NewKeyedFunc(%v): %v", p, err)
		}
		return conformingKeyed{k}
	}})
}

func conformingNew(t testing.TB, p ratelimit.Policy, opts ...ratelimit.Option) ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(p, opts...)
	if err != nil {
		t.Fatalf("New(%v): %v", p, err)
	}
	return l
}

func conformingKeyedNew(wrap func(*ratelimit.Keyed[string]) conformance.Limiter) func(testing.TB, ratelimit.Policy, *conformance.Clock, time.Duration) conformance.Limiter {
	return func(t testing.TB, p ratelimit.Policy, c *conformance.Clock, maxWait time.Duration) conformance.Limiter {
		t.Helper()
		k, err := ratelimit.NewKeyed[string](p, ratelimit.WithClock(c), ratelimit.WithMaxWait(maxWait), ratelimit.WithShards(2))
		if err != nil {
			t.Fatalf("NewKeyed(%v): %v", p, err)
		}
		return wrap(k)
	}
}

type conformingPlain struct{ l ratelimit.Limiter }

func (c conformingPlain) Decide(_ context.Context, _ string, n int) (ratelimit.Decision, error) {
	return c.l.Decide(n), nil
}
func (c conformingPlain) Allow(_ string, n int) bool                      { return c.l.AllowN(n) }
func (c conformingPlain) Reserve(_ string, n int) *ratelimit.Reservation  { return c.l.ReserveN(n) }
func (c conformingPlain) Wait(ctx context.Context, _ string, n int) error { return c.l.WaitN(ctx, n) }

type conformingKeyed struct{ *ratelimit.Keyed[string] }

func (c conformingKeyed) Allow(key string, n int) bool                     { return c.AllowN(key, n) }
func (c conformingKeyed) Reserve(key string, n int) *ratelimit.Reservation { return c.ReserveN(key, n) }
func (c conformingKeyed) Wait(ctx context.Context, key string, n int) error {
	return c.WaitN(ctx, key, n)
}

// conformingFor asks the limiter of a key, made anew for each call.
type conformingFor struct{ k *ratelimit.Keyed[string] }

func (c conformingFor) Decide(_ context.Context, key string, n int) (ratelimit.Decision, error) {
	return c.k.For(key).Decide(n), nil
}
func (c conformingFor) Allow(key string, n int) bool { return c.k.For(key).AllowN(n) }
func (c conformingFor) Reserve(key string, n int) *ratelimit.Reservation {
	return c.k.For(key).ReserveN(n)
}
func (c conformingFor) Wait(ctx context.Context, key string, n int) error {
	return c.k.For(key).WaitN(ctx, n)
}

// conformingTake does with Take what the others do with Decide and Reserve.
type conformingTake struct{ conformingKeyed }

func (c conformingTake) Decide(ctx context.Context, key string, n int) (ratelimit.Decision, error) {
	d, r, err := c.Take(ctx, key, n, 0)
	if d.Allowed != r.OK() {
		d.Limit = -1 // they contradict each other
	}
	return d, err
}

func (c conformingTake) Reserve(key string, n int) *ratelimit.Reservation {
	_, r, _ := c.Take(context.Background(), key, n, ratelimit.Never)
	return r
}
