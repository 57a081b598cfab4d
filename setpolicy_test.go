package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// settable is what SetPolicy is tried on: one limiter, or a key's of many.
type settable struct {
	ratelimit.Limiter
	set func(ratelimit.Policy) error
}

func settables(t *testing.T, p ratelimit.Policy, c ratelimit.Clock) map[string]settable {
	t.Helper()
	plain := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(c)))
	keyed := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(c), ratelimit.WithShards(2)))
	also := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(c), ratelimit.WithAlso(ratelimit.Unlimited())))
	return map[string]settable{
		"plain": {plain, plain.(interface {
			SetPolicy(ratelimit.Policy) error
		}).SetPolicy},
		"keyed": {keyed.For("ann"), keyed.SetPolicy},
		"also":  {also.For("ann"), also.SetPolicy},
	}
}

// TestCase_B037_SettlesBeforeTheChange: time that passed under the old rate is
// paid at the old rate, for keys held and for new ones.
func TestCase_B037_SettlesBeforeTheChange(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	slow := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 100)
	fast := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 100)
	for name, l := range settables(t, slow, clock) {
		t.Run(name, func(t *testing.T) {
			require.True(t, l.AllowN(100), "t=0: the full bucket")
			clock.Advance(10 * time.Second)
			require.NoError(t, l.set(fast))
			assert.Equal(t, 10, l.Decide(0).Remaining, "at the change")
			clock.Advance(time.Second)
			assert.Equal(t, 20, l.Decide(0).Remaining, "1 s after the change")
			assert.Equal(t, fast, l.Decide(0).Policy)
		})
	}
}

// TestSetPolicyNeverMints changes the burst up and down: tokens are kept, capped
// and never raised, and a key never seen has no more than one that was full.
func TestSetPolicyNeverMints(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	for name, l := range settables(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 10), clock) {
		t.Run(name, func(t *testing.T) {
			for i, step := range []struct{ burst, want int }{{20, 10}, {5, 5}, {50, 5}, {3, 3}, {3, 3}} {
				require.NoError(t, l.set(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), step.burst)))
				assert.Equal(t, step.want, l.Decide(0).Remaining, "step %d: burst %d", i, step.burst)
			}
			require.True(t, l.AllowN(3))
			assert.Equal(t, time.Second, l.Decide(1).RetryAfter)
		})
	}
}

// TestSetPolicyKeepsBookings: a debt is kept as the time until it is paid, so
// that no later booking comes before an earlier one.
func TestSetPolicyKeepsBookings(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	for name, l := range settables(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 10), clock) {
		t.Run(name, func(t *testing.T) {
			require.True(t, l.AllowN(10))
			r := l.ReserveN(6)
			require.Equal(t, 6*time.Second, r.Delay())
			require.NoError(t, l.set(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(2), 10)))
			assert.Equal(t, 6*time.Second, r.Delay(), "the booking keeps its moment")
			assert.Equal(t, 6500*time.Millisecond, l.Reserve().Delay(), "the next one is paid at the new rate, behind it")
			r.Cancel()
			assert.Equal(t, 7*time.Second, l.Reserve().Delay(), "nothing comes free of another policy's booking")
		})
	}
}

// TestSetPolicyKeepsCharges does so for the other algorithms.
func TestSetPolicyKeepsCharges(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		name     string
		old, new ratelimit.Policy
		want     int // of 6 used
	}{
		{"leaky-bucket up", ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1), 10), ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 20), 14},
		{"leaky-bucket down", ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1), 10), ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 5), 0},
		{"sliding-log up", ratelimit.SlidingLogPolicy(10, second), ratelimit.SlidingLogPolicy(20, second), 14},
		{"sliding-log longer", ratelimit.SlidingLogPolicy(10, second), ratelimit.SlidingLogPolicy(10, time.Hour), 4},
		{"fixed-counter up", ratelimit.FixedCounterPolicy(10, second), ratelimit.FixedCounterPolicy(20, second), 14},
		{"fixed-counter shorter", ratelimit.FixedCounterPolicy(10, time.Hour), ratelimit.FixedCounterPolicy(10, second), 4},
		{"sliding-counter up", ratelimit.SlidingCounterPolicy(10, second), ratelimit.SlidingCounterPolicy(20, second), 14},
		{"sliding-counter cells", ratelimit.SlidingCounterPolicy(10, second), ratelimit.SlidingCounterPolicy(10, second).WithCells(5), 4},
		{"sliding-counter longer", ratelimit.SlidingCounterPolicy(10, second), ratelimit.SlidingCounterPolicy(10, time.Hour), 4},
	} {
		clock := conformance.NewClock(time.Unix(1e9, 0))
		for name, l := range settables(t, c.old, clock) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				require.True(t, l.AllowN(6))
				require.NoError(t, l.set(c.new))
				assert.Equal(t, c.want, l.Decide(0).Remaining)
				assert.Equal(t, c.new.Limit(), l.Decide(0).Limit)
			})
		}
	}
}

