package ratelimit

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// bucketState is all that a bucket remembers: the units spent since the
// origin, counted so that a full bucket has spent what was minted. The level
// of a bucket is spent − minted(now) where that is positive, and 0 in a full
// one. Counting what was spent, not what is left, is what makes the bucket
// exact: nothing is recomputed when time passes, so nothing can drift, an old
// clock reading cannot credit an interval twice, and a refusal writes nothing.
type bucketState uint64

// bucket is the arithmetic that the token bucket and the leaky bucket share;
// they are mirror images, and differ in when a booking may act.
//
// A token is cost units, and num/den units are minted per nanosecond. Where it
// fits, cost is the denominator of the rate, which makes den 1 and every
// answer exact. Else (a numerator above 53,375, or a burst that lasts for many
// years) cost is as large as fits and a refill that starts from a full bucket
// may come late by the rounding of one unit, at most a nanosecond's refill; it
// is never early and does not add up.
type bucket struct {
	cost     uint64
	size     uint64 // a full bucket, in units
	num, den uint64
	stepped  bool  // interval refill: num units at once, every den nanoseconds
	tokens   int64 // a full bucket, in tokens
	release  release

	// Words are relative to origin and stay below 2⁶⁴ until horizon; renew
	// moves the origin before that. initial is the word that 0 stands for.
	origin, horizon int64
	initial         bucketState
	plan            uint64 // tells the words of this bucket from those of another
}

// release says when a booking may act.
type release uint8

const (
	whenMinted  release = iota // token bucket: as soon as the bucket holds the tokens
	atSlotEnd                  // leaky bucket: when the units have drained
	atSlotStart                // leaky bucket, immediate first: when the last unit starts to drain
)

// lastPlan numbers what was compiled, so that a booking is not settled by another
// policy than made it.
var lastPlan atomic.Uint64

// frozen is a word that no bucket has; see bucketWord.
const frozen = math.MaxUint64

// maxMinted bounds what is minted between two origins. With a full bucket of
// at most 2⁶³ units on top, words are left for some 2⁶² units of bookings.
const maxMinted = 1 << 62

// mostSpent bounds bookings and debt, with room for a full bucket above it.
const mostSpent = frozen / 4 * 3

// shortestEpoch is the least time between two origins of an exact bucket.
const shortestEpoch = 24 * 3600 * 1e9

func newBucket(p Policy) *bucket {
	s := p.spec()
	num, den := s.rate.Ratio()
	b := &bucket{tokens: int64(s.limit), plan: lastPlan.Add(1)}
	switch {
	case s.algorithm == AlgorithmTokenBucket && s.intervalRefill:
		b.cost, b.num, b.den, b.stepped = 1, uint64(s.rate.units()), uint64(s.rate.per), true
	default:
		b.cost, b.num, b.den = scale(num, den, uint64(s.limit))
	}
	switch {
	case s.immediateFirst:
		b.release = atSlotStart
	case s.algorithm == AlgorithmLeakyBucket:
		b.release = atSlotEnd
	}
	b.size = b.cost * uint64(s.limit)
	if s.hasInitial {
		b.initial = bucketState(b.cost * uint64(s.limit-s.initial))
	}
	b.horizon = b.lasts()
	return b
}

// scale chooses the units: cost of them in a token, minted at unitNum/unitDen
// per nanosecond, where num/den is the rate in tokens per nanosecond.
func scale(num, den, burst uint64) (cost, unitNum, unitDen uint64) {
	fill := arith.MulDivUp(burst, den, num) // nanoseconds, at most a century
	most := maxMinted / max(fill, uint64(shortestEpoch))
	if num <= most {
		return den, num, 1
	}
	// most·den/num tokens' units fit; keep their product with num below 2⁶³.
	most = max(1, min(most, (1<<63)/den))
	cost = max(1, arith.MulDiv(most, den, num))
	return cost, cost * num, den
}

// lasts returns how long after the origin words surely fit.
func (b *bucket) lasts() int64 { return arith.After(b.origin, arith.Int64(b.span(maxMinted))) }

// minted returns the units minted between the origin and now.
func (b *bucket) minted(now int64) uint64 {
	age := uint64(max(0, now-b.origin)) // a reading from before the origin moved credits nothing
	if hi, lo := bits.Mul64(age, b.num); b.den == 1 && hi == 0 {
		return lo
	}
	return b.mintedSlowly(age)
}

func (b *bucket) mintedSlowly(age uint64) uint64 {
	if b.stepped {
		return arith.Mul(age/b.den, b.num)
	}
	return arith.MulDiv(age, b.num, b.den)
}

// span returns the least time in which units are minted from the origin on.
func (b *bucket) span(units uint64) uint64 {
	if b.stepped {
		return arith.Mul(arith.MulDivUp(units, 1, b.num), b.den)
	}
	return arith.MulDivUp(units, b.den, b.num)
}

// when returns the first moment at which minted reaches units.
func (b *bucket) when(units uint64) int64 {
	return arith.After(b.origin, arith.Int64(b.span(units)))
}

// mintedUp is minted rounded up.
func (b *bucket) mintedUp(now int64) uint64 {
	if b.den == 1 || b.stepped {
		return b.minted(now)
	}
	return arith.MulDivUp(uint64(max(0, now-b.origin)), b.num, b.den)
}

