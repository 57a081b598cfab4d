package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// allPolicies are one small policy of each algorithm.
var allPolicies = []ratelimit.Policy{
	ratelimit.TokenBucketPolicy(ratelimit.PerSecond(3), 4),
	ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(4), 5),
	ratelimit.SlidingLogPolicy(5, time.Second),
	ratelimit.FixedCounterPolicy(6, time.Second),
	ratelimit.SlidingCounterPolicy(5, time.Second).WithCells(3),
}

// allOf returns a limiter of each policy on one clock. Odd ones are keys of a
// keyed limiter.
func allOf(t *testing.T, c ratelimit.Clock, policies ...ratelimit.Policy) []ratelimit.Limiter {
	t.Helper()
	limiters := []ratelimit.Limiter{}
	for i, p := range policies {
		if i%2 == 0 {
			limiters = append(limiters, conformingNew(t, p, ratelimit.WithClock(c)))
			continue
		}
		k, err := ratelimit.NewKeyed[string](p, ratelimit.WithClock(c))
		if err != nil {
			t.Fatal(err)
		}
		limiters = append(limiters, k.For("key"))
	}
	return limiters
}

// allLook is what each member says of itself.
func allLook(limiters []ratelimit.Limiter) string {
	s := ""
	for _, l := range limiters {
		d := l.Decide(0)
		s += fmt.Sprintf("%+v", d)
		if d.Remaining < d.Limit {
			s += fmt.Sprint(l.Decide(d.Remaining+1).RetryAfter, l.Decide(d.Limit).RetryAfter)
		}
		s += "\n"
	}
	return s
}

// allForeign is a limiter that this package does not know, though it embeds one.
type allForeign struct{ ratelimit.Limiter }

func TestAllChargesEveryMemberOrNone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		for _, foreign := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(seed, 3))
			c := conformance.NewClock(boundStart)
			members := allOf(t, c, allPolicies...)
			given := append([]ratelimit.Limiter{}, members...)
			if i := rng.IntN(len(given)); foreign && given[i].Decide(0).Policy.Algorithm() != ratelimit.AlgorithmLeakyBucket {
				given[i] = allForeign{given[i]}
			}
			rng.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
			all := ratelimit.All(given...)
			for step := range 60 {
				if rng.IntN(3) == 0 {
					c.Advance(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
				}
				if rng.IntN(4) == 0 { // a member may be used by others too
					members[rng.IntN(len(members))].AllowN(1 + rng.IntN(2))
				}
				n := rng.IntN(7)
				before, left := allLook(members), []int{}
				fits := true
				for _, m := range members {
					left = append(left, m.Decide(0).Remaining)
					fits = fits && n <= left[len(left)-1]
				}
				d := all.Decide(n)
				if d.Allowed != fits {
					t.Fatalf("seed %d, foreign %v, step %d, t=%v: Decide(%d) with %v left: got %+v, want allowed %v", seed, foreign, step, c.Elapsed(), n, left, d, fits)
				}
				if !fits {
					if got := allLook(members); got != before {
						t.Fatalf("seed %d, foreign %v, step %d, t=%v: members after a refusal:\ngot\n%swant\n%s", seed, foreign, step, c.Elapsed(), got, before)
					}
					continue
				}
				for i, m := range members {
					if got := m.Decide(0).Remaining; got != left[i]-n {
						t.Fatalf("seed %d, foreign %v, step %d, t=%v: member %v after %d: got %d left, want %d", seed, foreign, step, c.Elapsed(), m.Decide(0).Policy, n, got, left[i]-n)
					}
				}
			}
		}
	}
}

