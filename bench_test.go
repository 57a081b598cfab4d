package ratelimit_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// BenchmarkClock is the yardstick: what any limiter has to pay.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	var word atomic.Int64
	b.Run("Since", func(b *testing.B) {
		for b.Loop() {
			_ = time.Since(start)
		}
	})
	b.Run("Since+CAS", func(b *testing.B) {
		for b.Loop() {
			now := int64(time.Since(start))
			word.CompareAndSwap(word.Load(), now)
		}
	})
}

var policies = map[string]struct{ admits, refuses ratelimit.Policy }{
	"TokenBucket":    {ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1e6), math.MaxInt32), ratelimit.TokenBucketPolicy(ratelimit.PerHour(1), 1)},
	"LeakyBucket":    {ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1e6), math.MaxInt32), ratelimit.LeakyBucketPolicy(ratelimit.PerHour(1), 1)},
	"SlidingLog":     {ratelimit.SlidingLogPolicy(math.MaxInt32, time.Millisecond), ratelimit.SlidingLogPolicy(1, time.Hour)},
	"FixedCounter":   {ratelimit.FixedCounterPolicy(math.MaxInt32, time.Second), ratelimit.FixedCounterPolicy(1, 1000*time.Hour)},
	"SlidingCounter": {ratelimit.SlidingCounterPolicy(math.MaxInt32, time.Second), ratelimit.SlidingCounterPolicy(1, 1000*time.Hour)},
}

func BenchmarkAllow(b *testing.B) {
	for name, p := range policies {
		b.Run(name+"/admitted", func(b *testing.B) { benchmarkAllow(b, p.admits) })
		b.Run(name+"/refused", func(b *testing.B) { benchmarkAllow(b, p.refuses) })
	}
}

func benchmarkAllow(b *testing.B, p ratelimit.Policy) {
	b.ReportAllocs()
	switch l := ratelimit.Must(ratelimit.New(p)).(type) {
	case *ratelimit.TokenBucket: // as most services call it: not through an interface
		for b.Loop() {
			l.Allow()
		}
	default:
		for b.Loop() {
			l.Allow()
		}
	}
}

func BenchmarkAllowParallel(b *testing.B) {
	for name, p := range policies {
		b.Run(name, func(b *testing.B) {
			l := ratelimit.Must(ratelimit.New(p.admits))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Allow()
				}
			})
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, p := range policies {
		b.Run(name, func(b *testing.B) {
			l := ratelimit.Must(ratelimit.New(p.admits))
			b.ReportAllocs()
			for b.Loop() {
				l.Decide(1)
			}
		})
	}
}

func BenchmarkKeyedAllow(b *testing.B) {
	for name, p := range policies {
		b.Run(name+"/hot", func(b *testing.B) {
			k := ratelimit.Must(ratelimit.NewKeyed[string](p.admits))
			b.ReportAllocs()
			for b.Loop() {
				k.Allow("user:42")
			}
		})
	}
}
