package ratelimit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/model"
)

const traceCentury = 100 * 365.25 * 24 * time.Hour

// traceClock is moved by hand. After moves it too, as its wake says: a sleep
// takes no real time.
type traceClock struct {
	mu      sync.Mutex
	reading time.Time
	highest time.Time
	elapsed int64 // what a limiter has to make of it
	wake    func(d time.Duration) <-chan time.Time
}

func newTraceClock(start time.Time) *traceClock {
	return &traceClock{reading: start, highest: start}
}

func (c *traceClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading
}

func (c *traceClock) After(d time.Duration) <-chan time.Time { return c.wake(d) }

// move moves the clock, which has been read since the last time.
func (c *traceClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading = c.reading.Add(d); c.reading.After(c.highest) {
		step := int64(min(c.reading.Sub(c.highest), traceCentury))
		c.elapsed += min(step, math.MaxInt64-c.elapsed)
		c.highest = c.reading
	}
}

// traceContext has a deadline on the simulated clock.
type traceContext struct {
	context.Context
	deadline time.Time
	done     chan struct{}
}

func (c *traceContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
func (c *traceContext) Done() <-chan struct{}       { return c.done }

func (c *traceContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

// traceSource is what a trace is made from: a seed, or the bytes of a fuzzer.
type traceSource interface {
	below(n int64) int64 // from 0 to n − 1
	ended() bool
}

type traceSeed struct{ *rand.Rand }

func (s traceSeed) below(n int64) int64 { return s.Int64N(n) }
func (traceSeed) ended() bool           { return false }

type traceBytes struct{ rest []byte }

// below takes one byte for small n, eight for large ones.
func (b *traceBytes) below(n int64) int64 {
	var word [8]byte
	take := 1
	if n > 256 {
		take = 8
	}
	got := copy(word[:take], b.rest)
	b.rest = b.rest[got:]
	return int64(binary.LittleEndian.Uint64(word[:]) % uint64(n))
}

func (b *traceBytes) ended() bool { return len(b.rest) == 0 }

func pick[T any](s traceSource, from ...T) T { return from[s.below(int64(len(from)))] }

// traceCase is a policy and its model.
type traceCase struct {
	policy ratelimit.Policy
	limit  int64
	model  func() *model.Model
	scale  int64 // the time in which about one unit comes free
	long   int64 // the time in which a used budget is as good as new
}

// traceRate is a rate as a program and as a model states it.
type traceRate struct {
	n     float64
	units string
	per   time.Duration
}

// traceRates are kept exactly by any bucket whose burst is small: in lowest
// terms per nanosecond no numerator is above 53,375.
var traceRates = []traceRate{
	{1, "1", time.Second},
	{3, "3", time.Second},
	{7, "7", time.Second},
	{115, "115", time.Second},
	{0.3, "0.3", time.Second},
	{60, "60", time.Minute},
	{999, "999", time.Hour},
	{2e9, "2000000000", time.Second},
	{1e9, "1000000000", time.Second},
	{1, "1", 7},
	{5, "5", 3},
	{1.5, "1.5", 1},
	{13, "13", 11 * time.Microsecond},
	{0.007, "0.007", time.Hour},
	{65535, "65535", time.Second},
	{53375, "53375", 1000003},
	{1, "1", 24 * time.Hour},
	{0.01, "0.01", 24 * time.Hour},
}

// steepRates are those whose interval refills make a bucket move the origin of
// its words within 100 years.
var steepRates = []traceRate{
	{2e9, "2000000000", time.Second},
	{1.19e11, "119000000000", time.Minute},
	{7.1e12, "7100000000000", time.Hour},
}

// inexactRates have larger numerators.
var inexactRates = []traceRate{
	{99991, "99991", time.Second},
	{53377, "53377", time.Second},
	{123456.789, "123456.789", time.Second},
	{1.9999999e9, "1999999900", time.Second},
	{1000003, "1000003", 999983},
	{12345678.9, "12345678.9", 987654321},
}

var traceWindows = []time.Duration{
	7, 8, 10, 100, 1001, time.Microsecond, 12345 * time.Nanosecond, time.Millisecond, time.Second,
	time.Second + 1, 7 * time.Second, time.Minute, time.Hour,
}

// traceStarts are wall clock readings at construction: on, before and after
// multiples of windows, and on both sides of the Unix epoch.
var traceStarts = []time.Time{
	time.Unix(0, 0),
	time.Unix(0, -1),
	time.Unix(-86400, 123456789),
	time.Date(2026, 3, 1, 12, 34, 56, 789012345, time.UTC),
	time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	time.Date(1, 1, 2, 3, 4, 5, 6, time.UTC),
	time.Date(2400, 2, 29, 23, 59, 59, 999999999, time.UTC),
}

// sinceEpoch returns nanoseconds, which do not always fit 64 bits.
func sinceEpoch(t time.Time) *big.Int {
	ns := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	return ns.Add(ns, big.NewInt(int64(t.Nanosecond())))
}

const (
	traceToken = iota
	traceInitial
	traceInterval
	traceLeaky
	traceImmediate
	traceLog
	traceFixed
	traceSliding
	traceKinds
)

var traceNames = [traceKinds]string{
	"TokenBucket", "TokenBucketInitial", "TokenBucketInterval", "LeakyBucket", "LeakyBucketImmediateFirst",
	"SlidingLog", "FixedCounter", "SlidingCounter",
}

func newTraceCase(s traceSource, kind int64, rates []traceRate, start time.Time) traceCase {
	limit := pick[int64](s, 1, 2, 3, 4, 5, 10, 20, 50)
	if kind >= traceLog {
		window := pick(s, traceWindows...)
		c := traceCase{limit: limit, scale: int64(window)/limit + 1, long: int64(window)}
		switch kind {
		case traceLog:
			c.policy = ratelimit.SlidingLogPolicy(int(limit), window)
			c.model = func() *model.Model { return model.NewSlidingLog(limit, int64(window)) }
		case traceFixed:
			c.policy = ratelimit.FixedCounterPolicy(int(limit), window)
			c.model = func() *model.Model { return model.NewFixedCounter(limit, int64(window), sinceEpoch(start)) }
		default:
			cells := pick[int64](s, 1, 2, 3, 7)
			c.policy = ratelimit.SlidingCounterPolicy(int(limit), window).WithCells(int(cells))
			c.model = func() *model.Model {
				return model.NewSlidingCounter(limit, int64(window), cells, sinceEpoch(start))
			}
		}
		return c
	}
	r := pick(s, rates...)
	if kind == traceInterval {
		r.n = math.Ceil(r.n)
		r.units = strconv.FormatFloat(r.n, 'f', -1, 64)
	}
	rate, perNano := ratelimit.Per(r.n, r.per), model.Rate(r.units, int64(r.per))
	each, _ := new(big.Rat).Inv(perNano).Float64()
	c := traceCase{limit: limit, scale: int64(each) + 1, long: int64(each*float64(limit)) + 1}
	switch kind {
	case traceLeaky, traceImmediate:
		c.policy = ratelimit.LeakyBucketPolicy(rate, int(limit))
		if kind == traceImmediate {
			c.policy = c.policy.WithImmediateFirst()
		}
		c.model = func() *model.Model { return model.NewLeakyBucket(perNano, limit, kind == traceImmediate) }
		return c
	}
	c.policy = ratelimit.TokenBucketPolicy(rate, int(limit))
	initial := limit
	if kind == traceInitial || kind == traceInterval && s.below(2) == 0 {
		initial = s.below(limit + 1)
		c.policy = c.policy.WithInitial(int(initial))
	}
	c.model = func() *model.Model { return model.NewTokenBucket(perNano, limit, initial) }
	if kind == traceInterval {
		c.policy = c.policy.WithIntervalRefill()
		c.model = func() *model.Model { return model.NewIntervalBucket(int64(r.n), int64(r.per), limit, initial) }
		c.scale = max(c.scale, int64(r.per))
		c.long = max(c.long, int64(r.per))
	}
	return c
}

// A tracer puts the same questions to a limiter and to its model.
type tracer struct {
	testing.TB
	name    string
	source  traceSource
	clock   *traceClock
	policy  traceCase
	maxWait int64

	keyed  *ratelimit.Keyed[int] // nil for a plain limiter
	keys   []ratelimit.Limiter
	models []*model.Model
	held   []traceHeld
	retry  int64 // the RetryAfter of the latest refusal
	step   int
	recent []string
	// far, where it is not 0, is a jump that a long run makes now and then.
	far int64
}

type traceHeld struct {
	key      int
	got      *ratelimit.Reservation
	want     *model.Charge
	canceled bool
}

// newTracer begins a trace of one plain limiter, or of some keys of a Keyed.
func newTracer(t testing.TB, name string, s traceSource, kind int64, rates []traceRate) *tracer {
	t.Helper()
	start := pick(s, traceStarts...)
	tr := &tracer{TB: t, source: s, clock: newTraceClock(start), policy: newTraceCase(s, kind, rates, start)}
	opts := []ratelimit.Option{ratelimit.WithClock(tr.clock)}
	tr.maxWait = math.MaxInt64
	if s.below(3) == 0 {
		tr.maxWait = s.below(2*tr.policy.long + 1)
		opts = append(opts, ratelimit.WithMaxWait(time.Duration(tr.maxWait)))
	}
	if s.below(2) == 0 {
		tr.name = fmt.Sprintf("%s, plain %v, max wait %d", name, tr.policy.policy, tr.maxWait)
		l, err := ratelimit.New(tr.policy.policy, opts...)
		if err != nil {
			t.Fatalf("%s: New: %v", tr.name, err)
		}
		tr.keys = []ratelimit.Limiter{l}
	} else {
		tr.name = fmt.Sprintf("%s, keyed %v, max wait %d", name, tr.policy.policy, tr.maxWait)
		keyedOpts := []ratelimit.KeyedOption{ratelimit.WithShards(int(1 + s.below(4)))}
		for _, o := range opts {
			keyedOpts = append(keyedOpts, o)
		}
		k, err := ratelimit.NewKeyed[int](tr.policy.policy, keyedOpts...)
		if err != nil {
			t.Fatalf("%s: NewKeyed: %v", tr.name, err)
		}
		tr.keyed = k
		for key := range 3 {
			tr.keys = append(tr.keys, k.For(key))
		}
	}
	for range tr.keys {
		tr.models = append(tr.models, tr.policy.model())
	}
	return tr
}

// note remembers what is being done, for a failure's message.
func (tr *tracer) note(format string, args ...any) {
	line := fmt.Sprintf("  step %d at %dns: ", tr.step, tr.clock.elapsed) + fmt.Sprintf(format, args...)
	if tr.recent = append(tr.recent, line); len(tr.recent) > 24 {
		tr.recent = tr.recent[1:]
	}
}

func (tr *tracer) fail(what string, now int64, got, want any) {
	tr.Helper()
	tr.Fatalf("%s: step %d, simulated time %dns: %s: got %v, want %v\nstart %v, latest steps:\n%s", tr.name, tr.step, now, what,
		got, want, tr.clock.highest.Add(-time.Duration(tr.clock.elapsed)).UTC(), strings.Join(tr.recent, "\n"))
}

func (tr *tracer) run(steps int) {
	tr.Helper()
	for tr.step = 0; tr.step < steps && !tr.source.ended() && tr.clock.elapsed < int64(2*traceCentury); tr.step++ {
		tr.move()
		tr.ask()
	}
}

// move lets time pass: none, to the edge of the next unit, or any.
func (tr *tracer) move() {
	s := tr.source
	var d int64
	switch s.below(16) {
	case 0, 1, 2, 3:
	case 4:
		d = 1
	case 5, 6:
		d = tr.retry
	case 7, 8:
		d = max(0, tr.retry-1)
	case 9, 10, 11:
		d = s.below(2 * tr.policy.scale)
	case 12:
		d = s.below(tr.policy.long + 1)
	case 13: // to the moment of a booking, or the one before
		if len(tr.held) > 0 {
			h := tr.held[s.below(int64(len(tr.held)))]
			d = max(0, h.want.At-tr.clock.elapsed-s.below(2))
		}
	case 14:
		if d = s.below(3 * tr.policy.long); tr.far > 0 {
			d = s.below(tr.far)
		}
	case 15:
		d = -s.below(tr.policy.long + 1)
	}
	tr.clock.move(time.Duration(d))
	// What a clock shows between two readings is nothing to a limiter.
	tr.keys[0].AllowN(0)
	tr.note("%+dns", d)
	tr.retry = 0
}

func (tr *tracer) ask() {
	tr.Helper()
	s := tr.source
	key := int(s.below(int64(len(tr.keys))))
	n := 1 + s.below(tr.policy.limit)
	switch s.below(12) {
	case 0:
		n = pick[int64](s, 0, 0, -1, tr.policy.limit+1, tr.policy.limit, math.MinInt, math.MaxInt)
	case 1, 2, 3, 4:
		n = 1
	case 5:
		n = tr.policy.limit
	}
	switch s.below(16) {
	case 0, 1, 2:
		tr.allow(key, n)
	case 3, 4, 5, 6:
		tr.decide(key, n)
	case 7:
		tr.decide(key, 0)
	case 8, 9:
		tr.reserve(key, n)
	case 10, 11, 12:
		tr.cancel()
	case 13:
		tr.wait(key, n)
	case 14:
		tr.take(key, n)
	case 15:
		tr.delay()
	}
}

func (tr *tracer) allow(key int, n int64) {
	tr.Helper()
	now := tr.clock.elapsed
	tr.note("key %d: AllowN(%d)", key, n)
	var got bool
	switch {
	case tr.keyed == nil:
		got = tr.keys[key].AllowN(int(n))
	default:
		got = tr.keyed.AllowN(key, int(n))
	}
	if want := tr.models[key].Allow(now, n); got != want {
		tr.fail(fmt.Sprintf("key %d: AllowN(%d)", key, n), now, got, want)
	}
}

func (tr *tracer) decide(key int, n int64) {
	tr.Helper()
	now := tr.clock.elapsed
	tr.note("key %d: Decide(%d)", key, n)
	var got ratelimit.Decision
	if tr.keyed == nil {
		got = tr.keys[key].Decide(int(n))
	} else {
		var err error
		if got, err = tr.keyed.Decide(context.Background(), key, int(n)); err != nil {
			tr.fail("error of Decide", now, err, nil)
		}
	}
	want := tr.models[key].Decide(now, n)
	tr.same(fmt.Sprintf("key %d: Decide(%d)", key, n), now, got, want)
}

func (tr *tracer) same(what string, now int64, got ratelimit.Decision, want model.Answer) {
	tr.Helper()
	full := ratelimit.Decision{
		Allowed: want.Allowed, Limit: int(tr.policy.limit), Remaining: int(want.Remaining),
		RetryAfter: time.Duration(want.RetryAfter), ResetAfter: time.Duration(want.ResetAfter), Policy: tr.policy.policy,
	}
	if got != full {
		tr.fail(what, now, traceFields(got), traceFields(full))
	}
	if want.RetryAfter != model.Never {
		tr.retry = want.RetryAfter
	}
}

// traceFields are a decision's fields, waits as nanoseconds.
func traceFields(d ratelimit.Decision) string {
	return fmt.Sprintf("{allowed %t, limit %d, remaining %d, retry %d, reset %d, policy %v, degraded %t}",
		d.Allowed, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Policy, d.Degraded)
}

// traceReasons are what a refusal's error has to match.
var traceReasons = map[model.Reason]error{
	model.ExceedsLimit: ratelimit.ErrExceedsLimit,
	model.QueueFull:    ratelimit.ErrQueueFull,
	model.TooLong:      ratelimit.ErrWaitTooLong,
}

// reason checks an error against why and all it must not match.
func (tr *tracer) reason(what string, now int64, got error, why model.Reason) {
	tr.Helper()
	if (got == nil) != (why == model.Booked) {
		tr.fail("error of "+what, now, got, why)
	}
	for reason, err := range traceReasons {
		if errors.Is(got, err) != (reason == why) {
			tr.fail("error of "+what, now, got, why)
		}
	}
}

func (tr *tracer) reserve(key int, n int64) {
	tr.Helper()
	now := tr.clock.elapsed
	tr.note("key %d: ReserveN(%d)", key, n)
	got := tr.keys[key].ReserveN(int(n))
	want, why := tr.models[key].Reserve(now, n, tr.maxWait)
	tr.booked(fmt.Sprintf("key %d: ReserveN(%d)", key, n), now, key, got, want, why)
}

func (tr *tracer) booked(what string, now int64, key int, got *ratelimit.Reservation, want *model.Charge, why model.Reason) {
	tr.Helper()
	tr.reason(what, now, got.Err(), why)
	delay := ratelimit.Never
	if why == model.Booked {
		delay = time.Duration(want.At - now)
		tr.held = append(tr.held, traceHeld{key: key, got: got, want: want})
	}
	if got.OK() != (why == model.Booked) || got.Delay() != delay {
		tr.fail("delay of "+what, now, int64(got.Delay()), int64(delay))
	}
}

// cancel mostly cancels the newest: those that lie behind it matter most.
func (tr *tracer) cancel() {
	tr.Helper()
	if len(tr.held) == 0 {
		return
	}
	i := int64(len(tr.held)) - 1
	if tr.source.below(2) == 0 {
		i = tr.source.below(i + 1)
	}
	h := &tr.held[i]
	now := tr.clock.elapsed
	tr.note("key %d: Cancel of the booking for %dns, cancelled before: %t", h.key, h.want.At, h.canceled)
	h.got.Cancel()
	tr.models[h.key].Cancel(now, h.want)
	if now < h.want.At {
		h.canceled = true
	}
	if h.canceled || tr.source.below(2) == 0 {
		tr.decide(h.key, 0)
	}
	// Some stay, to be cancelled again.
	if tr.source.below(4) != 0 {
		tr.held = slices.Delete(tr.held, int(i), int(i)+1)
	}
}

// delay looks at a booking again.
func (tr *tracer) delay() {
	tr.Helper()
	if len(tr.held) == 0 {
		return
	}
	h := tr.held[tr.source.below(int64(len(tr.held)))]
	now := tr.clock.elapsed
	if want := max(0, h.want.At-now); int64(h.got.Delay()) != want {
		tr.fail(fmt.Sprintf("key %d: later Delay of the booking for %dns", h.key, h.want.At), now, int64(h.got.Delay()), want)
	}
}

func (tr *tracer) take(key int, n int64) {
	tr.Helper()
	if tr.keyed == nil {
		tr.reserve(key, n)
		return
	}
	now := tr.clock.elapsed
	maxWait := tr.source.below(2*tr.policy.scale + 1)
	if tr.source.below(3) == 0 {
		maxWait = -maxWait
	}
	most := min(maxWait, tr.maxWait)
	if maxWait <= 0 {
		most = model.AtOnce
	}
	what := fmt.Sprintf("key %d: Take(%d, %dns)", key, n, maxWait)
	tr.note("%s", what)
	d, r, err := tr.keyed.Take(context.Background(), key, int(n), time.Duration(maxWait))
	if err != nil {
		tr.fail("error of "+what, now, err, nil)
	}
	want, charge, why := tr.models[key].Take(now, n, most)
	tr.same(what, now, d, want)
	tr.booked(what, now, key, r, charge, why)
}

// wait waits with a deadline or without one, and with a context that ends at
// some moment of the sleep or not at all. The sleep itself is the clock's.
func (tr *tracer) wait(key int, n int64) {
	tr.Helper()
	now, m := tr.clock.elapsed, tr.models[key]
	ctx := &traceContext{Context: context.Background(), done: make(chan struct{})}
	what := fmt.Sprintf("key %d: WaitN(%d)", key, n)
	most, deadline := tr.maxWait, int64(math.MaxInt64)
	// A clock that stands still since it went back is behind its deadlines.
	if tr.source.below(2) == 0 && n != 0 && tr.clock.reading.Equal(tr.clock.highest) {
		deadline = tr.source.below(tr.policy.long) - tr.policy.long/8
		ctx.deadline = tr.clock.reading.Add(time.Duration(deadline))
		most = max(-1, min(most, deadline))
		what += fmt.Sprintf(" with a deadline in %dns", deadline)
	}
	ended := tr.source.below(8) == 0
	if ended {
		close(ctx.done)
		what += ", ended before"
	}
	wanted, why := (*model.Charge)(nil), model.Booked
	if !ended {
		wanted, why = m.Reserve(now, n, most)
	}
	// The context may end when this much of the sleep has passed, or the clock
	// may ring late.
	stop := int64(-1)
	if tr.source.below(3) == 0 && !ended && why == model.Booked && wanted.At > now {
		stop = tr.source.below(min(math.MaxInt64/2, wanted.At-now) + 1)
		what += fmt.Sprintf(", ended after %dns", stop)
	}
	late := tr.source.below(4) / 3 * tr.source.below(tr.policy.scale)
	tr.clock.wake = func(d time.Duration) <-chan time.Time {
		if ctx.Err() != nil {
			return nil // asked again: the clock moved before the alarm was set
		}
		if want := tr.clock.highest.Add(time.Duration(wanted.At - now)); !tr.clock.reading.Add(d).Equal(want) && tr.clock.reading.Equal(tr.clock.highest) {
			tr.fail("the sleep of "+what, now, d, wanted.At-now)
		}
		if stop >= 0 {
			tr.clock.move(tr.clock.highest.Sub(tr.clock.reading) + time.Duration(stop))
			close(ctx.done)
			return nil
		}
		tr.clock.move(tr.clock.highest.Sub(tr.clock.reading) + d + time.Duration(late))
		ring := make(chan time.Time, 1)
		ring <- tr.clock.reading
		return ring
	}
	tr.note("%s", what)
	err := tr.keys[key].WaitN(ctx, int(n))
	after := tr.clock.elapsed
	switch {
	case ended:
		if !errors.Is(err, context.Canceled) {
			tr.fail("error of "+what, now, err, context.Canceled)
		}
	case why != model.Booked:
		tr.reason(what, now, err, why)
		// Of two equal bounds either may be named.
		if hurried := why == model.TooLong && deadline < tr.maxWait; deadline != tr.maxWait && errors.Is(err, context.DeadlineExceeded) != hurried {
			tr.fail("error of "+what+" as DeadlineExceeded", now, err, hurried)
		}
	case stop >= 0 && after < wanted.At:
		m.Cancel(after, wanted)
		if !errors.Is(err, context.Canceled) {
			tr.fail("error of "+what, now, err, context.Canceled)
		}
	case err != nil:
		tr.fail("error of "+what, now, err, nil)
	case after < wanted.At:
		tr.fail("end of "+what, now, after, wanted.At)
	}
}

// traceSeeds returns how many traces of how many steps each algorithm gets.
func traceSeeds() (traces uint64, steps int) {
	switch {
	case os.Getenv("RATELIMIT_LONG") != "":
		return 3000, 1000
	case testing.Short():
		return 10, 150
	}
	return 30, 300
}

// TestTraceModels asks limiters and models the same random questions: every
// answer agrees. RATELIMIT_LONG=1 asks many more.
func TestTraceModels(t *testing.T) {
	traces, steps := traceSeeds()
	for kind, name := range traceNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range traces {
				s := traceSeed{rand.New(rand.NewPCG(seed, uint64(kind)))}
				newTracer(t, fmt.Sprintf("seed %d", seed), s, int64(kind), traceRates).run(steps)
			}
		})
	}
}