// TestAllRetryAfterIsExact obeys RetryAfter, and one nanosecond less.
func TestAllRetryAfterIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := conformance.NewClock(boundStart)
		members := allOf(t, c, allPolicies...)
		all := ratelimit.All(members...)
		for range rng.IntN(8) {
			all.AllowN(rng.IntN(3))
			members[rng.IntN(len(members))].AllowN(rng.IntN(4))
			c.Advance(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		}
		n := 1 + rng.IntN(4)
		d := all.Decide(n)
		if d.Allowed {
			continue
		}
		if d.RetryAfter <= 0 || d.RetryAfter == ratelimit.Never {
			t.Fatalf("seed %d: RetryAfter of %d: got %v, want a positive wait", seed, n, d.RetryAfter)
		}
		tightest := time.Duration(0)
		for _, m := range members {
			if m.Decide(0).Policy == d.Policy {
				tightest = m.Decide(m.Decide(0).Limit).RetryAfter // not charged: it cannot pass now
			}
		}
		if tightest < d.RetryAfter {
			t.Errorf("seed %d: policy of a refusal: got %v, want the one in the way for %v", seed, d.Policy, d.RetryAfter)
		}
		c.Advance(d.RetryAfter - 1)
		if early := all.Decide(n); early.Allowed || early.RetryAfter != 1 {
			t.Fatalf("seed %d, t=%v: one nanosecond early: got %+v, want refused for 1ns", seed, c.Elapsed(), early)
		}
		if c.Advance(1); !all.AllowN(n) {
			t.Fatalf("seed %d, t=%v: at RetryAfter: got refused", seed, c.Elapsed())
		}
	}
}

func TestAllReportsTheTightest(t *testing.T) {
	t.Parallel()
	c := conformance.NewClock(boundStart)
	wide := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(100), 100)
	narrow := ratelimit.SlidingLogPolicy(2, time.Hour)
	members := allOf(t, c, wide, narrow)
	for _, all := range []ratelimit.Limiter{ratelimit.All(members...), ratelimit.All(members[1], members[0])} {
		d := all.Decide(0)
		if d.Policy != narrow || d.Limit != 2 || d.Remaining != d.Limit {
			t.Errorf("of a look: got %+v, want %v", d, narrow)
		}
	}
	all := ratelimit.All(members...)
	if d := all.Decide(2); !d.Allowed || d.Policy != narrow || d.Remaining != 0 || d.ResetAfter != time.Hour {
		t.Errorf("of what is allowed: got %+v, want %v, 0 left for an hour", d, narrow)
	}
	if d := all.Decide(1); d.Allowed || d.Policy != narrow || d.RetryAfter != time.Hour {
		t.Errorf("of a refusal: got %+v, want %v for an hour", d, narrow)
	}
	// The one in the way decides, though another has less left.
	c.Advance(time.Hour)
	members[0].AllowN(100)
	if d := all.Decide(1); d.Allowed || d.Policy != wide || d.RetryAfter != 10*time.Millisecond {
		t.Errorf("of a refusal: got %+v, want %v for 10ms", d, wide)
	}
	if d := all.Decide(3); d.Allowed || d.RetryAfter != ratelimit.Never {
		t.Errorf("of more than a member's limit: got %+v, want refused for ever", d)
	}
	if r := all.ReserveN(3); !errors.Is(r.Err(), ratelimit.ErrExceedsLimit) {
		t.Errorf("of more than a member's limit: got %v, want ErrExceedsLimit", r.Err())
	}
}

func TestAllRefusesNil(t *testing.T) {
	t.Parallel()
	good := conformingNew(t, allPolicies[0])
	for name, l := range map[string]ratelimit.Limiter{
		"nil":                 nil,
		"nil TokenBucket":     (*ratelimit.TokenBucket)(nil),
		"nil LeakyBucket":     (*ratelimit.LeakyBucket)(nil),
		"nil SlidingLog":      (*ratelimit.SlidingLog)(nil),
		"nil FixedCounter":    (*ratelimit.FixedCounter)(nil),
		"nil SlidingCounter":  (*ratelimit.SlidingCounter)(nil),
		"zero TokenBucket":    new(ratelimit.TokenBucket),
		"key of a zero Keyed": new(ratelimit.Keyed[string]).For("key"),
		"blocked":             conformingNew(t, ratelimit.Blocked()),
		"all of nil":          ratelimit.All(nil),
		"all of good and nil": ratelimit.All(good, nil),
	} {
		for order, all := range map[string]func() ratelimit.Limiter{
			"first": func() ratelimit.Limiter { return ratelimit.All(l, good) },
			"last":  func() ratelimit.Limiter { return ratelimit.All(good, l) },
			"alone": func() ratelimit.Limiter { return ratelimit.All(l) },
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				zeroRefuses(t, all())
				if got := good.Decide(0).Remaining; got != 4 {
					t.Errorf("remaining of the other member: got %d, want 4", got)
				}
			})
		}
	}
}

