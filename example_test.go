package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/seed4f92381c/ratelimit"
)

// The examples run on a mock clock, which stands still until it is moved. A
// program leaves WithClock out and gets the system's clock.

func Example() {
	mock := clock.NewMock()
	limiter, err := ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 3, ratelimit.WithClock(mock))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		fmt.Print(limiter.Allow(), " ")
	}
	mock.Add(100 * time.Millisecond)
	fmt.Println(limiter.Allow())
	// Output: true true true false true
}

func ExampleNew() {
	policy, err := ratelimit.ParsePolicy("sliding-log limit=100 window=1m")
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := ratelimit.New(policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%T %v\n", limiter, limiter.AllowN(100))

	_, err = ratelimit.New(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(0), 10))
	fmt.Println(err)
	// Output:
	// *ratelimit.SlidingLog true
	// ratelimit: invalid policy: rate = 0/1s: must be a finite number of units above 0
}

func ExampleMust() {
	// Where a wrong policy is a mistake in the program, as in a package-level
	// variable.
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 20))
	fmt.Println(limiter.Allow())
	// Output: true
}

func ExampleAll() {
	mock := ratelimit.WithClock(clock.NewMock())
	user := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 2, mock))
	endpoint := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(500), 100, mock))
	both := ratelimit.All(user, endpoint)

	fmt.Println(both.Allow(), both.Allow(), both.Allow())
	// The third request was the user's fault, and cost the endpoint nothing.
	fmt.Println("left at the endpoint:", endpoint.Decide(0).Remaining)
	// Output:
	// true true false
	// left at the endpoint: 98
}

func ExampleNewTokenBucket() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(2), 4, ratelimit.WithClock(mock)))
	for _, at := range []time.Duration{0, 500 * time.Millisecond, time.Second, 10 * time.Second} {
		mock.Set(time.Unix(0, 0).Add(at))
		fmt.Println(at, exampleAdmitted(limiter, 6))
	}
	// Output:
	// 0s 4 of 6
	// 500ms 1 of 6
	// 1s 1 of 6
	// 10s 4 of 6
}

func ExampleNewLeakyBucket() {
	// A queue of four that lets one go every half second.
	queue := ratelimit.Must(ratelimit.NewLeakyBucket(ratelimit.PerSecond(2), 4, ratelimit.WithClock(clock.NewMock())))
	for range 6 {
		if r := queue.Reserve(); r.OK() {
			fmt.Println("leaves after", r.Delay())
		} else {
			fmt.Println(r.Err())
		}
	}
	// Output:
	// leaves after 500ms
	// leaves after 1s
	// leaves after 1.5s
	// leaves after 2s
	// ratelimit: queue is full
	// ratelimit: queue is full
}

func ExampleNewSlidingLog() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewSlidingLog(3, time.Minute, ratelimit.WithClock(mock)))
	fmt.Println(exampleAdmitted(limiter, 2))
	mock.Add(59 * time.Second)
	fmt.Println(exampleAdmitted(limiter, 2))
	mock.Add(time.Second) // the first two have left the window
	fmt.Println(exampleAdmitted(limiter, 3))
	// Output:
	// 2 of 2
	// 1 of 2
	// 2 of 3
}

func ExampleNewFixedCounter() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewFixedCounter(60, time.Minute, ratelimit.WithClock(mock)))
	mock.Add(59900 * time.Millisecond)
	fmt.Println(exampleAdmitted(limiter, 60))
	mock.Add(200 * time.Millisecond) // a new window
	fmt.Println(exampleAdmitted(limiter, 60))
	// Output:
	// 60 of 60
	// 60 of 60
}

func ExampleNewSlidingCounter() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewSlidingCounter(60, time.Minute, ratelimit.WithClock(mock)))
	fmt.Println(exampleAdmitted(limiter, 60))
	mock.Add(75 * time.Second) // three quarters of the first minute still count: 45
	fmt.Println(exampleAdmitted(limiter, 60))
	// Output:
	// 60 of 60
	// 15 of 60
}

// exampleAdmitted makes n calls at once.
func exampleAdmitted(limiter ratelimit.Limiter, n int) string {
	count := 0
	for range n {
		if limiter.Allow() {
			count++
		}
	}
	return fmt.Sprintf("%d of %d", count, n)
}

