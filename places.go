package ratelimit

// claim takes a place for a key that is not in the table, for add to use or to
// give back. It reports false when all places are taken by keys in use.
func (t *shards[K, S, A]) claim(s *shard[K, S, A]) bool {
	if t.maxKeys == 0 || t.held.Add(1) <= t.maxKeys {
		return true
	}
	// Make room, here and in one other shard. Whoever finds it has it.
	t.sweep(s)
	if other := &t.parts[int(t.next.Add(1))%len(t.parts)]; other.mu.TryLock() {
		other.bring(s.now)
		t.sweep(other)
		other.mu.Unlock()
	}
	if t.held.Load() <= t.maxKeys {
		return true
	}
	t.held.Add(-1)
	s.stats.Overflowed++
	return false
}

// full reports whether a new key would find no place.
func (t *shards[K, S, A]) full() bool { return t.maxKeys > 0 && t.held.Load() >= t.maxKeys }

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