// TestAllRefusesNilForeign gives a nil pointer of a type that is not of this
// package, whose methods would panic.
func TestAllRefusesNilForeign(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("got panic: %v, want refused", p)
		}
	}()
	zeroRefuses(t, ratelimit.All(conformingNew(t, allPolicies[0]), (*allForeign)(nil)))
}

// TestAllForeignLeakyBucket asks a leaky bucket in a wrapper, whose bookings
// act later than what enters at once.
func TestAllForeignLeakyBucket(t *testing.T) {
	t.Parallel()
	p := ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(4), 5)
	c := conformance.NewClock(boundStart)
	inner := conformingNew(t, p, ratelimit.WithClock(c))
	other := conformingNew(t, ratelimit.SlidingLogPolicy(10, time.Second), ratelimit.WithClock(c))
	all := ratelimit.All(other, allForeign{inner})
	if d := all.Decide(3); !d.Allowed || inner.Decide(0).Remaining != 2 || other.Decide(0).Remaining != 7 {
		t.Errorf("Decide(3): got %+v with %d and %d left, want allowed with 2 and 7", d, inner.Decide(0).Remaining, other.Decide(0).Remaining)
	}
}

func TestAllOfNoneAdmits(t *testing.T) {
	t.Parallel()
	for _, all := range []ratelimit.Limiter{ratelimit.All(), ratelimit.All([]ratelimit.Limiter{}...), ratelimit.All(ratelimit.All())} {
		for range 100 {
			if d := all.Decide(1_000_000); !d.Allowed || !all.Allow() || all.Reserve().Delay() != 0 || all.Wait(t.Context()) != nil {
				t.Fatalf("got %+v, want admitted", d)
			}
		}
		if all.AllowN(-1) {
			t.Error("AllowN(-1): got true, want false")
		}
	}
}

func TestAllRepeatedMemberCostsTwice(t *testing.T) {
	t.Parallel()
	for i, p := range allPolicies {
		t.Run(p.Algorithm().String(), func(t *testing.T) {
			c := conformance.NewClock(boundStart)
			policies := make([]ratelimit.Policy, i+1) // keyed for an odd i
			for j := range policies {
				policies[j] = p
			}
			l := allOf(t, c, policies...)[i]
			limit := p.Limit()
			for name, all := range map[string]ratelimit.Limiter{
				"twice":         ratelimit.All(l, l),
				"nested":        ratelimit.All(l, ratelimit.All(l)),
				"deeply nested": ratelimit.All(ratelimit.All(ratelimit.All(l), l)),
			} {
				c.Advance(time.Minute)
				d := all.Decide(1)
				if got := l.Decide(0).Remaining; got != limit-2 || !d.Allowed || d.Remaining != (limit-2)/2 || d.Limit != limit/2 {
					t.Errorf("%s: got %d left and %+v, want %d left", name, got, d, limit-2)
				}
				c.Advance(time.Minute)
				if all.AllowN(limit/2+1) || l.Decide(0).Remaining != limit {
					t.Errorf("%s: more than half the limit: got admitted or charged", name)
				}
				if !all.AllowN(limit/2) || l.Decide(0).Remaining != limit%2 {
					t.Errorf("%s: half the limit: got refused or %d left, want %d", name, l.Decide(0).Remaining, limit%2)
				}
				if before := l.Decide(0); all.Allow() || l.Decide(0) != before {
					t.Errorf("%s: got admitted or charged, want refused", name)
				}
			}
		})
	}
}