func ExampleTokenBucket_Decide() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 20, ratelimit.WithClock(clock.NewMock())))
	for _, n := range []int{15, 15, 0, 21} {
		d := limiter.Decide(n)
		if d.RetryAfter == ratelimit.Never {
			fmt.Printf("%d: never, the limit is %d\n", n, d.Limit)
			continue
		}
		fmt.Printf("%d: %t, %d left, retry after %v, as new after %v\n", n, d.Allowed, d.Remaining, d.RetryAfter, d.ResetAfter)
	}
	// Output:
	// 15: true, 5 left, retry after 0s, as new after 1.5s
	// 15: false, 5 left, retry after 1s, as new after 1.5s
	// 0: true, 5 left, retry after 0s, as new after 1.5s
	// 21: never, the limit is 20
}

func ExampleTokenBucket_AllowN() {
	// A token can be anything that is counted, such as a byte.
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(1<<20), 4096, ratelimit.WithClock(clock.NewMock())))
	fmt.Println(limiter.AllowN(4000), limiter.AllowN(100), limiter.AllowN(96))
	// Output: true false true
}

func ExampleTokenBucket_Reserve() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.Every(time.Second), 1, ratelimit.WithClock(mock)))
	first, second := limiter.Reserve(), limiter.Reserve()
	fmt.Println(first.Delay(), second.Delay())

	mock.Add(400 * time.Millisecond)
	fmt.Println(second.Delay())
	// Output:
	// 0s 1s
	// 600ms
}

func ExampleTokenBucket_ReserveN() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 20, ratelimit.WithClock(clock.NewMock())))
	fmt.Println(limiter.ReserveN(20).Delay(), limiter.ReserveN(15).Delay())

	r := limiter.ReserveN(21) // more than it can ever hold
	fmt.Println(r.OK(), errors.Is(r.Err(), ratelimit.ErrExceedsLimit))
	// Output:
	// 0s 1.5s
	// false true
}

func ExampleTokenBucket_Wait() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.Every(time.Minute), 1, ratelimit.WithClock(mock)))
	start := mock.Now()
	done := make(chan error)
	go func() {
		for range 3 {
			done <- limiter.Wait(context.Background())
		}
		close(done)
	}()
	for waiting := true; waiting; {
		select {
		case err, open := <-done:
			if waiting = open; open {
				fmt.Println("err:", err)
			}
		default:
			mock.Add(10 * time.Second) // rings who sleeps until then
		}
	}
	fmt.Println("two minutes passed:", mock.Since(start) >= 2*time.Minute)
	// Output:
	// err: <nil>
	// err: <nil>
	// err: <nil>
	// two minutes passed: true
}

func ExampleTokenBucket_WaitN() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.Every(time.Hour), 1))
	limiter.Allow()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := limiter.WaitN(ctx, 1) // at once: an hour does not fit into a second
	fmt.Println(errors.Is(err, ratelimit.ErrWaitTooLong), errors.Is(err, context.DeadlineExceeded))

	err = limiter.WaitN(ctx, 2)
	fmt.Println(errors.Is(err, ratelimit.ErrExceedsLimit))
	// Output:
	// true true
	// true
}

func ExampleReservation_Cancel() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.Every(time.Second), 1, ratelimit.WithClock(mock)))
	limiter.Allow()

	r := limiter.Reserve()
	fmt.Println(r.Delay())
	r.Cancel() // the work is not needed any more
	fmt.Println(limiter.Reserve().Delay())
	// Output:
	// 1s
	// 1s
}

func ExampleReservation_Settle() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(100), 1000, ratelimit.WithClock(clock.NewMock())))

	// The cost is known only afterwards: book an estimate, then correct it.
	r := limiter.ReserveN(500)
	r.Settle(120)
	fmt.Println(limiter.Decide(0).Remaining)

	// More than was booked becomes a debt that later work waits for.
	r = limiter.ReserveN(800)
	r.Settle(1080)
	fmt.Println(limiter.Reserve().Delay())
	// Output:
	// 880
	// 2.01s
}

