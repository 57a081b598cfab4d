package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// The sweep rides along with ordinary calls, so it takes some of them to forget
// all keys; the case asks for one.
func TestCase_B080_IdleKeysAreForgotten(t *testing.T) {
	keys := caseLong(300_000) // of the million in the case
	base := caseHeap()
	clock := newCaseClock()
	k := ratelimit.Must(ratelimit.NewKeyed[int](casePerSecond(1, 5), ratelimit.WithClock(clock)))
	for key := range keys {
		if !k.Allow(key) {
			t.Fatalf("key %d, t = 0: Allow() = false, want true", key)
		}
	}
	if got := k.Len(); got != keys {
		t.Errorf("t = 0: Len() = %d, want all %d: none is as good as new", got, keys)
	}
	grown := caseHeap() - base
	clock.set(61 * time.Second)
	for key := range 3 * keys { // a hundred of these are in use at a time
		k.Allow(keys + key)
		clock.advance(10 * time.Millisecond)
	}
	if got := k.Len(); got > keys/50+1000 {
		t.Errorf("Len() = %d after the sweep, want at most %d", got, keys/50+1000)
	}
	if left := caseHeap() - base; left > grown/4+(1<<20) {
		t.Errorf("heap grew by %d bytes and is still %d above its base", grown, left)
	}
	runtime.KeepAlive(k)
}

func caseHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Forgetting never changes an answer, in any algorithm.
func TestCase_B080_ForgettingIsLossless(t *testing.T) {
	for _, p := range append(casePolicies(3, time.Second), casePerSecond(3, 5).WithInitial(1)) {
		t.Run(p.String(), func(t *testing.T) {
			clock := newCaseClock()
			k := ratelimit.Must(ratelimit.NewKeyed[int](p, ratelimit.WithClock(clock), ratelimit.WithShards(1)))
			kept := map[int]ratelimit.Limiter{}
			for key := range 30 {
				kept[key] = ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(clock)))
			}
			rng := rand.New(rand.NewPCG(80, 80))
			for step := range 20_000 {
				clock.advance(time.Duration(rng.Int64N(int64(100 * caseMs))))
				key, n := rng.IntN(30), rng.IntN(4)
				got, err := k.Decide(t.Context(), key, n)
				if want := kept[key].Decide(n); got != want || err != nil {
					t.Fatalf("step %d, t = %v, key %d: Decide(%d) = %+v, %v; want %+v", step, clock.offset(), key, n, got, err, want)
				}
			}
		})
	}
}

func TestCase_B080_MostKeys(t *testing.T) {
	for _, p := range casePolicies(5, 5*time.Second) {
		clock := newCaseClock()
		k := ratelimit.Must(ratelimit.NewKeyed[int](p, ratelimit.WithClock(clock), ratelimit.WithMaxKeys(1000)))
		for key := range 20_000 {
			k.Allow(key)
			clock.advance(100 * time.Microsecond)
			if got := k.Len(); key%100 == 0 && got > 1000 {
				t.Fatalf("%v, key %d, t = %v: Len() = %d, want at most 1000", p, key, clock.offset(), got)
			}
		}
	}
}

// A table full of keys in use is not wiped: further keys share one budget.
func TestCase_B082_FullTable(t *testing.T) {
	for _, p := range casePolicies(2, time.Minute) {
		t.Run(p.String(), func(t *testing.T) {
			k := ratelimit.Must(ratelimit.NewKeyed[string](p,
				ratelimit.WithClock(newCaseClock()), ratelimit.WithMaxKeys(3), ratelimit.WithOverflow(p)))
			calls := []struct {
				key  string
				want bool
			}{
				{"A", true}, {"A", true}, {"A", false},
				{"B", true}, {"C", true}, {"D", true}, {"E", true}, // the last two share a budget of 2
				{"A", false}, {"D", false}, {"E", false}, {"F", false},
				{"B", true}, {"B", false}, {"C", true}, {"C", false},
			}
			for i, call := range calls {
				if got := k.Allow(call.key); got != call.want {
					t.Fatalf("call %d, t = 0: Allow(%s) = %v, want %v", i+1, call.key, got, call.want)
				}
			}
			if stats := k.Stats(); k.Len() > 3 || stats.Keys > 3 || stats.Overflowed != 5 {
				t.Errorf("Len() = %d, Stats() = %+v; want at most 3 keys and 5 overflowed", k.Len(), stats)
			}
		})
	}
}

// A key that was forgotten comes back under its own policy.
func TestCase_B083_OverrideSurvivesTheSweep(t *testing.T) {
	clock := newCaseClock()
	k := ratelimit.Must(ratelimit.NewKeyedFunc(func(key int) ratelimit.Policy {
		if key == 7 {
			return casePerSecond(1, 20)
		}
		return casePerSecond(1, 5)
	}, ratelimit.WithClock(clock), ratelimit.WithShards(1)))
	for round := range 3 {
		clock.set(time.Duration(round) * time.Hour)
		for key := range 200 {
			want := 5
			if key == 7 {
				want = 20
			}
			if !k.AllowN(key, want) || k.Allow(key) {
				t.Fatalf("round %d, key %d, t = %v: want just %d units admitted", round, key, clock.offset(), want)
			}
		}
	}
}

