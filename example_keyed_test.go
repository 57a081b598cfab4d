package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/seed4f92381c/ratelimit"
)

func ExampleNewKeyedFunc() {
	plans := map[string]ratelimit.Policy{
		"free":  ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 2),
		"staff": ratelimit.Unlimited(),
	}
	planOf := func(tenant string) ratelimit.Policy {
		if plan, ok := plans[tenant]; ok {
			return plan
		}
		return ratelimit.Blocked()
	}
	tenants := ratelimit.Must(ratelimit.NewKeyedFunc(planOf, ratelimit.WithClock(clock.NewMock())))
	for _, tenant := range []string{"free", "staff", "unknown"} {
		fmt.Println(tenant, tenants.AllowN(tenant, 2), tenants.Allow(tenant))
	}
	// Output:
	// free true false
	// staff true true
	// unknown false false
}

func ExampleWithAlso() {
	second := ratelimit.SlidingLogPolicy(2, time.Second)
	hour := ratelimit.SlidingLogPolicy(3, time.Hour)
	mock := clock.NewMock()
	users := ratelimit.Must(ratelimit.NewKeyed[string](second, ratelimit.WithAlso(hour), ratelimit.WithClock(mock)))
	fmt.Println(users.Allow("ann"), users.Allow("ann"), users.Allow("ann"))
	mock.Add(time.Second)
	fmt.Println(users.Allow("ann"), users.Allow("ann"))
	// Output:
	// true true false
	// true false
}

func ExampleWithMaxKeys() {
	policy := ratelimit.FixedCounterPolicy(2, time.Minute)
	users := ratelimit.Must(ratelimit.NewKeyed[int](policy, ratelimit.WithMaxKeys(10),
		ratelimit.WithOverflow(ratelimit.FixedCounterPolicy(5, time.Minute)), ratelimit.WithClock(clock.NewMock())))
	admitted := 0
	for user := range 1000 {
		if users.Allow(user) {
			admitted++
		}
	}
	fmt.Println(admitted, "admitted,", users.Len(), "keys held")
	// Output: 15 admitted, 10 keys held
}

func ExampleWithOverflow() {
	policy := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1)
	users := ratelimit.Must(ratelimit.NewKeyed[string](policy, ratelimit.WithMaxKeys(1),
		ratelimit.WithOverflow(ratelimit.Blocked()), ratelimit.WithClock(clock.NewMock())))
	fmt.Println(users.Allow("ann"), users.Allow("bob"))
	// Output: true false
}

func ExampleKeyed_Stats() {
	policy := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1)
	users := ratelimit.Must(ratelimit.NewKeyed[string](policy, ratelimit.WithClock(clock.NewMock())))
	for _, user := range []string{"ann", "bob", "ann"} {
		users.Allow(user)
	}
	fmt.Printf("%+v\n", users.Stats())
	// Output: {Allowed:2 Refused:1 Forgotten:0 Overflowed:0 Keys:2}
}

func ExampleKeyed_SetPolicy() {
	mock := clock.NewMock()
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 100), ratelimit.WithClock(mock)))
	users.AllowN("ann", 100)
	mock.Add(10 * time.Second) // earns 10
	err := users.SetPolicy(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 100))
	mock.Add(time.Second) // earns 10 more
	fmt.Println(err, users.AllowN("ann", 20), users.Allow("ann"))
	// Output: <nil> true false
}

func ExampleTokenBucket_SetPolicy() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(1), 10, ratelimit.WithClock(clock.NewMock())))
	err := limiter.SetPolicy(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 20))
	fmt.Println(err, limiter.Decide(0).Remaining) // the tokens of before, of a larger bucket
	fmt.Println(limiter.SetPolicy(ratelimit.FixedCounterPolicy(20, time.Minute)))
	// Output:
	// <nil> 10
	// ratelimit: invalid policy: algorithm = fixed-counter: must stay token-bucket
}

func ExampleNewCoarseClock() {
	coarse, err := ratelimit.NewCoarseClock(time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer coarse.Stop()
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerHour(1), 2, ratelimit.WithClock(coarse)))
	fmt.Println(limiter.Allow(), limiter.Allow(), limiter.Allow())
	// Output: true true false
}
