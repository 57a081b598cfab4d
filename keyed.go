package ratelimit

import (
	"context"
	"reflect"
	"time"
)

// A KeyedLimiter decides for one of many budgets. It is what middleware needs:
// *Keyed[K] is one, and so are limiters that share their budgets between
// processes.
type KeyedLimiter[K comparable] interface {
	// Decide charges n units of key's budget now, or charges nothing. The
	// error is not nil only when ctx has ended or the limiter is not set up
	// right; nothing is charged then. A refusal is a Decision.
	Decide(ctx context.Context, key K, n int) (Decision, error)
}

// A KeyedTaker is for callers that wait for their turn or learn later what
// their work cost.
type KeyedTaker[K comparable] interface {
	// Take books n units of key's budget for a moment at most maxWait from
	// now; with 0 it takes them now or not at all, as Decide does. The
	// Reservation is never nil. The error is as for Decide.
	Take(ctx context.Context, key K, n int, maxWait time.Duration) (Decision, *Reservation, error)
}

// Keyed enforces one policy on a budget for each key. It forgets a key when its
// budget is as good as new, and not before, so that forgetting changes no
// answer. All methods are safe for concurrent use.
//
// The zero Keyed refuses everything. A Keyed must not be copied.
//
// A key that is unequal to itself, as a NaN is, is refused and not stored. A
// stored string keeps the memory alive that it is a part of: clone a short key
// cut from a long text.
type Keyed[K comparable] struct {
	time    timeline
	maxWait int64
	plans   bool           // whether each key has a policy of its own
	budgets keyedBudget[K] // nil in a zero value
	_       noCopy
}

// keyedBudget is the budgets of all keys.
type keyedBudget[K comparable] interface {
	settable
	policy() Policy
	allow(now int64, key K, n int64) bool
	decide(now int64, key K, n int64) Decision
	// take is book with the decision right after it.
	take(now int64, key K, n, maxWait int64) (d Decision, at int64, settle settleFunc, err error)
	of(key K) budget
	reset(key K)
	len() int
	statistics() Stats
}

// NewKeyed returns a keyed limiter. An error wraps ErrInvalidPolicy and is
// about the policy, an option, or a K that contains interfaces (whose dynamic
// values may not be comparable).
func NewKeyed[K comparable](p Policy, opts ...KeyedOption) (*Keyed[K], error) {
	return newKeyed[K](p, nil, opts)
}

// NewKeyedFunc returns a keyed limiter in which each key has the policy that
// policyFor gives it, of whatever algorithm: plans of tenants. policyFor is asked
// with no lock held whenever the key is not held, and by For, Reserve and Wait in
// any case, so it must be cheap and safe for concurrent use. It may change its
// mind: a changed plan takes effect when the key has been forgotten, or by Reset.
// A key for which it returns an invalid policy is refused. There is no single
// policy: Policy returns the zero Policy and SetPolicy an error. The default of
// WithOverflow is Blocked.
func NewKeyedFunc[K comparable](policyFor func(K) Policy, opts ...KeyedOption) (*Keyed[K], error) {
	if policyFor == nil {
		return nil, invalid("policyFor", "nil", "must not be nil")
	}
	return newKeyed(Blocked(), policyFor, opts)
}

func newKeyed[K comparable](p Policy, policyFor func(K) Policy, opts []KeyedOption) (*Keyed[K], error) {
	o, err := keyedOptions(opts)
	if err == nil {
		err = p.Validate()
	}
	if key := reflect.TypeFor[K](); err == nil && holdsInterface(key) {
		err = invalid("key type", key, "must not contain interfaces")
	}
	if err != nil {
		return nil, err
	}
	k := &Keyed[K]{time: newTimeline(o.clock), maxWait: int64(o.maxWait), plans: policyFor != nil}
	switch {
	case k.plans:
		k.budgets = newPlans(policyFor, k.time, o)
	case len(o.also) > 0:
		template := newTenant(k.time, append([]Policy{p}, o.also...)...)
		k.budgets = newShards[K, *tenant](joint{template}, p, k.time, o)
	default:
		k.budgets = budgetsOf[K](p, k.time, o)
	}
	return k, nil
}

func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return holdsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// budgetsOf chooses the algorithm once, so that no call has to.
func budgetsOf[K comparable](p Policy, t timeline, o options) keyedBudget[K] {
	switch p.Algorithm() {
	case AlgorithmTokenBucket, AlgorithmLeakyBucket:
		return newShards[K, bucketState](newBucket(p), p, t, o)
	case AlgorithmSlidingLog:
		return newShards[K, logState](newLog(p), p, t, o)
	case AlgorithmFixedCounter:
		return newShards[K, fixedState](newFixed(p, t.start), p, t, o)
	case AlgorithmSlidingCounter:
		return newShards[K, slidingState](newSliding(p, t.start), p, t, o)
	}
	return newShards[K, struct{}](open{int64(p.Limit())}, p, t, o)
}

