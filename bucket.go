package ratelimit

import (
	"math"

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
}

// release says when a booking may act.
type release uint8

const (
	whenMinted  release = iota // token bucket: as soon as the bucket holds the tokens
	atSlotEnd                  // leaky bucket: when the units have drained
	atSlotStart                // leaky bucket, immediate first: when the last unit starts to drain
)

// frozen is a word that no bucket has; see bucketWord.
const frozen = math.MaxUint64

// maxMinted bounds what is minted between two origins. With a full bucket of
// at most 2⁶³ units on top, words are left for some 2⁶² units of bookings.
const maxMinted = 1 << 62

// shortestEpoch is the least time between two origins of an exact bucket.
const shortestEpoch = 24 * 3600 * 1e9

func newBucket(p Policy) *bucket {
	s := p.spec()
	num, den := s.rate.Ratio()
	b := &bucket{tokens: int64(s.limit)}
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
	switch {
	case b.den == 1:
		return arith.Mul(age, b.num)
	case b.stepped:
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

// base is the word before a charge: idle time credits no more than a full
// bucket.
func (b *bucket) base(s bucketState, minted uint64) uint64 {
	return max(uint64(s), uint64(b.initial), minted)
}

func (b *bucket) limit() int64 { return b.tokens }

func (b *bucket) admit(s bucketState, now, n int64) (bucketState, bool) {
	return b.charge(s, now, uint64(n)*b.cost)
}

func (b *bucket) charge(s bucketState, now int64, units uint64) (bucketState, bool) {
	minted := b.minted(now)
	base := b.base(s, minted)
	next := base + units
	if next-minted > b.size || next < base {
		return s, false
	}
	return bucketState(next), true
}

func (b *bucket) book(s bucketState, now, notBefore, n, maxWait int64) (bucketState, booking[bucketState], error) {
	done := booking[bucketState]{n: n, at: now, origin: b.origin, before: s, after: s}
	minted := b.minted(now)
	units := uint64(n) * b.cost
	start := max(now, notBefore)
	base := b.base(s, minted)
	room := base+units >= base && base+units-minted <= b.size
	if maxWait == atOnce {
		if !room {
			return s, done, ErrWaitTooLong
		}
		done.after = bucketState(base + units)
		return done.after, done, nil
	}
	if b.release != whenMinted && !room {
		return s, done, ErrQueueFull
	}
	next := arith.Add(base, units)
	switch b.release {
	case whenMinted:
		ahead := b.minted(start)
		next = arith.Add(b.base(s, ahead), units)
		done.at = max(start, b.when(arith.Sub(next, b.size)))
	case atSlotEnd:
		next = max(next, b.minted(start))
		done.at = max(start, b.when(next))
	case atSlotStart:
		next = max(next, arith.Add(b.minted(start), b.cost))
		done.at = max(start, b.when(next-b.cost))
	}
	if done.at-now > maxWait || next > frozen/4*3 || done.at == never {
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
		// Saturated debt leaves words for the size of the bucket.
		return bucketState(max(uint64(s), min(arith.Add(b.base(s, b.minted(now)), debt), frozen/4*3)))
	}
	after, before := b.moved(k.after, k.origin), b.moved(k.before, k.origin)
	back := uint64(k.n-actual) * b.cost
	newest := s == after
	switch minted := b.minted(now); {
	case now < k.at && !newest:
		return s
	case now < k.at && actual == 0:
		return before
	case now < k.at:
		return b.shorten(s, k.at, back)
	case newest || b.release == whenMinted && arith.Sub(uint64(s), minted) <= b.size:
		return bucketState(arith.Sub(uint64(s), min(back, arith.Sub(uint64(after), minted))))
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

func (b *bucket) measure(s bucketState, now, n int64) (remaining, retry, reset int64) {
	minted := b.minted(now)
	level := b.base(s, minted) - minted
	if level < b.size {
		remaining = int64((b.size - level) / b.cost)
	}
	if need := arith.Add(level, uint64(n)*b.cost); need > b.size {
		retry = until(b.when(arith.Add(minted, need-b.size)), now)
	}
	if level > 0 {
		reset = until(b.when(arith.Add(minted, level)), now)
	}
	return remaining, retry, reset
}

func (b *bucket) idle(s bucketState, now int64) bool {
	return uint64(s) <= max(b.minted(now), uint64(b.initial))
}

// renew moves the origin to now, so that words stay small however long the
// limiter runs. A stepped bucket keeps its steps.
func (b *bucket) renew(now int64) *bucket {
	next := *b
	next.origin = now
	if b.stepped {
		next.origin -= (now - b.origin) % int64(b.den)
	}
	next.initial = next.moved(b.initial, b.origin)
	next.horizon = next.lasts()
	return &next
}

func (b *bucket) ends() int64 { return b.horizon }

func (b *bucket) carry(s bucketState, to *bucket) bucketState { return to.moved(s, b.origin) }

// moved returns the word s of an earlier origin relative to b's. Where den is
// 1 or the bucket is stepped that is exact; else it rounds up, by less than a
// nanosecond's refill.
func (b *bucket) moved(s bucketState, origin int64) bucketState {
	if origin == b.origin {
		return s
	}
	earlier := *b
	earlier.origin = origin
	return bucketState(arith.Sub(uint64(s), earlier.minted(b.origin)))
}