func TestSetPolicyRefuses(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	old := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 10)
	for name, l := range settables(t, old, clock) {
		for _, bad := range []ratelimit.Policy{
			{}, ratelimit.Blocked(), ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1), 10),
			ratelimit.TokenBucketPolicy(ratelimit.PerSecond(0), 10),
		} {
			assert.ErrorIs(t, l.set(bad), ratelimit.ErrInvalidPolicy, "%s: %v", name, bad)
			assert.Equal(t, old, l.Decide(0).Policy, name)
		}
	}
	one, _ := ratelimit.All(ratelimit.Must(ratelimit.New(old)), nil).(interface {
		SetPolicy(ratelimit.Policy) error
	})
	assert.ErrorIs(t, one.SetPolicy(old), ratelimit.ErrInvalidPolicy)
	var zero ratelimit.TokenBucket
	assert.ErrorIs(t, zero.SetPolicy(old), ratelimit.ErrClosed)
}

// TestSetPolicyLosesNoCall changes the policy while the clock stands still and
// callers take all they get: together they get one bucket, whatever the order.
func TestSetPolicyLosesNoCall(t *testing.T) {
	const burst = 20_000
	clock := conformance.NewClock(time.Unix(1e9, 0))
	for name, l := range settables(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), burst), clock) {
		t.Run(name, func(t *testing.T) {
			var admitted atomic.Int64
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					for range burst {
						if l.Allow() {
							admitted.Add(1)
						}
					}
				})
			}
			for i := range 200 {
				assert.NoError(t, l.set(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(float64(1+i%7)), burst)))
			}
			callers.Wait()
			assert.EqualValues(t, burst, admitted.Load())
			assert.Equal(t, 0, l.Decide(0).Remaining)
		})
	}
}

func TestWithAlsoChargesAllOrNone(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	second, hour := ratelimit.FixedCounterPolicy(3, time.Second), ratelimit.SlidingLogPolicy(7, time.Hour)
	k := ratelimit.Must(ratelimit.NewKeyed[string](second, ratelimit.WithAlso(hour), ratelimit.WithClock(clock)))
	ctx := context.Background()
	for i, want := range []struct {
		allowed, remaining int
		policy             ratelimit.Policy
	}{{3, 0, second}, {3, 0, second}, {1, 0, hour}, {0, 0, hour}} {
		admitted := 0
		for range 5 {
			if k.Allow("ann") {
				admitted++
			}
		}
		d, err := k.Decide(ctx, "ann", 1)
		require.NoError(t, err)
		assert.Equal(t, want.allowed, admitted, "second %d", i)
		assert.Equal(t, want.remaining, d.Remaining, "second %d", i)
		assert.Equal(t, want.policy, d.Policy, "second %d", i)
		clock.Advance(time.Second)
	}
	assert.True(t, k.Allow("bob"), "another key")
	d, _ := k.Decide(ctx, "ann", 1)
	clock.Advance(d.RetryAfter - 1)
	assert.False(t, k.Allow("ann"), "1 ns before RetryAfter")
	clock.Advance(1)
	assert.True(t, k.Allow("ann"), "at RetryAfter")
}

func TestNewKeyedFuncPlans(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	plans := map[string]ratelimit.Policy{
		"free": ratelimit.FixedCounterPolicy(2, time.Minute),
		"paid": ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20),
		"own":  ratelimit.Unlimited(),
		"out":  ratelimit.Blocked(),
	}
	k := ratelimit.Must(ratelimit.NewKeyedFunc(func(key string) ratelimit.Policy { return plans[key] }, ratelimit.WithClock(clock)))
	for key, want := range map[string]int{"free": 2, "paid": 20, "own": 100, "out": 0, "unknown": 0} {
		admitted := 0
		for range 100 {
			if k.Allow(key) {
				admitted++
			}
		}
		assert.Equal(t, want, admitted, key)
	}
	d, _ := k.Decide(context.Background(), "free", 1)
	assert.Equal(t, plans["free"], d.Policy)
	assert.False(t, ratelimit.All(k.For("free"), k.For("own")).Allow())
	assert.True(t, ratelimit.All(k.For("own"), k.For("own")).Allow())
	assert.ErrorIs(t, k.SetPolicy(plans["free"]), ratelimit.ErrInvalidPolicy)
	assert.Equal(t, ratelimit.Policy{}, k.Policy())

	// The plan holds while the key is held, and is asked for anew after that.
	plans["paid"] = ratelimit.Blocked()
	clock.Advance(time.Second)
	assert.True(t, k.Allow("paid"), "held")
	k.Reset("paid")
	assert.False(t, k.Allow("paid"), "asked again")

	stats := k.Stats()
	assert.EqualValues(t, 2+20+100+1, stats.Allowed-1, "the last 1 is All's")
	assert.Equal(t, k.Len(), stats.Keys)
	_, err := ratelimit.NewKeyedFunc[string](nil)
	assert.ErrorIs(t, err, ratelimit.ErrInvalidPolicy)
}