// base returns the word before a charge at now, and the units that can be
// charged. Idle time credits no more than a full bucket, and not the rounding.
func (b *bucket) base(s bucketState, now int64) (base, free uint64) {
	minted := b.minted(now)
	if spent := uint64(max(s, b.initial)); spent > minted {
		return spent, arith.Sub(minted+b.size, spent)
	}
	if b.den != 1 {
		minted = b.mintedUp(now)
	}
	return minted, b.size
}

// due returns the moment at which a booking may act that leaves the word next.
func (b *bucket) due(next uint64) int64 {
	switch b.release {
	case whenMinted:
		return b.when(arith.Sub(next, b.size))
	case atSlotStart:
		return b.when(next - b.cost)
	}
	return b.when(next)
}

func (b *bucket) limit(bucketState) int64 { return b.tokens }

func (b *bucket) admit(s bucketState, now, n int64) (bucketState, bool) {
	base, free := b.base(s, now)
	units := uint64(n) * b.cost
	if units > free {
		return s, false
	}
	return bucketState(base + units), true
}

func (b *bucket) book(s bucketState, now, notBefore, n, maxWait int64) (bucketState, booking[bucketState], error) {
	done := booking[bucketState]{n: n, at: now, origin: b.origin, plan: b.plan, before: s, after: s}
	units := uint64(n) * b.cost
	base, free := b.base(s, now)
	next := arith.Add(base, units)
	if maxWait == atOnce {
		if units > free {
			done.at = b.when(arith.Sub(next, b.size))
			return s, done, ErrWaitTooLong
		}
		done.metered = true
		done.after = bucketState(next)
		return done.after, done, nil
	}
	if b.release != whenMinted || units > free {
		done.at = max(now, b.due(next))
	}
	if b.release != whenMinted {
		done.least = b.due(units) - b.origin
		if units > free {
			return s, done, ErrQueueFull
		}
	}
	if done.at < notBefore {
		// Start later than it could: until then a token bucket goes on filling,
		// and a leaky bucket drains. (Not where the moments agree: minted(at) is
		// more than next by the rounding of at.)
		done.at = notBefore
		switch ahead, _ := b.base(s, notBefore); b.release {
		case whenMinted:
			next = arith.Add(ahead, units)
		case atSlotEnd:
			next = max(next, b.mintedUp(notBefore))
		case atSlotStart:
			next = max(next, arith.Add(b.mintedUp(notBefore), b.cost))
		}
	}
	if done.at-now > maxWait || next > mostSpent || done.at == never {
		return s, done, ErrWaitTooLong
	}
	done.after = bucketState(next)
	return done.after, done, nil
}

// settle gives units back only where no booking can act too early for it: a
// booking that lies in the future keeps its moment, and what is given back
// could be booked again for the same moment.
//
// Of a due booking, units that the bucket would have minted over its top, had
// it never been charged, are lost: with g units to give back and after the
// word that the booking left, min(g, after − minted) come free. That is the
// rule g − max(0, L + g + rate·(t−s) − burst), L being the balance that the
// booking at s left and t now.
func (b *bucket) settle(s bucketState, now int64, k booking[bucketState], actual int64) bucketState {
	if actual > k.n {
		debt := arith.Mul(uint64(actual-k.n), b.cost)
		base, _ := b.base(s, now)
		return max(s, bucketState(min(arith.Add(base, debt), mostSpent)))
	}
	if k.plan != b.plan {
		return s // words of another policy: giving back nothing is safe
	}
	after, before := b.moved(k.after, k.origin), b.moved(k.before, k.origin)
	back := uint64(k.n-actual) * b.cost
	newest := s == after
	switch minted := b.minted(now); {
	case now < k.at && !newest:
		return s
	case newest && now <= k.at && actual == 0:
		return before
	case now < k.at:
		return b.shorten(s, k.at, back)
	case newest || b.release == whenMinted && arith.Sub(uint64(s), minted) <= b.size:
		left := bucketState(arith.Sub(uint64(s), min(back, arith.Sub(uint64(after), b.mintedUp(now)))))
		if b.release == atSlotStart && !k.metered && actual > 0 {
			// What acted keeps its slot.
			left = max(left, min(s, bucketState(arith.Add(b.minted(k.at), b.cost))))
		}
		return left
	}
	return s
}

// shorten gives back what it can of a booking that stays where it is: the next
// one may not come before it, nor, in a leaky bucket, into its slot.
func (b *bucket) shorten(s bucketState, at int64, back uint64) bucketState {
	if b.release != whenMinted {
		return s
	}
	least := arith.Sub(arith.Add(b.minted(at), b.size), b.cost)
	return min(s, bucketState(max(arith.Sub(uint64(s), back), least)))
}

func (b *bucket) measure(s bucketState, now, n int64) (m measurement) {
	base, free := b.base(s, now)
	m.remaining = int64(free / b.cost)
	if units := uint64(n) * b.cost; units > free {
		m.retry = until(b.when(arith.Sub(arith.Add(base, units), b.size)), now)
	}
	if free < b.size {
		m.reset = until(b.when(base), now)
	}
	return m
}

func (b *bucket) idle(s bucketState, now int64) bool {
	return uint64(s) <= max(b.minted(now), uint64(b.initial))
}