// TestAllSameKeyTwice gives one key of one keyed limiter twice, by two calls of
// For: that is one budget, which costs twice.
func TestAllSameKeyTwice(t *testing.T) {
	t.Parallel()
	for _, p := range allPolicies {
		t.Run(p.Algorithm().String(), func(t *testing.T) {
			c := conformance.NewClock(boundStart)
			k, err := ratelimit.NewKeyed[string](p, ratelimit.WithClock(c), ratelimit.WithShards(1))
			if err != nil {
				t.Fatal(err)
			}
			crowdGuard(t, func() {
				all := ratelimit.All(k.For("a"), k.For("b"), k.For("a"))
				if !all.Allow() {
					t.Error("got refused")
				}
				for key, want := range map[string]int{"a": p.Limit() - 2, "b": p.Limit() - 1, "c": p.Limit()} {
					if got := k.For(key).Decide(0).Remaining; got != want {
						t.Errorf("key %s: got %d left, want %d", key, got, want)
					}
				}
				k.AllowN("b", p.Limit()-1)
				before := k.For("a").Decide(0)
				if all.Allow() || k.For("a").Decide(0) != before {
					t.Error("with one key empty: got admitted or charged")
				}
				if r := all.Reserve(); r.OK() {
					r.Cancel()
					r.Settle(0)
				}
			})
		})
	}
}

// TestAllOppositeOrders names the same members in opposite orders from many
// goroutines: nobody deadlocks and nothing is charged in part.
func TestAllOppositeOrders(t *testing.T) {
	t.Parallel()
	c := conformance.NewClock(boundStart)
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1000)
	k, err := ratelimit.NewKeyed[int](ratelimit.SlidingLogPolicy(900, time.Hour), ratelimit.WithClock(c), ratelimit.WithShards(4),
		ratelimit.WithMaxWait(0)) // no booking ahead, which would give back only the newest
	if err != nil {
		t.Fatal(err)
	}
	a, b := conformingNew(t, p, ratelimit.WithClock(c)), conformingNew(t, ratelimit.FixedCounterPolicy(1000, time.Hour), ratelimit.WithClock(c))
	foreign := allForeign{conformingNew(t, ratelimit.SlidingLogPolicy(100_000, time.Hour), ratelimit.WithClock(c))}
	members := []ratelimit.Limiter{a, b, foreign}
	for key := range 8 {
		members = append(members, k.For(key))
	}
	var admitted atomic.Int64
	crowd(t, 8, func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 5))
		for range 150 {
			order := rng.Perm(len(members))
			shuffled := []ratelimit.Limiter{}
			for _, j := range order {
				shuffled = append(shuffled, members[j])
			}
			all := ratelimit.All(shuffled...)
			if all.Allow() {
				admitted.Add(1)
			}
			if r := all.ReserveN(1); r.OK() {
				r.Settle(0)
			}
			all.Decide(0)
			k.Allow(100 + i)
		}
	})
	for i, m := range members {
		d := m.Decide(0)
		if used := int64(d.Limit - d.Remaining); used != admitted.Load() {
			t.Errorf("member %d: got %d units used, want %d", i, used, admitted.Load())
		}
	}
	if got := admitted.Load(); got < 800 || got > 900 {
		t.Errorf("admitted: got %d, want 900 but for those refused during another's booking", got)
	}
}