// TestTraceLongUptime lets a limiter run for nearly 100 years, in jumps of up
// to some months: a bucket has to move the origin of its words again and again,
// also under bookings, and its answers stay exact.
func TestTraceLongUptime(t *testing.T) {
	traces := uint64(20)
	if testing.Short() {
		traces = 4
	}
	for _, kind := range []int64{traceToken, traceInitial, traceInterval, traceLeaky, traceImmediate} {
		t.Run(traceNames[kind], func(t *testing.T) {
			t.Parallel()
			for seed := range traces {
				s := traceSeed{rand.New(rand.NewPCG(seed, 100+uint64(kind)))}
				rates := traceRates
				if kind == traceInterval {
					rates = steepRates
				}
				tr := newTracer(t, fmt.Sprintf("seed %d", seed), s, kind, rates)
				tr.far = int64(pick[time.Duration](s, 5*24*time.Hour, 90*24*time.Hour, 3*365*24*time.Hour))
				for i := 0; i < 30 && tr.clock.elapsed < int64(traceCentury)-tr.far; i++ {
					tr.run(50)
					// Years pass, and the bucket has been asked on the way.
					tr.clock.move(tr.clock.highest.Sub(tr.clock.reading) + traceCentury/31)
					tr.decide(0, 1)
				}
			}
		})
	}
}