func ExampleReservation_Err() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(1), 5))
	fmt.Println(limiter.ReserveN(5).Err())
	fmt.Println(limiter.ReserveN(6).Err())
	// Output:
	// <nil>
	// ratelimit: n exceeds the limit: n = 6: must be from 0 to 5
}

func ExampleNewReservation() {
	// For a limiter of one's own, here one that lets everything go after a second.
	mock := clock.NewMock()
	r := ratelimit.NewReservation(mock, time.Second, nil, func(actual int) { fmt.Println("it cost", actual) })
	fmt.Println(r.OK(), r.Delay())
	mock.Add(time.Second)
	fmt.Println(r.Delay())
	r.Settle(3)

	refused := ratelimit.NewReservation(mock, 0, ratelimit.ErrQueueFull, nil)
	fmt.Println(refused.OK(), refused.Err(), refused.Delay() == ratelimit.Never)
	// Output:
	// true 1s
	// 0s
	// it cost 3
	// false ratelimit: queue is full true
}

func ExampleNewKeyed() {
	users, err := ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 2),
		ratelimit.WithClock(clock.NewMock()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(users.Allow("ann"), users.Allow("ann"), users.Allow("ann"))
	fmt.Println(users.Allow("bob"))
	// Output:
	// true true false
	// true
}

func ExampleNewKeyed_structKey() {
	// A key can be any comparable type without interfaces. A struct needs no
	// separator, and so cannot be confused by one.
	type route struct{ user, path string }
	routes := ratelimit.Must(ratelimit.NewKeyed[route](ratelimit.FixedCounterPolicy(1, time.Minute)))
	fmt.Println(routes.Allow(route{"ann", "/a"}), routes.Allow(route{"ann", "/b"}))

	_, err := ratelimit.NewKeyed[any](ratelimit.Unlimited())
	fmt.Println(err)
	// Output:
	// true true
	// ratelimit: invalid policy: key type = interface {}: must not contain interfaces
}

func ExampleKeyed_AllowN() {
	users := ratelimit.Must(ratelimit.NewKeyed[int](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 10),
		ratelimit.WithClock(clock.NewMock())))
	fmt.Println(users.AllowN(42, 8), users.AllowN(42, 8), users.AllowN(42, 2))
	// Output: true false true
}

func ExampleKeyed_Decide() {
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20),
		ratelimit.WithClock(clock.NewMock())))
	d, err := users.Decide(context.Background(), "ann", 20)
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter, err)
	d, err = users.Decide(context.Background(), "ann", 5)
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter, err)
	// Output:
	// true 0 0s <nil>
	// false 0 500ms <nil>
}

func ExampleKeyed_Take() {
	tenants := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 10),
		ratelimit.WithClock(clock.NewMock())))
	ctx := context.Background()

	// Ten units, and up to a second of patience for each next ten.
	for range 3 {
		d, r, err := tenants.Take(ctx, "acme", 10, time.Second)
		if err != nil {
			fmt.Println(err)
			return
		}
		if !d.Allowed {
			fmt.Println("refused, retry after", d.RetryAfter)
			continue
		}
		fmt.Println("go ahead in", r.Delay())
	}
	// Output:
	// go ahead in 0s
	// go ahead in 1s
	// refused, retry after 1s
}

func ExampleKeyed_Take_settle() {
	tenants := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerMinute(6000), 1000),
		ratelimit.WithClock(clock.NewMock())))

	// Charge an estimate now or not at all, and correct it when the cost is known.
	d, r, err := tenants.Take(context.Background(), "acme", 500, 0)
	if err != nil || !d.Allowed {
		fmt.Println(d, err)
		return
	}
	r.Settle(120)
	fmt.Println("left:", tenants.For("acme").Decide(0).Remaining)
	// Output: left: 880
}

func ExampleKeyed_For() {
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 1),
		ratelimit.WithClock(clock.NewMock())))
	ann := users.For("ann") // a Limiter, for All or for code that knows no keys
	fmt.Println(ann.Allow(), users.Allow("ann"), users.Allow("bob"))
	// Output: true false true
}

