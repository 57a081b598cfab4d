package ratelimit

// maxClaimSweeps bounds what a new key pays while the table is full.
const maxClaimSweeps = 16

// claim takes a place for a key that is not in the table, for add to use or to
// give back. It reports false when all places are taken by keys in use.
func (t *shards[K, S, A]) claim(s *shard[K, S, A]) bool {
	if t.maxKeys == 0 || t.held.Add(1) <= t.maxKeys {
		return true
	}
	// Make room, here and then in a few other shards, in turn.
	t.sweep(s)
	for range maxClaimSweeps {
		if t.held.Load() <= t.maxKeys {
			return true
		}
		if other := &t.parts[t.next.Add(1)%uint32(len(t.parts))]; other.mu.TryLock() {
			other.bring(s.now)
			t.sweep(other)
			other.mu.Unlock()
		}
	}
	if t.held.Load() <= t.maxKeys {
		return true
	}
	t.held.Add(-1)
	return false
}

// roomFor reports whether claim would find a place.
func (t *shards[K, S, A]) roomFor(s *shard[K, S, A]) bool {
	ok := t.claim(s)
	if ok && t.maxKeys > 0 {
		t.held.Add(-1)
	}
	return ok
}

// takeOverflow is take from the overflow budget.
func (t *shards[K, S, A]) takeOverflow(now, n, maxWait int64) (Decision, int64, settleFunc, error) {
	h := t.overflow.held()
	h.lock()
	defer h.unlock()
	now = h.bring(now)
	at, settle, err := h.bookLocked(now, now, n, maxWait)
	if err != nil {
		d := h.measureLocked(now, n)
		if d.Allowed = false; d.RetryAfter == 0 {
			d.RetryAfter = 1 // there is room, but not for so short a wait
		}
		return d, at, nil, err
	}
	d := h.measureLocked(now, 0)
	d.Allowed = true
	return d, at, func(now, actual int64) {
		h.lock()
		defer h.unlock()
		settle(now, actual)
	}, nil
}

// overflowed counts a decision that the overflow budget made.
func (s *shard[K, S, A]) overflowed(n int64) {
	if n != 0 {
		s.stats.Overflowed++
	}
}

// add stores the state of a key that has been claimed for, unless it equals the
// zero state.
func (t *shards[K, S, A]) add(s *shard[K, S, A], hash uint64, key K, state S) {
	if s.alg.idle(state, s.now) {
		if t.maxKeys > 0 {
			t.held.Add(-1)
		}
		return
	}
	if t.maxKeys == 0 {
		t.held.Add(1)
	}
	// A flood of new keys pays for the sweep that makes room.
	t.sweep(s)
	s.table.Insert(hash, key, state, t.hashOf)
}

// own calls f with the state of the key, which is fresh if it is not in the
// table, and stores what f returns. It reports false, and does nothing, when the
// key has no budget of its own.
func (t *shards[K, S, A]) own(s *shard[K, S, A], hash uint64, key K, fresh S, f func(S) S) bool {
	if known := s.table.Find(hash, key); known != nil {
		*known = f(*known)
		return true
	}
	if !t.claim(s) {
		return false
	}
	t.add(s, hash, key, f(fresh))
	return true
}

// voids remembers which keys were reset, so that earlier reservations are void:
// the latest of them by key, and of the others that there were some.
type voids[K comparable] struct {
	resets uint64 // so far
	keys   map[K]uint64
	others uint64
}

const maxVoids = 64

func (v *voids[K]) add(key K) {
	v.resets++
	if len(v.keys) >= maxVoids {
		v.others = v.resets
		clear(v.keys)
	}
	if v.keys == nil {
		v.keys = make(map[K]uint64)
	}
	v.keys[key] = v.resets
}

// since reports whether the key was reset, or may have been, after so many resets.
func (v *voids[K]) since(key K, resets uint64) bool {
	return v.others > resets || v.keys[key] > resets
}