// holds reports whether there can be a budget for key.
func (k *Keyed[K]) holds(key K) bool {
	return k.budgets != nil && key == key //nolint:gocritic // a NaN is unequal to itself
}

// Policy returns the policy in force, without those of WithAlso: the zero
// Policy for a zero value and for NewKeyedFunc.
func (k *Keyed[K]) Policy() Policy {
	if k.budgets == nil || k.plans {
		return Policy{}
	}
	return k.budgets.policy()
}

// SetPolicy changes the policy of all keys, known or not, shard by shard; those
// of WithAlso stay. It is otherwise like SetPolicy of a limiter: since tokens are
// never raised, a key not yet seen starts with what an untouched bucket held
// under the old policy.
func (k *Keyed[K]) SetPolicy(p Policy) error {
	if k.budgets == nil {
		return ErrClosed
	}
	if k.plans {
		return invalid("policy", p, "must come from policyFor")
	}
	if err := replaceable(k.budgets.policy(), p); err != nil {
		return err
	}
	k.budgets.setPolicy(k.time.now(), p)
	return nil
}

// Allow is shorthand for AllowN(key, 1).
func (k *Keyed[K]) Allow(key K) bool { return k.AllowN(key, 1) }

// AllowN charges n units of key's budget now and reports true, or charges
// nothing.
func (k *Keyed[K]) AllowN(key K, n int) bool {
	return k.holds(key) && k.budgets.allow(k.time.now(), key, int64(n))
}

// Decide is AllowN with the whole answer; with n = 0 it looks without
// charging. Its error is that of a ctx that has ended; nothing is charged then.
func (k *Keyed[K]) Decide(ctx context.Context, key K, n int) (Decision, error) {
	if err := ended(ctx); err != nil {
		return k.refusal(), err
	}
	if !k.holds(key) {
		return k.refusal(), nil
	}
	return k.budgets.decide(k.time.now(), key, int64(n)), nil
}

// refusal is the answer where no budget was asked.
func (k *Keyed[K]) refusal() Decision {
	p := k.Policy()
	return Decision{Limit: p.Limit(), RetryAfter: Never, Policy: p}
}

// Take books n units of key's budget for a moment at most maxWait from now (and
// at most WithMaxWait). With a maxWait of 0 or less it takes them now or not at
// all, as Decide does. A decision that is not Allowed has a Reservation that is
// not OK, and a RetryAfter after which the same Take succeeds.
func (k *Keyed[K]) Take(ctx context.Context, key K, n int, maxWait time.Duration) (Decision, *Reservation, error) {
	if err := ended(ctx); err != nil {
		return k.refusal(), refused(err), err
	}
	if !k.holds(key) {
		return k.refusal(), refused(exceeds(int64(n), 0)), nil
	}
	most := min(int64(maxWait), k.maxWait)
	if maxWait <= 0 {
		most = atOnce
	}
	d, at, settle, err := k.budgets.take(k.time.now(), key, int64(n), most)
	if err != nil {
		return d, refused(err), nil
	}
	return d, &Reservation{time: k.time, at: at, settle: settle}, nil
}

// Reserve is shorthand for ReserveN(key, 1).
func (k *Keyed[K]) Reserve(key K) *Reservation { return k.ReserveN(key, 1) }

// ReserveN books n units of key's budget for the first moment that the policy
// permits, behind all earlier bookings of the key.
func (k *Keyed[K]) ReserveN(key K, n int) *Reservation { return k.For(key).ReserveN(n) }

// Wait is shorthand for WaitN(ctx, key, 1).
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN books n units of key's budget, sleeps until their moment and returns
// nil. Its errors are those of Limiter.WaitN.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int) error { return k.For(key).WaitN(ctx, n) }

// For returns the limiter of one key. It holds nothing: the key is forgotten
// and remembered as if it were named in each call.
func (k *Keyed[K]) For(key K) Limiter {
	if !k.holds(key) {
		return &limiter{}
	}
	return &limiter{time: k.time, maxWait: k.maxWait, budget: k.budgets.of(key)}
}

// Reset forgets what key has used. Reservations made for it before are void:
// to cancel or settle them changes nothing.
func (k *Keyed[K]) Reset(key K) {
	if k.holds(key) {
		k.budgets.reset(key)
	}
}

// Len returns the number of keys held. Keys as good as new may be among them
// until a later call sweeps them away.
func (k *Keyed[K]) Len() int {
	if k.budgets == nil {
		return 0
	}
	return k.budgets.len()
}

// Stats counts what a keyed limiter has decided since it was made. A look
// (n = 0) is not a decision.
type Stats struct {
	Allowed    uint64 // calls that were admitted or booked
	Refused    uint64 // calls that were not
	Forgotten  uint64 // keys dropped because they were as good as new
	Overflowed uint64 // calls decided by the overflow budget, among the above
	Keys       int    // keys held
}

// Stats returns the counts. It locks the shards one by one.
func (k *Keyed[K]) Stats() Stats {
	if k.budgets == nil {
		return Stats{}
	}
	return k.budgets.statistics()
}