// TestNewKeyedFuncHoldsNoLock: a policyFor that uses the limiter itself would
// wait for its own lock.
func TestNewKeyedFuncHoldsNoLock(t *testing.T) {
	var k *ratelimit.Keyed[int]
	policy := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1)
	k = ratelimit.Must(ratelimit.NewKeyedFunc(func(key int) ratelimit.Policy {
		if key > 0 {
			k.Allow(key - 1)
		}
		return policy
	}, ratelimit.WithShards(1)))
	assert.True(t, k.Allow(5))
	assert.Equal(t, 6, k.Len())
}

// TestMaxKeysHolds floods a bounded limiter: the bound holds, a blocked key
// stays blocked, and the flood gets one budget in all.
func TestMaxKeysHolds(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	policy := ratelimit.FixedCounterPolicy(2, time.Minute)
	k := ratelimit.Must(ratelimit.NewKeyed[string](policy, ratelimit.WithClock(clock),
		ratelimit.WithMaxKeys(100), ratelimit.WithOverflow(ratelimit.FixedCounterPolicy(5, time.Minute))))
	require.True(t, k.Allow("blocked") && k.Allow("blocked"))
	admitted := 0
	for i := range 10_000 {
		if k.Allow(fmt.Sprint("flood", i)) {
			admitted++
		}
		if k.Len() > 100 || k.Allow("blocked") {
			t.Fatalf("key %d of the flood: %d keys held, want at most 100 and the blocked key blocked", i, k.Len())
		}
	}
	assert.Equal(t, 99+5, admitted, "99 with a place, and 5 of the overflow")
	assert.EqualValues(t, 10_000-99, k.Stats().Overflowed)

	clock.Advance(time.Minute)
	for i := range 50 { // ordinary traffic makes room
		k.Allow(fmt.Sprint("user", i))
	}
	assert.True(t, k.AllowN("late", 2), "a place of its own again")
	assert.Positive(t, k.Stats().Forgotten)
}

// TestMaxKeysUnderLoad is the bound with callers on every shard at once.
func TestMaxKeysUnderLoad(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	k := ratelimit.Must(ratelimit.NewKeyed[int](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1), ratelimit.WithClock(clock), ratelimit.WithMaxKeys(50)))
	var callers sync.WaitGroup
	var admitted atomic.Int64
	for g := range 8 {
		callers.Go(func() {
			for i := range 500 {
				if k.Allow(1000*g + i) {
					admitted.Add(1)
				}
				if n := k.Len(); n > 50 {
					t.Errorf("%d keys held, want at most 50", n)
					return
				}
			}
		})
	}
	callers.Wait()
	assert.EqualValues(t, 50+1, admitted.Load())
	assert.EqualValues(t, 51, k.Stats().Allowed)
	assert.EqualValues(t, 8*500-51, k.Stats().Refused)
	assert.Equal(t, 50, k.Stats().Keys)
}

func TestCoarseClock(t *testing.T) {
	for _, bad := range []time.Duration{0, -1, time.Microsecond, time.Minute} {
		c, err := ratelimit.NewCoarseClock(bad)
		assert.ErrorIs(t, err, ratelimit.ErrInvalidPolicy, "%v", bad)
		assert.Nil(t, c)
	}
	var unstarted ratelimit.CoarseClock
	stopped := ratelimit.Must(ratelimit.NewCoarseClock(time.Millisecond))
	stopped.Stop()
	stopped.Stop()
	running := ratelimit.Must(ratelimit.NewCoarseClock(time.Millisecond))
	defer running.Stop()
	unstarted.Stop()
	for name, c := range map[string]*ratelimit.CoarseClock{"unstarted": &unstarted, "stopped": stopped, "running": running} {
		l := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(100), 1, ratelimit.WithClock(c)))
		start := time.Now()
		for range 6 {
			require.NoError(t, l.Wait(context.Background()), name)
		}
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, 25*time.Millisecond, "%s: 50 ms, but for an old first reading", name)
		assert.Less(t, took, 2*time.Second, name)
		assert.WithinDuration(t, time.Now(), c.Now(), time.Second, name)
	}
}