// inexactCases are policies whose buckets may come late by a nanosecond's
// refill: rates with a numerator above 53,375, and bursts of many years.
func inexactCases() (cases []traceCase) {
	add := func(r traceRate, limit int64) {
		if int64(int(limit)) != limit {
			return // no limit where an int has 32 bits
		}
		rate, perNano := ratelimit.Per(r.n, r.per), model.Rate(r.units, int64(r.per))
		each, _ := new(big.Rat).Inv(perNano).Float64()
		c := traceCase{limit: limit, scale: int64(each) + 1, long: int64(each*float64(limit)) + 1}
		token, leaky, immediate := c, c, c
		token.policy = ratelimit.TokenBucketPolicy(rate, int(limit))
		token.model = func() *model.Model { return model.NewTokenBucket(perNano, limit, limit) }
		leaky.policy = ratelimit.LeakyBucketPolicy(rate, int(limit))
		leaky.model = func() *model.Model { return model.NewLeakyBucket(perNano, limit, false) }
		immediate.policy = leaky.policy.WithImmediateFirst()
		immediate.model = func() *model.Model { return model.NewLeakyBucket(perNano, limit, true) }
		cases = append(cases, token, leaky, immediate)
	}
	for _, r := range inexactRates {
		add(r, 1)
		add(r, 3)
		add(r, 50)
	}
	add(traceRate{115, "115", time.Second}, 3e11)
	add(traceRate{7, "7", time.Second}, 2e10)
	add(traceRate{1e9 - 1, "999999999", time.Second}, 3e18)
	return cases
}

