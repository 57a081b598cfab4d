package ratelimit

import (
	"runtime"
	"sync/atomic"
)

// bucketWord is a bucket's budget without a lock: one word, changed by
// compare-and-swap, and only when something is admitted.
//
// What takes more than one step (moving the origin; All) freezes the word: it
// swaps in a value that no bucket has, and others yield until it is replaced.
type bucketWord struct {
	lockOrder
	firm
	epoch atomic.Pointer[bucketEpoch]

	// kept is what the word was when it was frozen, for whoever froze it.
	kept bucketState
}

// A bucketEpoch is a word and the bucket that gives it a meaning. An epoch that
// has ended stays frozen.
type bucketEpoch struct {
	rule Policy
	bucket
	_    [64]byte // the word has a cache line of its own
	word atomic.Uint64
	_    [64]byte
}

func newBucketWord(p Policy) *bucketWord {
	w := &bucketWord{lockOrder: nextLockOrder()}
	w.epoch.Store(&bucketEpoch{rule: p, bucket: *newBucket(p)})
	return w
}

func (w *bucketWord) policy() Policy { return w.epoch.Load().rule }

func (w *bucketWord) setPolicy(now int64, p Policy) {
	w.lock()
	defer w.unlock()
	now = w.bring(now)
	w.begin(p, w.epoch.Load().become(p, now), now)
}

func (w *bucketWord) allow(now, n int64) bool {
	for {
		e, s := w.load(now)
		if n < 1 || n > e.tokens {
			return n == 0
		}
		// Not by the generic admit: that calls through a dictionary.
		next, ok := e.admit(s, now, n)
		if !ok || e.swap(s, next) {
			return ok
		}
	}
}

func (w *bucketWord) decide(now, n int64) Decision {
	for {
		e, s := w.load(now)
		next, d := decide(&e.bucket, s, now, n, e.rule)
		if next == s || e.swap(s, next) {
			return d
		}
	}
}

func (w *bucketWord) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	for {
		e, s := w.load(now)
		next, booked, err := book(&e.bucket, s, now, notBefore, n, maxWait)
		if err != nil {
			return booked.at, nil, err
		}
		if e.swap(s, next) {
			return booked.at, func(now, actual int64) { w.settle(now, booked, actual) }, nil
		}
	}
}

func (w *bucketWord) settle(now int64, booked booking[bucketState], actual int64) {
	for {
		e, s := w.load(now)
		if next := e.bucket.settle(s, now, booked, actual); next == s || e.swap(s, next) {
			return
		}
	}
}

// load returns the epoch for now and its word, which is not frozen.
func (w *bucketWord) load(now int64) (*bucketEpoch, bucketState) {
	for {
		e := w.epoch.Load()
		if now > e.horizon {
			w.renew(now)
			continue
		}
		if s := e.word.Load(); s != frozen {
			return e, bucketState(s)
		}
		runtime.Gosched()
	}
}

func (e *bucketEpoch) swap(old, next bucketState) bool {
	return e.word.CompareAndSwap(uint64(old), uint64(next))
}

// renew begins a new epoch at now, unless somebody else was faster.
func (w *bucketWord) renew(now int64) {
	w.lock()
	w.bring(now)
	w.unlock()
}

// lock freezes the word of the epoch in force.
func (w *bucketWord) lock() {
	for {
		e := w.epoch.Load()
		if s := e.word.Load(); s != frozen && e.word.CompareAndSwap(s, frozen) {
			w.kept = bucketState(s)
			return
		}
		runtime.Gosched()
	}
}

func (w *bucketWord) unlock() { w.epoch.Load().word.Store(uint64(w.kept)) }

func (w *bucketWord) held() heldBudget { return w }

func (w *bucketWord) same(h heldBudget) bool { return h == heldBudget(w) }

// bring starts a new epoch where the old one would not last until now.
func (w *bucketWord) bring(now int64) int64 {
	if e := w.epoch.Load(); now > e.horizon {
		w.begin(e.rule, e.bucket.renew(now), now)
	}
	return now
}

// begin ends the epoch in force, whose word is frozen, and leaves it so.
func (w *bucketWord) begin(p Policy, b *bucket, now int64) {
	next := &bucketEpoch{rule: p, bucket: *b}
	next.word.Store(frozen)
	w.kept = w.epoch.Load().carry(w.kept, now, &next.bucket)
	w.epoch.Store(next)
}

func (w *bucketWord) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	next, booked, err := book(&w.epoch.Load().bucket, w.kept, now, notBefore, n, maxWait)
	if err != nil {
		return booked.at, nil, err
	}
	w.kept = next
	return booked.at, func(now, actual int64) {
		now = w.bring(now)
		w.kept = w.epoch.Load().bucket.settle(w.kept, now, booked, actual)
	}, nil
}

func (w *bucketWord) measureLocked(now, n int64) Decision {
	e := w.epoch.Load()
	return look(&e.bucket, w.kept, now, n, e.rule)
}

func (w *bucketWord) limitLocked() int64 { return w.epoch.Load().tokens }

func (w *bucketWord) chargeLocked(now, n int64) {
	w.kept, _ = w.epoch.Load().admit(w.kept, now, n)
}