func ExampleKeyed_Reserve() {
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(4), 10),
		ratelimit.WithClock(clock.NewMock())))
	fmt.Println(users.Reserve("ann").Delay(), users.ReserveN("ann", 3).Delay(), users.Reserve("bob").Delay())
	// Output: 250ms 1s 250ms
}

func ExampleKeyed_Wait() {
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.Every(time.Hour), 1)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(users.Wait(ctx, "ann"))
	fmt.Println(users.Wait(ctx, "ann"))
	fmt.Println(users.WaitN(ctx, "bob", 1))
	// Output:
	// <nil>
	// ratelimit: wait would be too long: it would end after the context's deadline
	// <nil>
}

func ExampleKeyed_Reset() {
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.FixedCounterPolicy(1, time.Hour),
		ratelimit.WithClock(clock.NewMock())))
	fmt.Println(users.Allow("ann"), users.Allow("ann"), users.Len())
	users.Reset("ann")
	fmt.Println(users.Len(), users.Allow("ann"))
	// Output:
	// true false 1
	// 0 true
}

func ExampleTokenBucketPolicy() {
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20)
	fmt.Println(p)
	fmt.Println(p.Algorithm(), p.Rate(), p.Limit())
	fmt.Println(p == ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20))
	// Output:
	// token-bucket rate=10/1s burst=20
	// token-bucket 10/1s 20
	// true
}

func ExampleLeakyBucketPolicy() {
	fmt.Println(ratelimit.LeakyBucketPolicy(ratelimit.PerMinute(100), 5))
	// Output: leaky-bucket rate=100/1m0s capacity=5
}

func ExampleSlidingLogPolicy() {
	p := ratelimit.SlidingLogPolicy(100, time.Minute)
	fmt.Println(p)
	fmt.Println(p.Limit(), p.Window())
	// Output:
	// sliding-log limit=100 window=1m0s
	// 100 1m0s
}

func ExampleFixedCounterPolicy() {
	fmt.Println(ratelimit.FixedCounterPolicy(5000, time.Hour))
	// Output: fixed-counter limit=5000 window=1h0m0s
}

func ExampleSlidingCounterPolicy() {
	fmt.Println(ratelimit.SlidingCounterPolicy(100, time.Minute))
	// Output: sliding-counter limit=100 window=1m0s
}

func ExamplePolicy_WithCells() {
	p := ratelimit.SlidingCounterPolicy(100, time.Minute).WithCells(60) // one for each second
	fmt.Println(p)
	fmt.Println(p.Cells())
	// Output:
	// sliding-counter limit=100 window=1m0s cells=60
	// 60
}

func ExamplePolicy_WithInitial() {
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20).WithInitial(0)
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(mock)))
	fmt.Println(limiter.Allow())
	mock.Add(100 * time.Millisecond)
	fmt.Println(limiter.Allow())
	// Output:
	// false
	// true
}

func ExamplePolicy_WithIntervalRefill() {
	p := ratelimit.TokenBucketPolicy(ratelimit.Per(5, time.Minute), 5).WithIntervalRefill()
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(mock)))
	fmt.Println(exampleAdmitted(limiter, 6))
	mock.Add(59 * time.Second)
	fmt.Println(exampleAdmitted(limiter, 6))
	mock.Add(time.Second) // all five at once
	fmt.Println(exampleAdmitted(limiter, 6))
	// Output:
	// 5 of 6
	// 0 of 6
	// 5 of 6
}

func ExamplePolicy_WithImmediateFirst() {
	p := ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 4).WithImmediateFirst()
	limiter := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(clock.NewMock())))
	for range 3 {
		fmt.Println(limiter.Reserve().Delay())
	}
	// Output:
	// 0s
	// 500ms
	// 1s
}

func ExamplePolicy_Validate() {
	for _, p := range []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20),
		ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 0),
		ratelimit.SlidingLogPolicy(10, 0),
		{},
	} {
		fmt.Println(p.Validate())
	}
	// Output:
	// <nil>
	// ratelimit: invalid policy: burst = 0: must be at least 1
	// ratelimit: invalid policy: window = 0s: must be from 1ns to 100 years
	// ratelimit: invalid policy: algorithm = none: must be set: the zero Policy limits nothing
}