func TestCase_B085_TwoWindowsAtOnce(t *testing.T) {
	clock := newCaseClock()
	a := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.FixedCounterPolicy(10, time.Second), ratelimit.WithClock(clock)))
	b := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.FixedCounterPolicy(30, time.Hour), ratelimit.WithClock(clock)))
	for s := range 10 {
		clock.set(time.Duration(s) * time.Second)
		for call := range 11 {
			if got, want := a.Allow("key"), call < 10; got != want {
				t.Fatalf("t = %ds, call %d: Allow = %v, want %v", s, call+1, got, want)
			}
		}
		d, err := b.Decide(t.Context(), "key", 1)
		if err != nil || !d.Allowed || d.Remaining != 29-s {
			t.Fatalf("t = %ds: allowed %v, remaining %d, error %v; want true, %d", s, d.Allowed, d.Remaining, err, 29-s)
		}
	}
}

func TestCase_B088_ConcurrentSweeps(t *testing.T) {
	for _, p := range casePolicies(5, time.Second) {
		t.Run(p.String(), func(t *testing.T) {
			clock := newCaseClock()
			k := ratelimit.Must(ratelimit.NewKeyed[int](p, ratelimit.WithClock(clock), ratelimit.WithShards(4)))
			var wg sync.WaitGroup
			for g := range 64 {
				wg.Go(func() {
					for i := range 300 {
						k.Allow(g*7 + i%50)
						if i%50 == g%50 {
							clock.advance(10 * time.Second)
						}
					}
				})
			}
			wg.Wait()
			clock.advance(time.Hour)
			for key := range 1000 { // none of the keys is out of order
				d, err := k.Decide(t.Context(), key, 5)
				if err != nil || !d.Allowed {
					t.Fatalf("key %d an hour later: Decide(5) = %+v, %v; want allowed", key, d, err)
				}
			}
		})
	}
}

func TestCase_B089_LimitersAreIndependent(t *testing.T) {
	for _, p := range casePolicies(2, time.Minute) {
		t.Run(p.String(), func(t *testing.T) {
			clock := newCaseClock()
			x := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(clock)))
			y := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(clock)))
			l := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(clock)))
			for name, allow := range map[string]func() bool{
				"x": func() bool { return x.Allow("key") },
				"y": func() bool { return y.Allow("key") },
				"z": func() bool { return x.Allow("other") },
				"l": l.Allow,
			} {
				if got := [3]bool{allow(), allow(), allow()}; got != [3]bool{true, true, false} {
					t.Errorf("%s: three calls = %v, want true, true, false", name, got)
				}
			}
			// Two users of one limiter share it.
			if x.For("key").Allow() || x.For("other").Allow() {
				t.Error("a second For of a used key admits")
			}
		})
	}
}

func TestCase_B091_OneLimiterForAllCalls(t *testing.T) {
	for _, p := range casePolicies(10, time.Hour) {
		k := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(newCaseClock())))
		admitted := 0
		for range 100 {
			if k.For("client").Allow() {
				admitted++
			}
		}
		if admitted != 10 {
			t.Errorf("%v: admitted %d of 100, want 10", p, admitted)
		}
	}
}

func TestCase_B115_EachPlaceIsGivenOnce(t *testing.T) {
	for _, p := range casePolicies(25, time.Minute) {
		t.Run(p.String(), func(t *testing.T) {
			caseForms(t, p, func(c *caseRun) {
				var mu sync.Mutex
				var wg sync.WaitGroup
				var remaining []int
				refused := 0
				for range 50 {
					wg.Go(func() {
						d := c.limiter.Decide(1)
						mu.Lock()
						defer mu.Unlock()
						if d.Allowed {
							remaining = append(remaining, d.Remaining)
						} else {
							refused++
						}
					})
				}
				wg.Wait()
				slices.Sort(remaining)
				if want := "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24]"; fmt.Sprint(remaining) != want || refused != 25 {
					c.failf("remaining %v, %d refused; want %s, 25", remaining, refused, want)
				}
			})
		})
	}
}

// A keyed Wait on a clock that stands still ends with its context.
func TestCase_B130_KeyedWaitEndsWithItsContext(t *testing.T) {
	clock := newCaseClock()
	k := ratelimit.Must(ratelimit.NewKeyed[string](casePerSecond(1, 1), ratelimit.WithClock(clock)))
	k.Allow("key")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Wait(ctx, "key") }()
	caseUntil(&caseRun{t: t, clock: clock}, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || clock.offset() != 0 {
		t.Errorf("Wait = %v at %v, want context.Canceled at 0s", err, clock.offset())
	}
}