// TestAllReservesTheFirstCommonMoment compares with a search: the booked moment
// admits on every member, the nanosecond before does not on all.
func TestAllReservesTheFirstCommonMoment(t *testing.T) {
	t.Parallel()
	policies := []ratelimit.Policy{allPolicies[0], allPolicies[2], allPolicies[3], allPolicies[4]} // a leaky bucket queues
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 6))
		schedule := func() (ratelimit.Limiter, []ratelimit.Limiter, *conformance.Clock) {
			rng := rand.New(rand.NewPCG(seed, 6))
			c := conformance.NewClock(boundStart)
			members := allOf(t, c, policies...)
			all := ratelimit.All(members...)
			for range rng.IntN(8) {
				all.AllowN(rng.IntN(3))
				members[rng.IntN(len(members))].AllowN(rng.IntN(4))
				c.Advance(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
			}
			return all, members, c
		}
		n := 1 + rng.IntN(4)
		all, members, c := schedule()
		before := allLook(members)
		r := all.ReserveN(n)
		if !r.OK() {
			t.Fatalf("seed %d: got %v, want nil", seed, r.Err())
		}
		other, _, _ := schedule()
		want := time.Duration(0)
		if d := other.Decide(n); !d.Allowed {
			want = d.RetryAfter
		}
		if got := r.Delay(); got != want {
			t.Fatalf("seed %d, t=%v: delay of %d: got %v, want %v", seed, c.Elapsed(), n, got, want)
		}
		// Nobody is served before it, on any member.
		second := all.Reserve()
		if second.OK() && second.Delay() < r.Delay() {
			t.Fatalf("seed %d: delay of the second: got %v, want at least %v", seed, second.Delay(), r.Delay())
		}
		if r.Delay() == 0 {
			continue
		}
		if second.Delay() > 0 {
			second.Cancel()
			r.Cancel()
			r.Cancel()
			if got := allLook(members); got != before {
				t.Fatalf("seed %d, t=%v: members after cancelling all:\ngot\n%swant\n%s", seed, c.Elapsed(), got, before)
			}
		}
	}
}

// TestAllCancelRestores cancels and settles bookings of All and looks at every member.
func TestAllCancelRestores(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		c := conformance.NewClock(boundStart)
		members := allOf(t, c, allPolicies...)
		given := append([]ratelimit.Limiter{}, members...)
		if foreign {
			given[2] = allForeign{given[2]}
		}
		all := ratelimit.All(given...)
		for step := range 12 {
			before := allLook(members)
			r := all.ReserveN(1 + step%3)
			if r.OK() && r.Delay() > 0 {
				if r.Cancel(); allLook(members) != before {
					t.Fatalf("foreign %v, step %d, t=%v: members after Cancel:\ngot\n%swant\n%s", foreign, step, c.Elapsed(), allLook(members), before)
				}
				if r = all.ReserveN(1 + step%3); r.Delay() > 0 {
					if r.Settle(0); allLook(members) != before {
						t.Fatalf("foreign %v, step %d, t=%v: members after Settle(0):\ngot\n%swant\n%s", foreign, step, c.Elapsed(), allLook(members), before)
					}
				}
			}
			if step%4 == 3 {
				c.Advance(300 * time.Millisecond)
			}
		}
	}
}

// TestAllShortestWaitHolds refuses a booking beyond any member's WithMaxWait.
func TestAllShortestWaitHolds(t *testing.T) {
	t.Parallel()
	c := conformance.NewClock(boundStart)
	a := conformingNew(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1), ratelimit.WithClock(c))
	b := conformingNew(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 10), ratelimit.WithClock(c), ratelimit.WithMaxWait(time.Second))
	for _, all := range []ratelimit.Limiter{ratelimit.All(a, b), ratelimit.All(b, a), ratelimit.All(ratelimit.All(b), a)} {
		c.Advance(time.Minute)
		if r := all.Reserve(); r.Delay() != 0 {
			t.Fatalf("first: got %v, want 0", r.Delay())
		}
		if r := all.Reserve(); r.Delay() != time.Second {
			t.Fatalf("second: got %v, want 1s", r.Delay())
		}
		before := allLook([]ratelimit.Limiter{a, b})
		if r := all.Reserve(); !errors.Is(r.Err(), ratelimit.ErrWaitTooLong) {
			t.Fatalf("third: got %v, want ErrWaitTooLong", r.Err())
		}
		if err := all.Wait(context.Background()); !errors.Is(err, ratelimit.ErrWaitTooLong) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("third: got %v, want only ErrWaitTooLong", err)
		}
		if got := allLook([]ratelimit.Limiter{a, b}); got != before {
			t.Fatalf("members after refusals:\ngot\n%swant\n%s", got, before)
		}
	}
}