// TestTraceInexact asks buckets that are documented to be late at times: each
// answer is the model's for this moment or for the one a nanosecond before,
// never one for a later moment, and lateness does not add up. The model follows
// what the limiter has admitted.
func TestTraceInexact(t *testing.T) {
	_, steps := traceSeeds()
	for i, c := range inexactCases() {
		for seed := range uint64(2) {
			s := traceSeed{rand.New(rand.NewPCG(seed, uint64(1000+i)))}
			clock := newTraceClock(pick[time.Time](s, traceStarts...))
			tr := &tracer{TB: t, source: s, clock: clock, policy: c, maxWait: math.MaxInt64}
			tr.name = fmt.Sprintf("seed %d, inexact %v", seed, c.policy)
			l, err := ratelimit.New(c.policy, ratelimit.WithClock(clock))
			if err != nil {
				t.Fatalf("%s: New: %v", tr.name, err)
			}
			tr.keys, tr.models = []ratelimit.Limiter{l}, []*model.Model{c.model()}
			for tr.step = 0; tr.step < steps; tr.step++ {
				if tr.move(); clock.elapsed > int64(traceCentury) {
					break
				}
				tr.askInexact()
			}
		}
	}
}

func (tr *tracer) askInexact() {
	tr.Helper()
	s, m, now := tr.source, tr.models[0], tr.clock.elapsed
	n := 1 + s.below(tr.policy.limit)
	exact, before := m.Look(now, n), m.Look(now-1, n)
	switch s.below(8) {
	case 0: // book; far bookings of bursts of years would leave the timeline
		if tr.policy.long > int64(time.Hour) {
			return
		}
		what := fmt.Sprintf("ReserveN(%d)", n)
		tr.note("%s", what)
		want, full := m.Moment(now, n)
		r := tr.keys[0].ReserveN(int(n))
		if full != !r.OK() && (full || before.Allowed) {
			tr.fail(what, now, r.Err(), full)
		}
		if !r.OK() {
			return
		}
		delay := int64(r.Delay())
		if delay != want-now && delay != want-now+1 {
			tr.fail("delay of "+what, now, delay, want-now)
		}
		tr.held = append(tr.held, traceHeld{got: r, want: m.Book(now, now+delay, n)})
	case 1:
		if len(tr.held) > 0 {
			h := tr.held[len(tr.held)-1]
			tr.held = tr.held[:len(tr.held)-1]
			tr.note("Cancel of the booking for %dns", h.want.At)
			h.got.Cancel()
			m.Cancel(now, h.want)
		}
	default:
		what := fmt.Sprintf("Decide(%d)", n)
		tr.note("%s", what)
		got := tr.keys[0].Decide(int(n))
		if got.Allowed && !exact.Allowed || !got.Allowed && before.Allowed {
			tr.fail(what, now, traceFields(got), exact)
		}
		if got.Allowed {
			m.Book(now, now, n)
		}
		after, earlier := m.Look(now, 0), m.Look(now-1, 0)
		late := int64(got.ResetAfter) - after.ResetAfter
		if late < 0 || late > 1 || int64(got.Remaining) > after.Remaining || int64(got.Remaining) < earlier.Remaining {
			tr.fail(what, now, traceFields(got), after)
		}
		if !got.Allowed {
			if late := int64(got.RetryAfter) - exact.RetryAfter; late < 0 || late > 1 {
				tr.fail(what, now, traceFields(got), exact)
			}
			tr.retry = int64(got.RetryAfter)
		}
	}
}