func ExamplePolicy_MarshalText() {
	// A policy is text in JSON and in all that knows encoding.TextMarshaler.
	type plan struct {
		Name  string
		Limit ratelimit.Policy
	}
	out, err := json.Marshal(plan{"free", ratelimit.TokenBucketPolicy(ratelimit.PerMinute(100), 20)})
	fmt.Println(string(out), err)
	// Output: {"Name":"free","Limit":"token-bucket rate=100/1m0s burst=20"} <nil>
}

func ExamplePolicy_UnmarshalText() {
	var plan struct {
		Name  string
		Limit ratelimit.Policy
	}
	err := json.Unmarshal([]byte(`{"Name": "free", "Limit": "100/m"}`), &plan)
	fmt.Println(plan.Limit, err)
	// Output: token-bucket rate=100/1m0s burst=100 <nil>
}

func ExampleParsePolicy() {
	for _, text := range []string{
		"token-bucket rate=10/1s burst=20",
		"10/s",
		"sliding-counter limit=100 window=1m cells=6",
		"token-bucket rate=10/1s bust=20",
	} {
		p, err := ratelimit.ParsePolicy(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p)
	}
	// Output:
	// token-bucket rate=10/1s burst=20
	// token-bucket rate=10/1s burst=10
	// sliding-counter limit=100 window=1m0s cells=6
	// ratelimit: invalid policy: word "bust=20" at column 25: not a field of token-bucket
}

func ExampleUnlimited() {
	limiter := ratelimit.Must(ratelimit.New(ratelimit.Unlimited()))
	fmt.Println(limiter.AllowN(1_000_000_000), limiter.Reserve().Delay())
	// Output: true 0s
}

func ExampleBlocked() {
	limiter := ratelimit.Must(ratelimit.New(ratelimit.Blocked()))
	d := limiter.Decide(1)
	fmt.Println(d.Allowed, d.RetryAfter == ratelimit.Never)
	// Output: false true
}

func ExamplePer() {
	fmt.Println(ratelimit.Per(500, 10*time.Second))
	// Output: 500/10s
}

func ExamplePerSecond() {
	fmt.Println(ratelimit.PerSecond(0.3)) // exactly three in ten seconds
	// Output: 0.3/1s
}

func ExamplePerMinute() {
	fmt.Println(ratelimit.PerMinute(1000))
	// Output: 1000/1m0s
}

func ExamplePerHour() {
	fmt.Println(ratelimit.PerHour(5000))
	// Output: 5000/1h0m0s
}

func ExampleEvery() {
	fmt.Println(ratelimit.Every(50 * time.Millisecond))
	// Output: 1/50ms
}

func ExampleRate_Ratio() {
	// Rates are equal as they are given, and alike as they are kept.
	a, b := ratelimit.PerSecond(1), ratelimit.PerMinute(60)
	fmt.Println(a == b)
	fmt.Println(a.Ratio())
	fmt.Println(b.Ratio())
	// Output:
	// false
	// 1 1000000000
	// 1 1000000000
}

func ExampleWithClock() {
	mock := clock.NewMock()
	limiter := ratelimit.Must(ratelimit.NewFixedCounter(1, 24*time.Hour, ratelimit.WithClock(mock)))
	fmt.Println(limiter.Allow(), limiter.Allow())
	mock.Add(24 * time.Hour)
	fmt.Println(limiter.Allow())
	// Output:
	// true false
	// true
}

func ExampleSystemClock() {
	// It is the default, so this option changes nothing.
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 20,
		ratelimit.WithClock(ratelimit.SystemClock())))
	fmt.Println(limiter.Allow())
	// Output: true
}

func ExampleWithMaxWait() {
	limiter := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(1), 1,
		ratelimit.WithClock(clock.NewMock()), ratelimit.WithMaxWait(2*time.Second)))
	for range 4 {
		r := limiter.Reserve()
		fmt.Println(r.OK(), r.Err())
	}
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
	// false ratelimit: wait would be too long
}

func ExampleWithShards() {
	// Fewer shards for a limiter that few goroutines use.
	users := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 20),
		ratelimit.WithShards(1)))
	fmt.Println(users.Allow("ann"))
	// Output: true
}
