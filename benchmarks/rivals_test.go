package benchmarks

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/seed4f92381c/ratelimit"
)

// A limit is what all rivals of one benchmark enforce: n units in each per, and
// burst of them at once. A rival whose algorithm knows windows instead of
// bursts admits burst units in each window of length per.
type limit struct {
	n     int
	per   time.Duration
	burst int
}

var (
	// admitting never refuses: a call takes longer than a unit's refill.
	admitting = limit{1e9, time.Second, math.MaxInt32}
	// refusing admits the first call only.
	refusing = limit{1, time.Hour, 1}
	// overload is less than one core can ask for.
	overload = limit{1e6, time.Second, 10_000}
)

func (l limit) interval() time.Duration { return l.per / time.Duration(l.n) }

// A plainRival enforces a limit on one budget. To add one is to add a row.
type plainRival struct {
	name string
	// allow makes a limiter and returns the method that asks it; nil if the
	// limiter can not do that.
	allow func(limit) func() bool
	// most returns how many units the limit admits at the most in an interval of
	// length t; nil if the limiter is not in the accuracy benchmark.
	most func(l limit, t time.Duration) float64
}

// Names begin with what the ratio table compares to, and have no slash.
var plainRivals = []plainRival{
	{"x-time-rate", func(l limit) func() bool {
		return rate.NewLimiter(rate.Every(l.interval()), l.burst).Allow
	}, bucketMost},
	{"TokenBucket", func(l limit) func() bool {
		return ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.Per(float64(l.n), l.per), l.burst)).Allow
	}, bucketMost},
	{"LeakyBucket", func(l limit) func() bool {
		return ratelimit.Must(ratelimit.NewLeakyBucket(ratelimit.Per(float64(l.n), l.per), l.burst)).Allow
	}, bucketMost},
	{"SlidingLog", func(l limit) func() bool {
		window := l.window()
		if l == admitting {
			window = time.Millisecond // what it remembers grows with the window
		}
		return ratelimit.Must(ratelimit.NewSlidingLog(l.burst, window)).Allow
	}, logMost},
	{"FixedCounter", func(l limit) func() bool {
		return ratelimit.Must(ratelimit.NewFixedCounter(l.burst, l.window())).Allow
	}, counterMost},
	{"SlidingCounter", func(l limit) func() bool {
		return ratelimit.Must(ratelimit.NewSlidingCounter(l.burst, l.window())).Allow
	}, counterMost},
	{"uber-ratelimit", func(l limit) func() bool {
		if l == refusing {
			return nil // it knows only to wait
		}
		take := uber.New(l.n, uber.Per(l.per)).Take
		return func() bool { take(); return true }
	}, nil},
	{"failsafe-smooth", func(l limit) func() bool {
		return ratelimiter.NewSmoothWithMaxRate[any](l.interval()).TryAcquirePermit
	}, nil},
	{"failsafe-bursty", func(l limit) func() bool {
		return ratelimiter.NewBursty[any](uint(l.burst), l.window()).TryAcquirePermit
	}, counterMost},
	{"RussellLuo-slidingwindow", func(l limit) func() bool {
		s, _ := slidingwindow.NewLimiter(l.window(), int64(l.burst), func() (slidingwindow.Window, slidingwindow.StopFunc) {
			return slidingwindow.NewLocalWindow()
		})
		return s.Allow
	}, counterMost},
}

// window is the window in which burst units are n for each per.
func (l limit) window() time.Duration {
	if l == admitting {
		return l.per
	}
	return l.interval() * time.Duration(l.burst)
}

func bucketMost(l limit, t time.Duration) float64 {
	return float64(l.burst) + float64(l.n)*t.Seconds()/l.per.Seconds()
}

// logMost: an interval of length t is covered by ⌊t/W⌋ + 1 windows (t−W, t].
func logMost(l limit, t time.Duration) float64 { return float64(l.burst) * float64(t/l.window()+1) }

// counterMost: an interval of length t touches at most ⌊t/W⌋ + 2 aligned windows.
func counterMost(l limit, t time.Duration) float64 { return float64(l.burst) * float64(t/l.window()+2) }

// A keyedRival enforces a limit on a budget for each key. To add one is to add
// a row. A limiter that is swept in the background is swept every l.per.
type keyedRival struct {
	name string
	// allow makes a limiter and returns the method that asks it, or nil if the
	// limiter can not do that, and what ends its goroutines.
	allow func(limit) (allow func(key string) bool, stop func())
}

