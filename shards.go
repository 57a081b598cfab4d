package ratelimit

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/seed4f92381c/ratelimit/internal/table"
)

// maxShards bounds WithShards.
const maxShards = 1 << 16

// shards is the budgets of all keys under one algorithm: a table in parts, each
// under its own mutex. A key's state stands in the table only while it differs
// from the zero state, that of a key never seen.
type shards[K comparable, S any, A algorithm[S]] struct {
	changing sync.Mutex     // held by setPolicy
	hashOf   func(K) uint64 // seeded for each limiter, so that nobody can aim at a shard
	shift    uint8
	parts    []shard[K, S, A]

	// fresh makes the state of a key that is not in the table, where that is
	// not the zero state; else it is nil. It is called with no lock held.
	fresh func(K) S

	// The bound on keys; 0 is none. Then held counts the keys of all shards and
	// overflow is the budget of those beyond.
	maxKeys  int64
	held     atomic.Int64
	overflow budget
	follows  bool          // whether overflow has the policy of the keys
	next     atomic.Uint32 // the shard to sweep for room
}

type shard[K comparable, S any, A algorithm[S]] struct {
	lockOrder

	mu      sync.Mutex
	rule    Policy
	table   table.Table[K, S]
	alg     A
	now     int64 // the latest reading: callers get the lock in another order than their readings
	horizon int64
	voids   voids[K]
	calls   uint8
	stats   Stats    // but Keys
	_       [64]byte // keeps the locks of two shards off one cache line
}

func newShards[K comparable, S any, A algorithm[S]](alg A, p Policy, time timeline, o options) *shards[K, S, A] {
	n := o.shards
	if n == 0 {
		n = min(64*runtime.GOMAXPROCS(0), maxShards)
	}
	width := bits.Len(uint(n - 1))
	t := &shards[K, S, A]{
		hashOf: newHash[K](),
		shift:  uint8(64 - width), parts: make([]shard[K, S, A], 1<<width),
	}
	if o.maxKeys > 0 {
		t.maxKeys, t.overflow, t.follows = int64(o.maxKeys), newBudget(o.overflowOr(p), time), !o.hasOverflow
	}
	for i := range t.parts {
		s := &t.parts[i]
		s.rule, s.alg, s.horizon, s.lockOrder = p, alg, end[S](alg), nextLockOrder()
	}
	return t
}

// newHash returns a hash with a seed of its own.
func newHash[K comparable]() func(K) uint64 {
	seed := maphash.MakeSeed()
	var hash any = func(key string) uint64 { return maphash.String(seed, key) }
	if f, ok := hash.(func(K) uint64); ok {
		return f // K is string
	}
	return func(key K) uint64 { return maphash.Comparable(seed, key) }
}

// lockFor locks the key's shard and brings it to now. fresh is the state to
// begin with if the key is not in the table.
func (t *shards[K, S, A]) lockFor(now int64, key K) (s *shard[K, S, A], hash uint64, fresh S) {
	hash = t.hashOf(key)
	s = &t.parts[hash>>t.shift]
	s.mu.Lock()
	s.bring(now)
	t.ride(s) // before the look-up, which it must not outdate
	if t.fresh != nil && s.table.Find(hash, key) == nil {
		s.mu.Unlock()
		fresh = t.fresh(key)
		s.mu.Lock()
		s.bring(now)
	}
	return s, hash, fresh
}

// anew returns a state like another that has not been used.
func (t *shards[K, S, A]) anew(like S) (state S) {
	if made, ok := any(like).(interface{ anew() S }); ok && t.fresh != nil {
		return made.anew()
	}
	return state
}

// bring brings the shard to the latest of now and the readings it has seen.
func (s *shard[K, S, A]) bring(now int64) int64 {
	if s.now = max(s.now, now); s.now > s.horizon {
		s.renew()
	}
	return s.now
}

// The sweep looks at one slot for each call, some at a time, and so goes round
// once in as many calls as there are slots.
const sweepEvery = 16

// ride sweeps along with a call.
func (t *shards[K, S, A]) ride(s *shard[K, S, A]) {
	if s.calls++; s.calls%sweepEvery == 0 {
		t.sweep(s)
	}
}

func (t *shards[K, S, A]) sweep(s *shard[K, S, A]) {
	forgotten := s.table.Sweep(sweepEvery, func(state *S) bool { return s.alg.idle(*state, s.now) }, t.hashOf)
	if forgotten > 0 {
		s.stats.Forgotten += uint64(forgotten)
		t.held.Add(-int64(forgotten))
	}
}

// renew visits every key of the shard, once in a day at the most and for usual
// rates once in years.
func (s *shard[K, S, A]) renew() {
	if old, ok := any(s.alg).(renewer[S, A]); ok {
		s.change(old, old.renew(s.now))
	}
}

func (s *shard[K, S, A]) change(old changeable[S, A], to A) {
	s.alg, s.horizon = to, end[S](to)
	s.table.All(func(_ K, state *S) { *state = old.carry(*state, s.now, to) })
}