// TestModelTakeFromLeakyBucket: a Take that is refused succeeds after its
// RetryAfter and not before, or has none: there must be room, and the units
// must drain within the wait.
func TestModelTakeFromLeakyBucket(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	p := ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 4)
	for name, c := range map[string]struct {
		policy  ratelimit.Policy
		filled  int
		n       int
		maxWait time.Duration
		want    time.Duration
	}{
		"empty, never drains in time":   {p, 0, 4, 1 * second, ratelimit.Never},
		"room, but never in time":       {p, 2, 2, 900 * ms, ratelimit.Never},
		"room, later in time":           {p, 2, 2, 1500 * ms, 500 * ms},
		"full, room comes first":        {p, 4, 1, 600 * ms, 1900 * ms},
		"full, room comes last":         {p, 4, 1, 5 * second, 500 * ms},
		"immediate, start of last slot": {p.WithImmediateFirst(), 4, 2, 500 * ms, 2 * second},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newTraceClock(traceStarts[3])
			k, err := ratelimit.NewKeyed[int](c.policy, ratelimit.WithClock(clock))
			if err != nil {
				t.Fatal(err)
			}
			k.AllowN(1, c.filled)
			d, r, err := k.Take(context.Background(), 1, c.n, c.maxWait)
			if err != nil || r.OK() || d.RetryAfter != c.want {
				t.Fatalf("filled with %d at 0s: Take(%d, %v): got OK %t, retry %v, error %v, want a refusal, retry %v",
					c.filled, c.n, c.maxWait, r.OK(), d.RetryAfter, err, c.want)
			}
			if c.want == ratelimit.Never {
				return
			}
			clock.move(c.want - 1)
			if _, r, _ := k.Take(context.Background(), 1, c.n, c.maxWait); r.OK() {
				t.Fatalf("Take(%d, %v) a nanosecond before %v: got OK, want a refusal", c.n, c.maxWait, c.want)
			}
			clock.move(1)
			if _, r, _ := k.Take(context.Background(), 1, c.n, c.maxWait); !r.OK() {
				t.Fatalf("Take(%d, %v) after %v: got %v, want OK", c.n, c.maxWait, c.want, r.Err())
			}
		})
	}
}

// TestModelCancelSlidingCounter: when the newest booking is cancelled after an
// earlier one, the state before it is back, less what the earlier gave back.
// Nothing is left that keeps the budget waiting for the cancelled moment.
func TestModelCancelSlidingCounter(t *testing.T) {
	clock := newTraceClock(time.Unix(0, 0))
	l, err := ratelimit.New(ratelimit.SlidingCounterPolicy(2, 10*time.Second), ratelimit.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	l.AllowN(2)
	first, newest := l.ReserveN(1), l.ReserveN(1)
	if first.Delay() != 15*time.Second || newest.Delay() != 20*time.Second {
		t.Fatalf("step 1 at 0s: got bookings for %v and %v, want 15s and 20s", first.Delay(), newest.Delay())
	}
	first.Cancel()
	newest.Cancel()
	// Half of the two units of 0 s is still inside at 15 s, so that one fits.
	if got, want := l.Decide(1).RetryAfter, 15*time.Second; got != want {
		t.Fatalf("step 4 at 0s: Decide(1) after both cancels: got retry %v, want %v", got, want)
	}
}