var keyedRivals = []keyedRival{
	{"x-time-rate+map+mutex", func(l limit) (func(string) bool, func()) {
		var mu sync.Mutex
		limiters := make(map[string]*rate.Limiter)
		return func(key string) bool {
			mu.Lock()
			r, ok := limiters[key]
			if !ok {
				r = rate.NewLimiter(rate.Every(l.interval()), l.burst)
				limiters[key] = r
			}
			mu.Unlock()
			return r.Allow()
		}, func() {}
	}},
	{"x-time-rate+sync.Map", func(l limit) (func(string) bool, func()) {
		var limiters sync.Map
		return func(key string) bool {
			r, ok := limiters.Load(key)
			if !ok {
				r, _ = limiters.LoadOrStore(key, rate.NewLimiter(rate.Every(l.interval()), l.burst))
			}
			return r.(*rate.Limiter).Allow()
		}, func() {}
	}},
	{"TokenBucket", func(l limit) (func(string) bool, func()) {
		return ours(ratelimit.TokenBucketPolicy(ratelimit.Per(float64(l.n), l.per), l.burst))
	}},
	{"LeakyBucket", func(l limit) (func(string) bool, func()) {
		return ours(ratelimit.LeakyBucketPolicy(ratelimit.Per(float64(l.n), l.per), l.burst))
	}},
	{"SlidingLog", func(l limit) (func(string) bool, func()) {
		if l == keyLimit {
			return nil, nil // it would remember each of the benchmark's calls
		}
		return ours(ratelimit.SlidingLogPolicy(l.burst, l.per))
	}},
	{"FixedCounter", func(l limit) (func(string) bool, func()) {
		return ours(ratelimit.FixedCounterPolicy(l.burst, l.per))
	}},
	{"SlidingCounter", func(l limit) (func(string) bool, func()) {
		return ours(ratelimit.SlidingCounterPolicy(l.burst, l.per))
	}},
	{"go-limiter", func(l limit) (func(string) bool, func()) {
		store := ratelimit.Must(memorystore.New(&memorystore.Config{
			Tokens: uint64(l.burst), Interval: l.per, SweepInterval: l.per, SweepMinTTL: l.per,
		}))
		ctx := context.Background()
		return func(key string) bool {
			_, _, _, ok, _ := store.Take(ctx, key)
			return ok
		}, func() { store.Close(ctx) }
	}},
	{"throttled+map", func(l limit) (func(string) bool, func()) {
		store := throttled.WrapStoreWithContext(&gcraStore{words: make(map[string]*atomic.Int64)})
		g := ratelimit.Must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
			MaxRate: throttled.PerDuration(l.n, l.per), MaxBurst: l.burst - 1,
		}))
		ctx := context.Background()
		return func(key string) bool {
			limited, _, _ := g.RateLimitCtx(ctx, key, 1)
			return !limited
		}, func() {}
	}},
	{"httprate", func(l limit) (func(string) bool, func()) {
		// What its middleware does for a request, less the headers.
		counter := httprate.NewLocalLimitCounter(l.per)
		h := httprate.NewRateLimiter(l.burst, l.per, httprate.WithLimitCounter(counter))
		var mu sync.Mutex
		return func(key string) bool {
			window := time.Now().UTC().Truncate(l.per)
			mu.Lock()
			defer mu.Unlock()
			_, used, _ := h.Status(key)
			if int(math.Round(used))+1 > l.burst {
				return false
			}
			counter.IncrementBy(key, window, 1)
			return true
		}, func() {}
	}},
	{"ulule-limiter", func(l limit) (func(string) bool, func()) {
		store := ululestore.NewStoreWithOptions(ulule.StoreOptions{Prefix: "l", CleanUpInterval: l.per})
		u := ulule.New(store, ulule.Rate{Period: l.per, Limit: int64(l.burst)})
		ctx := context.Background()
		return func(key string) bool {
			c, _ := u.Get(ctx, key)
			return !c.Reached
		}, func() {}
	}},
}

func ours(p ratelimit.Policy) (func(string) bool, func()) {
	return ratelimit.Must(ratelimit.NewKeyed[string](p)).Allow, func() {}
}

// gcraStore is a store in memory for throttled. Its own does the same, and also
// imports an LRU cache under a licence that is not permissive (MPL 2.0).
type gcraStore struct {
	mu    sync.RWMutex
	words map[string]*atomic.Int64
}

func (s *gcraStore) word(key string) *atomic.Int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.words[key]
}

func (s *gcraStore) GetWithTime(key string) (int64, time.Time, error) {
	now := time.Now()
	if w := s.word(key); w != nil {
		return w.Load(), now, nil
	}
	return -1, now, nil
}

func (s *gcraStore) SetIfNotExistsWithTTL(key string, value int64, _ time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.words[key] != nil {
		return false, nil
	}
	w := new(atomic.Int64)
	w.Store(value)
	s.words[key] = w
	return true, nil
}

func (s *gcraStore) CompareAndSwapWithTTL(key string, old, to int64, _ time.Duration) (bool, error) {
	w := s.word(key)
	return w != nil && w.CompareAndSwap(old, to), nil
}