func (t *shards[K, S, A]) policy() Policy {
	s := &t.parts[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rule
}

// setPolicy changes the shards one by one.
func (t *shards[K, S, A]) setPolicy(now int64, p Policy) {
	t.changing.Lock()
	defer t.changing.Unlock()
	for i := range t.parts {
		t.parts[i].setPolicy(now, p)
	}
	if own, ok := t.overflow.(settable); ok && t.follows {
		own.setPolicy(now, p)
	}
}

func (s *shard[K, S, A]) setPolicy(now int64, p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bring(now)
	s.rule = p
	if old, ok := any(s.alg).(changeable[S, A]); ok {
		s.change(old, old.become(p, s.now))
	}
}

func (t *shards[K, S, A]) allow(now int64, key K, n int64) (ok bool) {
	s, hash, fresh := t.lockFor(now, key)
	defer s.mu.Unlock()
	if known := s.table.Find(hash, key); known != nil {
		*known, ok = admit(s.alg, *known, s.now, n)
	} else if !t.claim(s) {
		s.overflowed(n)
		ok = t.overflow.allow(s.now, n)
	} else {
		fresh, ok = admit(s.alg, fresh, s.now, n)
		t.add(s, hash, key, fresh)
	}
	s.count(n, ok)
	return ok
}

// count counts a decision, but not a look.
func (s *shard[K, S, A]) count(n int64, allowed bool) {
	switch {
	case n == 0:
	case allowed:
		s.stats.Allowed++
	default:
		s.stats.Refused++
	}
}

func (t *shards[K, S, A]) decide(now int64, key K, n int64) (d Decision) {
	s, hash, fresh := t.lockFor(now, key)
	defer s.mu.Unlock()
	if !t.own(s, hash, key, fresh, func(state S) S {
		state, d = decide(s.alg, state, s.now, n, s.rule)
		return state
	}) {
		s.overflowed(n)
		d = t.overflow.decide(s.now, n)
	}
	s.count(n, d.Allowed)
	return d
}

func (t *shards[K, S, A]) take(now int64, key K, n, maxWait int64) (d Decision, at int64, settle settleFunc, err error) {
	s, hash, fresh := t.lockFor(now, key)
	defer s.mu.Unlock()
	now = s.now
	if !t.own(s, hash, key, fresh, func(state S) S {
		var booked booking[S]
		state, booked, err = book(s.alg, state, now, now, n, maxWait)
		d = answer(s.alg, state, now, n, err == nil, s.rule)
		if err != nil && maxWait != atOnce && d.RetryAfter != Never {
			room := d.RetryAfter
			if d.RetryAfter = booked.retry(now, maxWait); errors.Is(err, ErrQueueFull) {
				d.RetryAfter = max(d.RetryAfter, room)
			}
		}
		at, settle = booked.at, locked(&s.mu, t.settler(s, hash, key, state, booked))
		return state
	}) {
		s.overflowed(n)
		d, at, settle, err = t.takeOverflow(now, n, maxWait)
	}
	s.count(n, err == nil)
	return d, at, settle, err
}

// locked is settle for callers that do not hold mu.
func locked(mu *sync.Mutex, settle settleFunc) settleFunc {
	return func(now, actual int64) {
		mu.Lock()
		defer mu.Unlock()
		settle(now, actual)
	}
}

// settler returns the settle of a booking, for callers that hold the lock. like
// is a state of the kind to begin with if the key has been forgotten.
func (t *shards[K, S, A]) settler(s *shard[K, S, A], hash uint64, key K, like S, booked booking[S]) settleFunc {
	resets := s.voids.resets
	return func(now, actual int64) {
		if s.voids.since(key, resets) {
			return
		}
		s.bring(now)
		t.own(s, hash, key, t.anew(like), func(state S) S { return s.alg.settle(state, s.now, booked, actual) })
	}
}

func (t *shards[K, S, A]) reset(key K) {
	s, hash, _ := t.lockFor(0, key)
	defer s.mu.Unlock()
	s.voids.add(key)
	if s.table.Find(hash, key) != nil {
		s.table.Delete(hash, key, t.hashOf)
		t.held.Add(-1)
	}
}

func (t *shards[K, S, A]) len() int {
	held := t.held.Load()
	if t.maxKeys > 0 {
		held = min(held, t.maxKeys) // claims that will be given back are not keys
	}
	return int(held)
}

func (t *shards[K, S, A]) statistics() (sum Stats) {
	for i := range t.parts {
		s := &t.parts[i]
		s.mu.Lock()
		sum.Allowed += s.stats.Allowed
		sum.Refused += s.stats.Refused
		sum.Forgotten += s.stats.Forgotten
		sum.Overflowed += s.stats.Overflowed
		sum.Keys += s.table.Len()
		s.mu.Unlock()
	}
	return sum
}
