package ratelimit

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/table"
)

// maxShards bounds WithShards.
const maxShards = 1 << 16

// shards is the budgets of all keys under one algorithm: a table in parts, each
// under its own mutex. A key's state stands in the table only while it differs
// from the zero state, that of a key never seen.
type shards[K comparable, S any, A algorithm[S]] struct {
	rule   Policy
	units  int64
	hashOf func(K) uint64 // seeded for each limiter, so that nobody can aim at a shard
	shift  uint8
	parts  []shard[K, S, A]
}

type shard[K comparable, S any, A algorithm[S]] struct {
	lockOrder

	mu      sync.Mutex
	table   table.Table[K, S]
	alg     A
	now     int64 // the latest reading: callers get the lock in another order than their readings
	horizon int64
	resets  uint64 // calls of Reset
	calls   uint8
	_       [64]byte // keeps the locks of two shards off one cache line
}

func newShards[K comparable, S any, A algorithm[S]](alg A, p Policy, o options) *shards[K, S, A] {
	n := o.shards
	if n == 0 {
		n = min(64*runtime.GOMAXPROCS(0), maxShards)
	}
	width := bits.Len(uint(n - 1))
	t := &shards[K, S, A]{
		rule: p, units: alg.limit(), hashOf: newHash[K](),
		shift: uint8(64 - width), parts: make([]shard[K, S, A], 1<<width),
	}
	for i := range t.parts {
		s := &t.parts[i]
		s.alg, s.horizon, s.lockOrder = alg, horizon[S](alg), nextLockOrder()
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

// lockFor locks the key's shard and brings it to now.
func (t *shards[K, S, A]) lockFor(now int64, key K) (s *shard[K, S, A], hash uint64) {
	hash = t.hashOf(key)
	s = &t.parts[hash>>t.shift]
	s.mu.Lock()
	s.bring(now)
	if s.calls++; s.calls%sweepEvery == 0 {
		s.sweep(t.hashOf)
	}
	return s, hash
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

func (s *shard[K, S, A]) sweep(hashOf func(K) uint64) {
	s.table.Sweep(sweepEvery, func(state *S) bool { return s.alg.idle(*state, s.now) }, hashOf)
}

// A renewer is an algorithm whose states are numbers that grow with time. renew
// returns the algorithm to go on with from now, and carry what a state is there.
type renewer[S, A any] interface {
	ends() int64
	renew(now int64) A
	carry(s S, to A) S
}

// horizon returns the moment after which alg has to be renewed.
func horizon[S any, A algorithm[S]](alg A) int64 {
	if r, ok := any(alg).(renewer[S, A]); ok {
		return r.ends()
	}
	return never
}

// renew visits every key of the shard, once in a day at the most and for usual
// rates once in years.
func (s *shard[K, S, A]) renew() {
	old, ok := any(s.alg).(renewer[S, A])
	if !ok {
		return
	}
	s.alg = old.renew(s.now)
	s.horizon = horizon[S](s.alg)
	s.table.All(func(_ K, state *S) { *state = old.carry(*state, s.alg) })
}

func (t *shards[K, S, A]) limit() int64 { return t.units }

func (t *shards[K, S, A]) allow(now int64, key K, n int64) bool {
	s, hash := t.lockFor(now, key)
	defer s.mu.Unlock()
	if state := s.table.Find(hash, key); state != nil {
		next, ok := s.alg.admit(*state, s.now, n)
		*state = next
		return ok
	}
	var zero S
	next, ok := s.alg.admit(zero, s.now, n)
	if ok {
		t.remember(s, hash, key, next)
	}
	return ok
}

// state returns the state of a key, known or not.
func (s *shard[K, S, A]) state(hash uint64, key K) (state S) {
	if known := s.table.Find(hash, key); known != nil {
		state = *known
	}
	return state
}

// remember stores the state of a key. One that equals the zero state is stored
// only where the key is known.
func (t *shards[K, S, A]) remember(s *shard[K, S, A], hash uint64, key K, state S) {
	if known := s.table.Find(hash, key); known != nil {
		*known = state
	} else if !s.alg.idle(state, s.now) {
		// A flood of new keys pays for the sweep that makes room.
		s.sweep(t.hashOf)
		s.table.Insert(hash, key, state, t.hashOf)
	}
}

func (t *shards[K, S, A]) decide(now int64, key K, n int64) Decision {
	s, hash := t.lockFor(now, key)
	defer s.mu.Unlock()
	next, d := decide(s.alg, s.state(hash, key), s.now, n)
	t.remember(s, hash, key, next)
	d.Policy = t.rule
	return d
}

func (t *shards[K, S, A]) take(now int64, key K, n, maxWait int64) (Decision, int64, settleFunc, error) {
	s, hash := t.lockFor(now, key)
	defer s.mu.Unlock()
	now = s.now
	state := s.state(hash, key)
	next, booked, err := s.alg.book(state, now, now, n, maxWait)
	t.remember(s, hash, key, next)
	d := answer(s.alg, next, now, n, err == nil)
	d.Policy = t.rule
	if err != nil {
		if errors.Is(err, ErrWaitTooLong) && maxWait != atOnce && booked.at != never {
			d.RetryAfter = time.Duration(booked.at - now - maxWait)
		}
		return d, 0, nil, err
	}
	settle := t.settler(s, hash, key, booked)
	return d, booked.at, func(now, actual int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		settle(now, actual)
	}, nil
}

// settler returns the settle of a booking, for callers that hold the lock.
func (t *shards[K, S, A]) settler(s *shard[K, S, A], hash uint64, key K, booked booking[S]) settleFunc {
	resets := s.resets
	return func(now, actual int64) {
		// After a Reset in the shard nothing can be given back: which keys were
		// reset is not remembered, and giving back nothing is safe.
		if s.resets != resets {
			return
		}
		s.bring(now)
		state := s.state(hash, key)
		t.remember(s, hash, key, s.alg.settle(state, s.now, booked, actual))
	}
}

func (t *shards[K, S, A]) reset(key K) {
	s, hash := t.lockFor(0, key)
	defer s.mu.Unlock()
	s.resets++
	s.table.Delete(hash, key, t.hashOf)
}

func (t *shards[K, S, A]) len() (n int) {
	for i := range t.parts {
		s := &t.parts[i]
		s.mu.Lock()
		n += s.table.Len()
		s.mu.Unlock()
	}
	return n
}

// keyBudget is one key's budget.
type keyBudget[K comparable, S any, A algorithm[S]] struct {
	all  *shards[K, S, A]
	part *shard[K, S, A]
	hash uint64
	key  K
}

func (t *shards[K, S, A]) of(key K) budget {
	hash := t.hashOf(key)
	return keyBudget[K, S, A]{t, &t.parts[hash>>t.shift], hash, key}
}

func (b keyBudget[K, S, A]) limit() int64 { return b.all.units }

func (b keyBudget[K, S, A]) allow(now, n int64) bool { return b.all.allow(now, b.key, n) }

func (b keyBudget[K, S, A]) decide(now, n int64) Decision { return b.all.decide(now, b.key, n) }

func (b keyBudget[K, S, A]) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	return bookHeld(b, now, notBefore, n, maxWait)
}

func (b keyBudget[K, S, A]) held() heldBudget { return b }

func (b keyBudget[K, S, A]) order() uint64 { return b.part.order() }
func (b keyBudget[K, S, A]) lock()         { b.part.mu.Lock() }
func (b keyBudget[K, S, A]) unlock()       { b.part.mu.Unlock() }

func (b keyBudget[K, S, A]) bring(now int64) int64 { return b.part.bring(now) }

func (b keyBudget[K, S, A]) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	s := b.part
	next, booked, err := s.alg.book(s.state(b.hash, b.key), now, notBefore, n, maxWait)
	b.all.remember(s, b.hash, b.key, next)
	if err != nil {
		return 0, nil, err
	}
	return booked.at, b.all.settler(s, b.hash, b.key, booked), nil
}

func (b keyBudget[K, S, A]) measureLocked(now, n int64) Decision {
	return look(b.part.alg, b.part.state(b.hash, b.key), now, n, b.all.rule)
}

func (b keyBudget[K, S, A]) chargeLocked(now, n int64) {
	next, _ := b.part.alg.admit(b.part.state(b.hash, b.key), now, n)
	b.all.remember(b.part, b.hash, b.key, next)
}
