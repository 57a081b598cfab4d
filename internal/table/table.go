// Package table is a hash table that holds small states in place: no pointer,
// no header and no allocation for each key. It shrinks as it empties, which Go's
// map does not, and is swept a few slots at a time.
//
// A table is not safe for concurrent use.
package table

import "math/bits"

// Table maps keys to states. The zero Table is empty; every call needs the key's
// hash, of which all 64 bits should be good.
//
// It probes linearly. A byte for each slot, its tag, holds seven bits of the
// hash, so that a probe seldom touches the slot of another key. Slots are freed
// by moving the ones behind, so there are no tombstones.
type Table[K comparable, V any] struct {
	tags   []uint8 // 0: the slot is free
	slots  []slot[K, V]
	used   int
	cursor int // of the sweep
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

const (
	smallest = 8
	// A table grows by half when four fifths are in use, so that a key costs at
	// most 1.9 slots; it shrinks below a fifth.
	growBy, fullest, emptiest = 3.0 / 2, 4.0 / 5, 1.0 / 5
)

// Len returns the number of keys.
func (t *Table[K, V]) Len() int { return t.used }

// Slots returns the number of slots, used or not.
func (t *Table[K, V]) Slots() int { return len(t.slots) }

func tag(hash uint64) uint8 { return uint8(hash) | 0x80 }

// home returns the slot at which the search for a hash begins.
func (t *Table[K, V]) home(hash uint64) int {
	// The low bits are the tag's and the high ones choose the shard: mix.
	hi, _ := bits.Mul64(hash*0x9e3779b97f4a7c15, uint64(len(t.slots)))
	return int(hi)
}

// Find returns the state of a key, or nil. It is valid until the next Insert,
// Delete or Sweep.
func (t *Table[K, V]) Find(hash uint64, key K) *V {
	if t.used == 0 {
		return nil
	}
	want := tag(hash)
	for i := t.home(hash); ; {
		switch t.tags[i] {
		case 0:
			return nil
		case want:
			if s := &t.slots[i]; s.key == key {
				return &s.value
			}
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// Insert adds a key that is not in the table. hashOf must be what made hash.
func (t *Table[K, V]) Insert(hash uint64, key K, value V, hashOf func(K) uint64) {
	if float64(t.used+1) > fullest*float64(len(t.slots)) {
		t.resize(max(smallest, int(growBy*float64(len(t.slots)))), hashOf)
	}
	t.place(hash, slot[K, V]{key, value})
}

func (t *Table[K, V]) place(hash uint64, s slot[K, V]) {
	i := t.home(hash)
	for t.tags[i] != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	t.tags[i], t.slots[i] = tag(hash), s
	t.used++
}

func (t *Table[K, V]) resize(size int, hashOf func(K) uint64) {
	old := *t
	*t = Table[K, V]{tags: make([]uint8, size), slots: make([]slot[K, V], size)}
	for i, tag := range old.tags {
		if tag != 0 {
			t.place(hashOf(old.slots[i].key), old.slots[i])
		}
	}
	if len(old.slots) > 0 {
		t.cursor = int(uint64(old.cursor) * uint64(size) / uint64(len(old.slots)))
	}
}

// Delete removes a key if it is there.
func (t *Table[K, V]) Delete(hash uint64, key K, hashOf func(K) uint64) {
	if t.used == 0 {
		return
	}
	for i := t.home(hash); t.tags[i] != 0; i = (i + 1) % len(t.slots) {
		if t.slots[i].key == key {
			t.free(i, hashOf)
			t.shrink(hashOf)
			return
		}
	}
}

// free empties a slot and closes the gap: it moves back each slot behind whose
// search would now stop at the gap.
func (t *Table[K, V]) free(gap int, hashOf func(K) uint64) {
	size := len(t.slots)
	for i := gap; ; {
		if i++; i == size {
			i = 0
		}
		if t.tags[i] == 0 {
			break
		}
		home := t.home(hashOf(t.slots[i].key))
		if (i-home+size)%size >= (i-gap+size)%size {
			t.tags[gap], t.slots[gap] = t.tags[i], t.slots[i]
			gap = i
		}
	}
	t.tags[gap], t.slots[gap] = 0, slot[K, V]{}
	t.used--
}

func (t *Table[K, V]) shrink(hashOf func(K) uint64) {
	if len(t.slots) > smallest && float64(t.used) < emptiest*float64(len(t.slots)) {
		t.resize(max(smallest, 2*t.used), hashOf)
	}
}

// Sweep looks at the next n slots, going round, and removes the keys whose
// state forget reports true for. It returns how many it removed.
func (t *Table[K, V]) Sweep(n int, forget func(*V) bool, hashOf func(K) uint64) (removed int) {
	for range min(n, len(t.slots)) {
		if t.cursor >= len(t.slots) {
			t.cursor = 0
		}
		if t.tags[t.cursor] != 0 && forget(&t.slots[t.cursor].value) {
			t.free(t.cursor, hashOf) // another key may be here now: it is next
			removed++
			continue
		}
		t.cursor++
	}
	if removed > 0 {
		t.shrink(hashOf)
	}
	return removed
}

// All calls f for every key and state, in no order.
func (t *Table[K, V]) All(f func(K, *V)) {
	for i, tag := range t.tags {
		if tag != 0 {
			f(t.slots[i].key, &t.slots[i].value)
		}
	}
}
