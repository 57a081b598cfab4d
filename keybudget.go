package ratelimit

// keyBudget is one key's budget, for Keyed.For and with it for All.
type keyBudget[K comparable, S any, A algorithm[S]] struct {
	all  *shards[K, S, A]
	part *shard[K, S, A]
	hash uint64
	key  K
	// fresh is of the kind with which All begins if the key is not in the table.
	fresh S
}

func (t *shards[K, S, A]) of(key K) budget {
	hash := t.hashOf(key)
	b := keyBudget[K, S, A]{all: t, part: &t.parts[hash>>t.shift], hash: hash, key: key}
	if t.fresh != nil {
		b.fresh = t.fresh(key)
	}
	return b
}

func (b keyBudget[K, S, A]) policy() Policy { return b.all.policy() }

func (b keyBudget[K, S, A]) allow(now, n int64) bool { return b.all.allow(now, b.key, n) }

func (b keyBudget[K, S, A]) decide(now, n int64) Decision { return b.all.decide(now, b.key, n) }

func (b keyBudget[K, S, A]) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	b.lock()
	defer b.unlock()
	now = b.bring(now)
	if b.part.table.Find(b.hash, b.key) == nil && !b.all.roomFor(b.part) {
		b.part.overflowed(n)
	}
	at, settle, err := b.bookLocked(now, notBefore, n, maxWait)
	b.part.count(n, err == nil)
	if err != nil {
		return 0, nil, err
	}
	return at, locked(&b.part.mu, settle), nil
}

func (b keyBudget[K, S, A]) held() heldBudget { return b }

func (b keyBudget[K, S, A]) same(h heldBudget) bool {
	other, ok := h.(keyBudget[K, S, A])
	return ok && other.all == b.all && other.key == b.key
}

func (b keyBudget[K, S, A]) order() uint64 { return b.part.order() }
func (b keyBudget[K, S, A]) lock()         { b.part.mu.Lock() }
func (b keyBudget[K, S, A]) unlock()       { b.part.mu.Unlock() }

func (b keyBudget[K, S, A]) bring(now int64) int64 {
	now = b.part.bring(now)
	b.all.ride(b.part)
	return now
}

func (b keyBudget[K, S, A]) limitLocked() int64 { return b.part.alg.limit(b.state()) }

// state returns the key's state, or one that has not been used.
func (b keyBudget[K, S, A]) state() S {
	if known := b.part.table.Find(b.hash, b.key); known != nil {
		return *known
	}
	return b.all.anew(b.fresh)
}

func (b keyBudget[K, S, A]) bookLocked(now, notBefore, n, maxWait int64) (at int64, settle settleFunc, err error) {
	s := b.part
	if !b.all.own(s, b.hash, b.key, b.all.anew(b.fresh), func(state S) S {
		var booked booking[S]
		state, booked, err = book(s.alg, state, now, notBefore, n, maxWait)
		at, settle = booked.at, b.all.settler(s, b.hash, b.key, state, booked)
		return state
	}) {
		return b.all.overflow.book(now, notBefore, n, maxWait)
	}
	return at, settle, err
}

func (b keyBudget[K, S, A]) measureLocked(now, n int64) Decision {
	if b.part.table.Find(b.hash, b.key) == nil && !b.all.roomFor(b.part) {
		h := b.all.overflow.held()
		h.lock()
		defer h.unlock()
		return h.measureLocked(h.bring(now), n)
	}
	return look(b.part.alg, b.state(), now, n, b.part.rule)
}

// chargeLocked is certain only without a bound on keys: the overflow budget has
// a lock of its own.
func (b keyBudget[K, S, A]) chargeLocked(now, n int64) {
	s := b.part
	b.all.own(s, b.hash, b.key, b.all.anew(b.fresh), func(state S) S {
		state, _ = s.alg.admit(state, now, n)
		return state
	})
	s.count(n, true)
}

func (b keyBudget[K, S, A]) certain() bool { return b.all.maxKeys == 0 }

func (b keyBudget[K, S, A]) charged(n int64) { b.part.count(n, true) }
